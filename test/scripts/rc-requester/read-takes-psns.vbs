# SPDX-License-Identifier: MIT
# The request behind a READ has the PSN behind the last packet of the READ's response.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, update_wqe_psn

qp q RC mtu=1024
post_send RDMA_READ id=1 length=2056 at=0 addr=0
post_send SEND id=2 length=8
> RDMA_READ_REQUEST psn=0 addr=0 dma=2056
> SEND_ONLY psn=3 length=8
< RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024
< RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024
< RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8
< ACK psn=3 msn=2
completion send id=1
completion send id=2
