# SPDX-License-Identifier: MIT
# A QP in RTR receives and acknowledges; it sends no requests of its own.
source Linux drivers/infiniband/sw/rdmavt/qp.c, ib_rvt_state_ops: RTR

qp q RC state=RTR
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
state RTR
