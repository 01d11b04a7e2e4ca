# SPDX-License-Identifier: MIT
# The requester waits as long as the timer of the RNR NAK says, then repeats the message.
source Linux include/rdma/ib_verbs.h, enum ib_rnr_timeout: 01 is 0.01 ms
known rxe-6.1/sim,rxe-6.12/sim timers_tick

qp q RC
post_send SEND id=1 length=8 at=0
> SEND_ONLY psn=0 length=8 data=0
< RNR_NAK psn=0 timer=1 msn=0
+10us > SEND_ONLY psn=0 length=8 data=0
< ACK psn=0 msn=1
completion send id=1
