# SPDX-License-Identifier: MIT
# A send without a fence follows a READ at once.
source ibv_post_send(3): IBV_SEND_FENCE

qp q RC
post_send RDMA_READ id=1 length=8 addr=0
post_send SEND id=2 length=8
> RDMA_READ_REQUEST psn=0 addr=0 dma=8
> SEND_ONLY psn=1 length=8
< RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8
< ACK psn=1 msn=2
completion send id=1
completion send id=2
