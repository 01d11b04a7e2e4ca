# SPDX-License-Identifier: MIT
# A request behind a gap draws one NAK with the PSN that is missing. The requests behind it draw none until it is repaired.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_psn: sent_psn_nak

qp q RC
post_recv id=1 length=64
post_recv id=2 length=64
< SEND_ONLY psn=1 length=8 ack_request
> NAK_SEQUENCE psn=0 msn=0
< SEND_ONLY psn=2 length=8 ack_request
< SEND_ONLY psn=3 length=8 ack_request
silence 5ms
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
< SEND_ONLY psn=2 length=8 ack_request
> NAK_SEQUENCE psn=1 msn=1
