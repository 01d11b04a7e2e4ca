# SPDX-License-Identifier: MIT
# A fenced send that is repeated waits for the READs before it, and not for the READs behind it.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_wqe_is_fenced: all previous READs and atomics
known rxe-6.1,rxe-6.12 repeated_fences_wait_for_all

qp q RC
post_send SEND id=1 length=8 fence
post_send RDMA_READ id=2 length=8 addr=0
> SEND_ONLY psn=0 length=8
> RDMA_READ_REQUEST psn=1 addr=0 dma=8
< NAK_SEQUENCE psn=0 msn=0
> SEND_ONLY psn=0 length=8
> RDMA_READ_REQUEST psn=1 addr=0 dma=8
< ACK psn=0 msn=1
< RDMA_READ_RESPONSE_ONLY psn=1 msn=2 length=8
completion send id=1
completion send id=2
