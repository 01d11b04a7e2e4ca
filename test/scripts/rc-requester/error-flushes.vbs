# SPDX-License-Identifier: MIT
# A QP that enters ERR flushes its sends and its receives, and answers nothing.
source Linux drivers/infiniband/sw/rdmavt/qp.c, rvt_error_qp

qp q RC
post_recv id=1 length=8
post_send SEND id=2 length=8
> SEND_ONLY psn=0 length=8
modify ERR
completion send id=2 status=WR_FLUSH_ERR
completion recv id=1 status=WR_FLUSH_ERR
< SEND_ONLY psn=0 length=8 ack_request
silence 5ms
