# SPDX-License-Identifier: MIT
# A READ has as many PSNs as its response has packets: the next request begins behind them.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, read_reply, get_req

qp q RC mtu=1024
< RDMA_READ_REQUEST psn=0 addr=0 dma=2056
> RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024 data=0
> RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024 data=1024
> RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8 data=2048
< RDMA_WRITE_ONLY psn=3 addr=0 dma=4 length=4 data=x01020304 ack_request
> ACK psn=3 msn=2
