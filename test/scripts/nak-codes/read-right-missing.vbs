# SPDX-License-Identifier: MIT
# A READ that the QP's access flags do not allow is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_UNSUPPORTED_OPCODE

qp q RC access=write
< RDMA_READ_REQUEST psn=0 addr=0 dma=8
> NAK_INVALID_REQUEST psn=0 msn=0
state ERR
