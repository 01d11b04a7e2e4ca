# SPDX-License-Identifier: MIT
# A UD QP drops a packet of a connection.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, check_type_state

qp r RC
qp q UD
post_recv id=1 length=64 qp=q
< SEND_ONLY psn=0 length=8 qp=r to=q ack_request
silence 5ms
