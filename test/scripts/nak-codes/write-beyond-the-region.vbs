# SPDX-License-Identifier: MIT
# A WRITE that leaves its region is refused with its first packet: nothing of it is written.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: check_rkey of the whole length
known mlx5 writes_checked_by_packet

qp q RC mtu=1024 buffer=4096
< RDMA_WRITE_FIRST psn=0 addr=3072 dma=2048 length=1024 data=0 ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
memory at=3072 length=1024 data=3072
state ERR
