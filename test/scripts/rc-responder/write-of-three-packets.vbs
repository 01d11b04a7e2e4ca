# SPDX-License-Identifier: MIT
# Only the first packet has a RETH. The packets behind it follow one another in memory.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey: qp->resp.va and resid

qp q RC mtu=1024
< RDMA_WRITE_FIRST psn=0 addr=512 dma=2050 length=1024 data=0
< RDMA_WRITE_MIDDLE psn=1 length=1024 data=1024
< RDMA_WRITE_LAST psn=2 length=2 data=2048 ack_request
> ACK psn=2 msn=1
memory at=512 length=2050 data=0
