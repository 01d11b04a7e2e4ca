# SPDX-License-Identifier: MIT
# A message that is longer than its receive is an invalid request; the receive ends with a length error.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv: nack_inv; the status of the receive: unsourced
known rxe-6.1,rxe-6.12 short_receive_is_operation_error

qp q RC
post_recv id=1 length=8
< SEND_ONLY psn=0 length=16 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
completion recv id=1 status=LOC_LEN_ERR
state ERR
