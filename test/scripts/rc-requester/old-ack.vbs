# SPDX-License-Identifier: MIT
# An ACK of a PSN that is acknowledged already changes nothing.
source Linux drivers/infiniband/hw/hfi1/rc.c, rc_rcv_resp: "Ignore invalid responses"

qp q RC timeout=0
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
post_send SEND id=2 length=8
> SEND_ONLY psn=1 length=8
< ACK psn=0 msn=1
silence 5ms
< ACK psn=1 msn=2
completion send id=2
