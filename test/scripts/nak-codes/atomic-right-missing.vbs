# SPDX-License-Identifier: MIT
# An atomic that the QP's access flags do not allow is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_UNSUPPORTED_OPCODE

qp q RC access=read+write
< FETCH_ADD psn=0 addr=0 add=1
> NAK_INVALID_REQUEST psn=0 msn=0
