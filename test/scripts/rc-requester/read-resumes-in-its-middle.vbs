# SPDX-License-Identifier: MIT
# When the rest of a response is missing, the requester asks for the rest, from the first PSN that is missing.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, req_retry: wqe->dma and wqe->iova of a READ

qp q RC mtu=1024 timeout=17
post_send RDMA_READ id=1 length=2056 at=4096 addr=64
> RDMA_READ_REQUEST psn=0 addr=64 dma=2056
< RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024 data=9000
within 2s > RDMA_READ_REQUEST psn=1 addr=1088 dma=1032
< RDMA_READ_RESPONSE_FIRST psn=1 msn=1 length=1024 data=10024
< RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8 data=11048
completion send id=1
memory at=4096 length=2056 data=9000
