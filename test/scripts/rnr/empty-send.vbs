# SPDX-License-Identifier: MIT
# A SEND of no bytes needs a receive, too.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_resource

qp q RC min_rnr_timer=1
< SEND_ONLY psn=0 ack_request
> RNR_NAK psn=0 timer=1 msn=0
