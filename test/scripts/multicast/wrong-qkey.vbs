# SPDX-License-Identifier: MIT
# A member drops a multicast whose Q_Key is not its own.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, rxe_rcv_mcast_pkt and check_keys

qp q UD
attach group=1
post_recv id=1 length=64
< SEND_ONLY group=1 psn=0 length=8 qkey=0x11111112
silence 5ms
< SEND_ONLY group=1 psn=1 length=8 qkey=0x11111111
completion recv id=1 byte_len=48
