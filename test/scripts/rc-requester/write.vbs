# SPDX-License-Identifier: MIT
# A WRITE has the address, the key and the length in the RETH of its first packet.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, init_req_packet

qp q RC mtu=1024
post_send RDMA_WRITE id=1 length=1030 at=10 addr=4096
> RDMA_WRITE_FIRST psn=0 addr=4096 dma=1030 length=1024 data=10
> RDMA_WRITE_LAST psn=1 length=6 data=1034 ack_request
< ACK psn=1 msn=1
completion send id=1 opcode=RDMA_WRITE
