# SPDX-License-Identifier: MIT
# A request from before the connection's first PSN is a duplicate: the ACK has the PSN before the first one.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv_error: answers from the connection's own state
known rxe-6.1,rxe-6.12 acks_of_old_connections

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=-1 length=8 ack_request
> ACK psn=-1 msn=0
silence 5ms
