# SPDX-License-Identifier: MIT
# A repeated READ asks for the same bytes or the rest of them. One that asks for others is dropped.
source unsourced
known rxe-6.1,rxe-6.12 repeated_reads_may_differ

qp q RC mtu=1024
< RDMA_READ_REQUEST psn=0 addr=0 dma=2056
> RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024
> RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024
> RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8
< RDMA_READ_REQUEST psn=0 addr=64 dma=1024
silence 5ms
