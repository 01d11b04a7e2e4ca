# SPDX-License-Identifier: MIT
# In SQD the device still repeats the sends that it has begun.
source ibv_query_qp(3): sq_draining; Linux drivers/infiniband/sw/rdmavt/qp.c, ib_rvt_state_ops
known rxe-6.1,rxe-6.12 draining_sends_nothing

qp q RC timeout=8
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
modify SQD
within 50ms > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
