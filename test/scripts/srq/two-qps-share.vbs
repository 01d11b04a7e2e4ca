# SPDX-License-Identifier: MIT
# Two QPs take the receives of one SRQ in the order in which SENDs come.
source ibv_create_srq(3)

srq s
qp q RC srq=s
qp r RC srq=s
post_recv id=1 length=64 srq=s
post_recv id=2 length=64 srq=s
< SEND_ONLY psn=0 length=8 ack_request qp=r
> ACK psn=0 msn=1 qp=r
completion recv id=1 byte_len=8 qp=r
< SEND_ONLY psn=0 length=16 ack_request
> ACK psn=0 msn=1
completion recv id=2 byte_len=16
