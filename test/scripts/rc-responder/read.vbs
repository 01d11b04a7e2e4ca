# SPDX-License-Identifier: MIT
# The response has the PSN of the request and the bytes of the memory.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, read_reply

qp q RC
< RDMA_READ_REQUEST psn=0 addr=300 dma=16
> RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=16 data=300
