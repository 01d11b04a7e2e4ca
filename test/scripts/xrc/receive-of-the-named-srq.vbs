# SPDX-License-Identifier: MIT
# The XRC header of a SEND names the SRQ whose receive it takes. The receive completes on the SRQ's CQ.
source rdma-core libibverbs/man/ibv_open_xrcd.3.md; ibv_create_srq_ex(3), xrcd and cq
known rxe-6.1,rxe-6.12 - SoftRoCE has no XRC.

srq s xrc
srq t xrc
qp q XRC_RECV
post_recv id=1 length=64 srq=s
post_recv id=2 length=64 srq=t
< SEND_ONLY psn=0 srqn=t length=8 data=700 ack_request
> ACK psn=0 msn=1
completion recv id=2 byte_len=8 srq=t
< SEND_ONLY psn=1 srqn=s length=16 data=700 ack_request
> ACK psn=1 msn=2
completion recv id=1 byte_len=16 srq=s
