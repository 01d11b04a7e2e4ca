# SPDX-License-Identifier: MIT
# A datagram that finds no receive is dropped.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_RNR on UD, class D

qp q UD
< SEND_ONLY psn=0 length=8 qkey=0x11111111
silence 5ms
state RTS
