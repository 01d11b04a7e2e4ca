# SPDX-License-Identifier: MIT
# The solicited bit stands in the packet.
source ibv_post_send(3): IBV_SEND_SOLICITED

qp q RC
post_send SEND id=1 length=8 solicited
> SEND_ONLY psn=0 length=8 solicited
< ACK psn=0 msn=1
completion send id=1
