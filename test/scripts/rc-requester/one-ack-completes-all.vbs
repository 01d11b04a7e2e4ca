# SPDX-License-Identifier: MIT
# An ACK acknowledges each PSN up to its own. Completions come in posting order.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, get_wqe: the head of the queue

qp q RC
post_send SEND id=1 length=8
post_send RDMA_WRITE id=2 length=8 addr=0
post_send SEND id=3 length=8
> SEND_ONLY psn=0 length=8
> RDMA_WRITE_ONLY psn=1 addr=0 dma=8 length=8
> SEND_ONLY psn=2 length=8
< ACK psn=2 msn=3
completion send id=1
completion send id=2
completion send id=3
