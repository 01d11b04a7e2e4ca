# SPDX-License-Identifier: MIT
# After PSN 0xffffff the responder expects PSN 0, and takes packets with the PSNs before it for duplicates.
source Linux drivers/infiniband/sw/rxe/rxe_verbs.h, psn_compare: 24 bits

qp q RC first_peer_psn=0xfffffe
< RDMA_WRITE_ONLY psn=@0xfffffe addr=0 dma=4 length=4 ack_request
> ACK psn=@0xfffffe msn=1
< RDMA_WRITE_ONLY psn=@0xffffff addr=0 dma=4 length=4 ack_request
> ACK psn=@0xffffff msn=2
< RDMA_WRITE_ONLY psn=@0 addr=0 dma=4 length=4 ack_request
> ACK psn=@0 msn=3
< RDMA_WRITE_ONLY psn=@0xfffffe addr=0 dma=4 length=4 ack_request
> ACK psn=@0 msn=3
