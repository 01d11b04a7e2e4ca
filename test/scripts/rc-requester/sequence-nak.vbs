# SPDX-License-Identifier: MIT
# A sequence NAK makes the requester go back to its PSN at once.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_ack: AETH_NAK_PSN_SEQ_ERROR

qp q RC
post_send SEND id=1 length=8 at=0
post_send SEND id=2 length=8 at=64
> SEND_ONLY psn=0 length=8 data=0
> SEND_ONLY psn=1 length=8 data=64
< NAK_SEQUENCE psn=0 msn=0
> SEND_ONLY psn=0 length=8 data=0
> SEND_ONLY psn=1 length=8 data=64
< ACK psn=1 msn=2
completion send id=1
completion send id=2
