# SPDX-License-Identifier: MIT
# A packet to a QPN of no QP is dropped without an answer.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, hdr_check

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request dest=0xfffff0
silence 5ms
state RTS
