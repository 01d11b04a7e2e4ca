# SPDX-License-Identifier: MIT
# With max_dest_rd_atomic 0 a READ is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_TOO_MANY_RDMA_ATM_REQ

qp q RC max_dest_rd_atomic=0
< RDMA_READ_REQUEST psn=0 addr=0 dma=8
> NAK_INVALID_REQUEST psn=0 msn=0
