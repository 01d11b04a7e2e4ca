# SPDX-License-Identifier: MIT
# An ACK covers all requests up to its PSN. Requests that do not ask for an ACK need none of their own.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, acknowledge: bth_ack

qp q RC
post_recv id=1 length=64
post_recv id=2 length=64
< SEND_ONLY psn=0 length=8
< RDMA_WRITE_ONLY psn=1 addr=512 dma=8 length=8 data=0
< SEND_ONLY psn=2 length=8 ack_request
> ACK psn=2 msn=3
completion recv id=1 byte_len=8
completion recv id=2 byte_len=8
