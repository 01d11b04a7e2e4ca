# SPDX-License-Identifier: MIT
# A receive error ends a QP that has an SRQ, and LAST_WQE_REACHED says that it takes no more receives.
source ibv_get_async_event(3): QP_LAST_WQE_REACHED
known rxe-6.1 no_last_wqe_event

srq s
qp q RC srq=s
post_recv id=1 length=8 srq=s lkey=bad
< SEND_ONLY psn=0 length=8 ack_request
> NAK_REMOTE_OPERATION psn=0 msn=0
completion recv id=1 status=*
event QP_LAST_WQE_REACHED
state ERR
