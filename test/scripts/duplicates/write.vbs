# SPDX-License-Identifier: MIT
# A WRITE that comes again is acknowledged again and changes no memory.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 data=900 ack_request
> ACK psn=0 msn=1
store at=0 data=x1111111111111111
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 data=900 ack_request
> ACK psn=0 msn=1
memory at=0 data=x1111111111111111 length=8
