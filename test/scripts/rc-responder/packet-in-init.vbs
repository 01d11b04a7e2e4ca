# SPDX-License-Identifier: MIT
# A QP in INIT drops each packet that comes.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, check_type_state

qp q RC state=INIT
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request
silence 5ms
state INIT
