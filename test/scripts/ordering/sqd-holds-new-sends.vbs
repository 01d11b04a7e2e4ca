# SPDX-License-Identifier: MIT
# In SQD new sends wait. In RTS they are sent.
source Linux drivers/infiniband/sw/rdmavt/qp.c, rvt_modify_qp and ib_rvt_state_ops
known rxe-6.1,rxe-6.12 rts_starts_nothing

qp q RC
modify SQD
+10ms post_send SEND id=1 length=8
silence 5ms
modify RTS
> SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
