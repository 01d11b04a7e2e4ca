# SPDX-License-Identifier: MIT
# Each packet of an XRC request has the number of the SRQ; the answers are those of RC, without it.
source ibv_post_send(3), qp_type.xrc.remote_srqn
known rxe-6.1,rxe-6.12 - SoftRoCE has no XRC.

qp q XRC_SEND mtu=1024
post_send SEND id=1 length=2100 srqn=0x123
> SEND_FIRST psn=0 srqn=0x123 length=1024
> SEND_MIDDLE psn=1 srqn=0x123 length=1024
> SEND_LAST psn=2 srqn=0x123 length=52
< ACK psn=2 msn=1
completion send id=1
post_send RDMA_READ id=2 length=8 addr=64 srqn=0x123
> RDMA_READ_REQUEST psn=3 srqn=0x123 addr=64 dma=8
< RDMA_READ_RESPONSE_ONLY psn=3 msn=2 length=8 data=700
completion send id=2
memory at=0 length=8 data=700
