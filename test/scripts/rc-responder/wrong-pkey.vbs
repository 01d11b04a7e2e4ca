# SPDX-License-Identifier: MIT
# A packet of another partition is dropped.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, check_keys

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request pkey=0x8001
silence 5ms
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
