# SPDX-License-Identifier: MIT
# A SEND that finds the named SRQ empty draws an RNR NAK.
source unsourced; as RC: Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_resource
known rxe-6.1,rxe-6.12 - SoftRoCE has no XRC.

srq s xrc
qp q XRC_RECV min_rnr_timer=12
< SEND_ONLY psn=0 srqn=s length=8 ack_request
> RNR_NAK psn=0 timer=12 msn=0
post_recv id=1 length=64 srq=s
< SEND_ONLY psn=0 srqn=s length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8 srq=s
