# SPDX-License-Identifier: MIT
# While a message waits after an RNR NAK, the requester sends nothing behind it.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_make_rc_req: RVT_S_WAIT_RNR
known rxe-6.1,rxe-6.12 rnr_naks_stop_nothing

qp q RC
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=20 msn=0
post_send SEND id=2 length=4
silence 5ms
within 100ms > SEND_ONLY psn=0 length=8
> SEND_ONLY psn=1 length=4
< ACK psn=1 msn=2
completion send id=1
completion send id=2
