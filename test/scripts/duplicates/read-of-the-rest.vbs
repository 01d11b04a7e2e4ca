# SPDX-License-Identifier: MIT
# A READ may be repeated from its middle. The response begins with the PSN that is asked for.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_make_rc_ack: a request's first response is FIRST or ONLY
known rxe-6.1/real,rxe-6.12/real - the response to a request for the rest begins with a MIDDLE packet

qp q RC mtu=1024
< RDMA_READ_REQUEST psn=0 addr=0 dma=2056
> RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024 data=0
> RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024 data=1024
> RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8 data=2048
< RDMA_READ_REQUEST psn=1 addr=1024 dma=1032
> RDMA_READ_RESPONSE_FIRST psn=1 msn=1 length=1024 data=1024
> RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8 data=2048
