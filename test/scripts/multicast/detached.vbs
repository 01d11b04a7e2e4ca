# SPDX-License-Identifier: MIT
# A QP that was detached receives no more datagrams of the group.
source ibv_attach_mcast(3)

qp q UD
attach group=1
post_recv id=1 length=64
< SEND_ONLY group=1 psn=0 length=8 qkey=0x11111111
completion recv id=1 byte_len=48
detach group=1
post_recv id=2 length=64
< SEND_ONLY group=1 psn=1 length=8 qkey=0x11111111
silence 5ms
