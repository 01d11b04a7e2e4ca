# SPDX-License-Identifier: MIT
# The completion of a datagram has the service level, which is 0 here.
source ibv_poll_cq(3): sl
known mlx5/sim sl_is_packet_type

qp q UD
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 qkey=0x11111111
completion recv id=1 byte_len=48 sl=0
