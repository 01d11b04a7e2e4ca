# SPDX-License-Identifier: MIT
# The requester repeats the message rnr_retry times. The RNR NAK of the last repetition ends it with an error.
source ibv_modify_qp(3): rnr_retry; Linux drivers/infiniband/sw/rxe/rxe_comp.c, RNR_RETRY

qp q RC rnr_retry=2
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_ONLY psn=0 length=8
< RNR_NAK psn=0 timer=1 msn=0
completion send id=1 status=RNR_RETRY_EXC_ERR
state ERR
