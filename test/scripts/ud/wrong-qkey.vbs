# SPDX-License-Identifier: MIT
# A datagram with another Q_Key is dropped and takes no receive.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, check_keys

qp q UD qkey=0x11111111
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 qkey=0x11111112
silence 5ms
< SEND_ONLY psn=0 length=8 qkey=0x11111111
completion recv id=1 byte_len=48
