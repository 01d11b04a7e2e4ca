# SPDX-License-Identifier: MIT
# A SEND that finds no receive draws an RNR NAK with the responder's timer. It succeeds when a receive is there.
source Linux drivers/infiniband/sw/rxe/rxe_hdr.h, AETH_RNR_NAK; rxe_resp.c, check_resource

qp q RC min_rnr_timer=12
< SEND_ONLY psn=0 length=8 data=30 ack_request
> RNR_NAK psn=0 timer=12 msn=0
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 data=30 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
