# SPDX-License-Identifier: MIT
# A WRITE with immediate data needs a receive; its bytes are written only when there is one.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_resource

qp q RC
< RDMA_WRITE_ONLY_WITH_IMMEDIATE psn=0 addr=0 dma=8 length=8 data=100 imm=1 ack_request
> RNR_NAK psn=0 msn=0
memory at=0 length=8 data=0
post_recv id=1 length=64
< RDMA_WRITE_ONLY_WITH_IMMEDIATE psn=0 addr=0 dma=8 length=8 data=100 imm=1 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8 imm=1
memory at=0 length=8 data=100
