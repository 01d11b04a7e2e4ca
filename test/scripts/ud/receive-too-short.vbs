# SPDX-License-Identifier: MIT
# A datagram that is longer than its receive is dropped. The receive serves the next one.
source Linux drivers/infiniband/hw/qib/qib_ud.c, qib_ud_rcv: RVT_R_REUSE_SGE
known rxe-6.1 short_datagram_receive_fails

qp q UD
post_recv id=1 length=48
< SEND_ONLY psn=0 length=16 qkey=0x11111111
silence 5ms
< SEND_ONLY psn=1 length=8 qkey=0x11111111
completion recv id=1 byte_len=48
