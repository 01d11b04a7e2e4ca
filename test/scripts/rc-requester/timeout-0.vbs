# SPDX-License-Identifier: MIT
# With timeout 0 there is no ack timer.
source Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_from_attr: timeout 0, no timer

qp q RC timeout=0
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
silence 300ms
< ACK psn=0 msn=1
completion send id=1
