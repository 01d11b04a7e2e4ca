# SPDX-License-Identifier: MIT
# A SEND of one packet takes the oldest receive. The ACK has its PSN and counts one message.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, execute, acknowledge

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 data=5 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8 opcode=RECV
memory at=0 length=8 data=5
