# SPDX-License-Identifier: MIT
# A WRITE with a wrong rkey is a remote access error, and ends the QP.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_RKEY_VIOLATION

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 data=100 rkey=bad ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
state ERR
memory at=0 length=8 data=0
