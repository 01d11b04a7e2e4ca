# SPDX-License-Identifier: MIT
# A READ response whose packets are longer than the path MTU is an error.
source unsourced
known rxe-6.1,rxe-6.12 long_read_responses_taken

qp q RC mtu=256
post_send RDMA_READ id=1 length=512 at=0 addr=0
> RDMA_READ_REQUEST psn=0 addr=0 dma=512
< RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=512
completion send id=1 status=BAD_RESP_ERR
state ERR
