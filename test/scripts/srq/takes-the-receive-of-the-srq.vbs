# SPDX-License-Identifier: MIT
# A SEND to a QP with an SRQ takes the SRQ's oldest receive. It completes on the QP's CQ.
source ibv_create_srq(3); ibv_post_srq_recv(3)

srq s
qp q RC srq=s
post_recv id=1 length=64 at=128 srq=s
< SEND_ONLY psn=0 length=8 data=700 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
memory at=128 length=8 data=700 srq=s
