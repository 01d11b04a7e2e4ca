# SPDX-License-Identifier: MIT
# A READ that comes again is executed again: the response has the present bytes.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request: rcv_replay

qp q RC
< RDMA_READ_REQUEST psn=0 addr=0 dma=8
> RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8 data=0
store at=0 data=x2222222222222222
< RDMA_READ_REQUEST psn=0 addr=0 dma=8
> RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8 data=x22
