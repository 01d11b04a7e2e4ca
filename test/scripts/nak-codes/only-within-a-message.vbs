# SPDX-License-Identifier: MIT
# A new message that begins before the last one has ended is an invalid request. The receive that the old one has taken ends in error.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_op_seq; the status of the receive: unsourced

qp q RC mtu=1024
post_recv id=1 length=4096
< SEND_FIRST psn=0 length=1024
< SEND_ONLY psn=1 length=8 ack_request
> NAK_INVALID_REQUEST psn=1 msn=0
completion recv id=1 status=*
state ERR
