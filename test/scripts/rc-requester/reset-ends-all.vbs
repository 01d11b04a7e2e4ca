# SPDX-License-Identifier: MIT
# After a reset the QP sends nothing of the work that was posted before.
source ibv_modify_qp(3): IBV_QPS_RESET; Linux drivers/infiniband/sw/rdmavt/qp.c, rvt_reset_qp
known rxe-6.12 resets_leave_ghosts

qp q RC timeout=12
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
modify RESET
silence 40ms
modify INIT
modify RTR
modify RTS
silence 40ms
post_send SEND id=2 length=4
> SEND_ONLY psn=0 length=4
< ACK psn=0 msn=1
completion send id=2
