# SPDX-License-Identifier: MIT
# At most max_rd_atomic READs and atomics are outstanding; the next one waits.
source ibv_query_qp(3): max_rd_atomic; Linux drivers/infiniband/hw/qib/qib_rc.c, qib_make_rc_req: RVT_S_WAIT_RDMAR

qp q RC max_rd_atomic=1
post_send RDMA_READ id=1 length=8 addr=0
post_send RDMA_READ id=2 length=8 addr=64
> RDMA_READ_REQUEST psn=0 addr=0 dma=8
silence 5ms
< RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8
completion send id=1
> RDMA_READ_REQUEST psn=1 addr=64 dma=8
< RDMA_READ_RESPONSE_ONLY psn=1 msn=2 length=8
completion send id=2
