# SPDX-License-Identifier: MIT
# With rnr_retry 7 the requester repeats without an end.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, RNR_RETRY: 7

qp q RC rnr_retry=7
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
