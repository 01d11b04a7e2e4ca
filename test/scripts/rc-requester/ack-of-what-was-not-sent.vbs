# SPDX-License-Identifier: MIT
# An ACK of a PSN that was not sent acknowledges nothing.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv_resp: ignores an ACK of a PSN that was not sent
known rxe-6.1,rxe-6.12 acks_of_unsent_complete

qp q RC timeout=0
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< ACK psn=5 msn=1
silence 200ms
< ACK psn=0 msn=1
completion send id=1
