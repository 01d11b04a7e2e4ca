# SPDX-License-Identifier: MIT
# The responder drops a packet with a wrong ICRC: no answer, no completion. It executes the repetition.
source Linux drivers/infiniband/sw/rxe/rxe_recv.c, rxe_rcv

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 data=0 ack_request icrc=bad
silence 5ms
< SEND_ONLY psn=0 length=8 data=0 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
