# SPDX-License-Identifier: MIT
# A send without IBV_SEND_SIGNALED makes no completion; the ACK of a later one covers it.
source ibv_post_send(3): IBV_SEND_SIGNALED

qp q RC
post_send SEND id=1 length=8 unsignaled
> SEND_ONLY psn=0 length=8
post_send SEND id=2 length=8
> SEND_ONLY psn=1 length=8
< ACK psn=1 msn=2
completion send id=2
