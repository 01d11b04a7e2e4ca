# SPDX-License-Identifier: MIT
# An address that is no multiple of 8 is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_MISALIGNED_ATOMIC

qp q RC
< FETCH_ADD psn=0 addr=4 add=1
> NAK_INVALID_REQUEST psn=0 msn=0
state ERR
