# SPDX-License-Identifier: MIT
# A READ asks for all its bytes in one request. Its response writes them into the buffer.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, do_read

qp q RC mtu=1024
post_send RDMA_READ id=1 length=2056 at=4096 addr=64
> RDMA_READ_REQUEST psn=0 addr=64 dma=2056
< RDMA_READ_RESPONSE_FIRST psn=0 msn=1 length=1024 data=9000
< RDMA_READ_RESPONSE_MIDDLE psn=1 length=1024 data=10024
< RDMA_READ_RESPONSE_LAST psn=2 msn=1 length=8 data=11048
completion send id=1 opcode=RDMA_READ
memory at=4096 length=2056 data=9000
