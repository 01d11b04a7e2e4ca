# SPDX-License-Identifier: MIT
# The bytes of a WRITE are as many as its RETH says.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_resp_check_length

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=100 length=96 data=0 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
state ERR
