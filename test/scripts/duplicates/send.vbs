# SPDX-License-Identifier: MIT
# A SEND that comes again is acknowledged again and takes no second receive.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request

qp q RC
post_recv id=1 length=64
post_recv id=2 length=64 at=64
< SEND_ONLY psn=0 length=8 data=500 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
< SEND_ONLY psn=0 length=8 data=500 ack_request
> ACK psn=0 msn=1
silence 5ms
memory at=64 length=8 data=64
