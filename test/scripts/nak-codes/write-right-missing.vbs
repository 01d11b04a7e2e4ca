# SPDX-License-Identifier: MIT
# A WRITE that the QP's access flags do not allow is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_UNSUPPORTED_OPCODE

qp q RC access=read
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 data=100 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
memory at=0 length=8 data=0
