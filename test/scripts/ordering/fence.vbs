# SPDX-License-Identifier: MIT
# A fenced send waits until all READs before it are done.
source ibv_post_send(3): IBV_SEND_FENCE; Linux drivers/infiniband/hw/qib/qib_rc.c, qib_make_rc_req: RVT_S_WAIT_FENCE

qp q RC
post_send RDMA_READ id=1 length=8 addr=0
post_send SEND id=2 length=8 fence
> RDMA_READ_REQUEST psn=0 addr=0 dma=8
silence 5ms
< RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8
completion send id=1
> SEND_ONLY psn=1 length=8
< ACK psn=1 msn=2
completion send id=2
