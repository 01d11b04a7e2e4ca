# SPDX-License-Identifier: MIT
# A send that the state RTR forbids is refused, and is not sent in RTS.
source ibv_post_send(3): EINVAL; Linux drivers/infiniband/sw/rdmavt/qp.c, ib_rvt_state_ops
known rxe-6.1,rxe-6.12 refused_sends_stay_queued
known mlx5 posts_ignored_in_wrong_state

qp q RC state=RTR
post_send SEND id=1 length=8 = EINVAL
modify RTS
post_send SEND id=2 length=16
> SEND_ONLY psn=0 length=16
< ACK psn=0 msn=1
completion send id=2
