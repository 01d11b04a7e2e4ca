# SPDX-License-Identifier: MIT
# A repeated READ may ask for the same bytes, or for the rest of them. The responder drops one that asks for other bytes.
source unsourced
known rxe-6.1,rxe-6.12 repeated_reads_may_differ

qp q RC mtu=1024
< RDMA_READ_REQUEST psn=0 addr=0 dma=2056
> RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024
> RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024
> RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8
< RDMA_READ_REQUEST psn=0 addr=64 dma=1024
silence 5ms
