# SPDX-License-Identifier: MIT
# A gap across the wrap draws a NAK with the PSN that is missing.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_psn

qp q RC first_peer_psn=0xffffff
< RDMA_WRITE_ONLY psn=@0 addr=0 dma=4 length=4 ack_request
> NAK_SEQUENCE psn=@0xffffff msn=0
