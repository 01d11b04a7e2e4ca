# SPDX-License-Identifier: MIT
# The MSN counts messages of each kind, not packets.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, execute: qp->resp.msn

qp q RC
post_recv id=1 length=64
store at=0 number=40
< SEND_ONLY psn=0 length=8 data=x2800000000000000 ack_request
> ACK psn=0 msn=1
< RDMA_READ_REQUEST psn=1 addr=0 dma=8
> RDMA_READ_RESPONSE_ONLY psn=1 msn=2 length=8
< FETCH_ADD psn=2 addr=0 add=2
> ATOMIC_ACKNOWLEDGE psn=2 msn=3 original=40
< RDMA_WRITE_ONLY psn=3 addr=64 dma=4 length=4 ack_request
> ACK psn=3 msn=4
completion recv id=1 byte_len=8
