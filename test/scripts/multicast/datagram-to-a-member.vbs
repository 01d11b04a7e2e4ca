# SPDX-License-Identifier: MIT
# A multicast reaches each QP that is attached to its group. Its destination is QP 0xffffff.
source ibv_attach_mcast(3)

qp q UD
qp r UD
attach group=1
attach group=1 qp=r
post_recv id=1 length=64
post_recv id=2 length=64 qp=r
< SEND_ONLY group=1 psn=0 length=8 data=700 qkey=0x11111111
completion recv id=1 byte_len=48
completion recv id=2 byte_len=48 qp=r
memory at=40 length=8 data=700 qp=r
