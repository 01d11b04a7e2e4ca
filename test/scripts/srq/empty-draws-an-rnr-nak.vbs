# SPDX-License-Identifier: MIT
# A SEND that finds an empty SRQ draws an RNR NAK.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_resource

srq s
qp q RC srq=s min_rnr_timer=12
< SEND_ONLY psn=0 length=8 ack_request
> RNR_NAK psn=0 timer=12 msn=0
post_recv id=1 length=64 srq=s
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
