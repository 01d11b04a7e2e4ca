# SPDX-License-Identifier: MIT
# The datagram stands behind 40 bytes for the GRH, which byte_len counts.
source ibv_post_recv(3), Notes: 40 bytes in front

qp q UD qkey=0x11111111
post_recv id=1 length=64 at=0
< SEND_ONLY psn=5 length=8 data=700 qkey=0x11111111
completion recv id=1 byte_len=48
memory at=40 length=8 data=700
