# SPDX-License-Identifier: MIT
# A sequence NAK acknowledges each PSN below its own.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn, complete_ack

qp q RC
post_send SEND id=1 length=8
post_send SEND id=2 length=8
post_send SEND id=3 length=8
> SEND_ONLY psn=0 length=8
> SEND_ONLY psn=1 length=8
> SEND_ONLY psn=2 length=8
< NAK_SEQUENCE psn=1 msn=1
> SEND_ONLY psn=1 length=8
> SEND_ONLY psn=2 length=8
completion send id=1
< ACK psn=2 msn=3
completion send id=2
completion send id=3
