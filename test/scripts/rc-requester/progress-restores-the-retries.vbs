# SPDX-License-Identifier: MIT
# Each ACK that acknowledges something gives back all retries.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, reset_retry_counters

qp q RC timeout=17 retry_cnt=1
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
within 2s > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
post_send SEND id=2 length=8
> SEND_ONLY psn=1 length=8
within 2s > SEND_ONLY psn=1 length=8
< ACK psn=1 msn=2
completion send id=2
