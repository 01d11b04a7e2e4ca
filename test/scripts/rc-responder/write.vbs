# SPDX-License-Identifier: MIT
# A WRITE takes no receive and makes no completion at the responder.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_resource: a receive for SEND and immediate data only

qp q RC
post_recv id=1 length=64
< RDMA_WRITE_ONLY psn=0 addr=256 dma=13 length=13 data=7 ack_request
> ACK psn=0 msn=1
memory at=256 length=13 data=7
