# SPDX-License-Identifier: MIT
# A READ that leaves the region is a remote access error. Nothing of it is sent.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, rxe_responder: ERR_RKEY_VIOLATION

qp q RC buffer=4096
< RDMA_READ_REQUEST psn=0 addr=4092 dma=8
> NAK_REMOTE_ACCESS psn=0 msn=0
state ERR
