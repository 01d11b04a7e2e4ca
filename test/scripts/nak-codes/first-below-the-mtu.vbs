# SPDX-License-Identifier: MIT
# A FIRST packet has exactly the path MTU.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv: nack_inv
known rxe-6.1 packet_sizes_unchecked

qp q RC mtu=1024
post_recv id=1 length=4096
< SEND_FIRST psn=0 length=1000 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
completion recv id=1 status=REM_INV_REQ_ERR
