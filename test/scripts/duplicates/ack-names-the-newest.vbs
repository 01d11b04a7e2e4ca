# SPDX-License-Identifier: MIT
# The ACK of a duplicate has the newest PSN and MSN: it acknowledges all that has come.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request: prev_psn

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=4 length=4 ack_request
> ACK psn=0 msn=1
< RDMA_WRITE_ONLY psn=1 addr=0 dma=4 length=4 ack_request
> ACK psn=1 msn=2
< RDMA_WRITE_ONLY psn=2 addr=0 dma=4 length=4 ack_request
> ACK psn=2 msn=3
< RDMA_WRITE_ONLY psn=0 addr=0 dma=4 length=4 ack_request
> ACK psn=2 msn=3
