# SPDX-License-Identifier: MIT
# The key to invalidate stands in the packet.
source ibv_post_send(3): invalidate_rkey

qp q RC
post_send SEND_WITH_INV id=1 length=8 key=0x4321
> SEND_ONLY_WITH_INVALIDATE psn=0 length=8 key=0x4321
< ACK psn=0 msn=1
completion send id=1
