# SPDX-License-Identifier: MIT
# A WRITE behind a READ is acknowledged first. Its completion comes behind that of the READ.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, get_wqe: the head of the queue

qp q RC timeout=0
post_send RDMA_READ id=1 length=8 addr=0 at=512
post_send RDMA_WRITE id=2 length=8 addr=64
> RDMA_READ_REQUEST psn=0 addr=0 dma=8
> RDMA_WRITE_ONLY psn=1 addr=64 dma=8 length=8
< RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=8 data=x33
completion send id=1
memory at=512 length=8 data=x33
< ACK psn=1 msn=2
completion send id=2
