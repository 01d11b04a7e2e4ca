# SPDX-License-Identifier: MIT
# UC has no answers. A send is complete when it has left.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, acknowledge: RC only

qp q UC
post_send SEND id=1 length=8 at=0
> SEND_ONLY psn=0 length=8 data=0
completion send id=1
post_recv id=2 length=64 at=128
< SEND_ONLY psn=0 length=8 data=40 ack_request
completion recv id=2 byte_len=8
memory at=128 length=8 data=40
silence 5ms
