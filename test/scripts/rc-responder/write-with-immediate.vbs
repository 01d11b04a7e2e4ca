# SPDX-License-Identifier: MIT
# A WRITE with immediate data takes a receive, and does not write into the buffer of this receive.
source Linux drivers/infiniband/sw/rdmavt/qp.c, rvt_get_rwqe: wr_id_only

qp q RC
post_recv id=4 length=64 at=1024
< RDMA_WRITE_ONLY_WITH_IMMEDIATE psn=0 addr=0 dma=8 length=8 data=3000 imm=77 ack_request
> ACK psn=0 msn=1
completion recv id=4 byte_len=8 imm=77 opcode=RECV_RDMA_WITH_IMM
memory at=0 length=8 data=3000
memory at=1024 length=64 data=1024
