# SPDX-License-Identifier: MIT
# A WRITE with immediate to forbidden memory ends its receive, too.
source unsourced; Linux drivers/infiniband/sw/rxe/rxe_resp.c, do_complete, ends the receive with another status
known rxe-6.1,rxe-6.12 imm_write_receive_is_remote_error

qp q RC
post_recv id=1 length=64
< RDMA_WRITE_ONLY_WITH_IMMEDIATE psn=0 addr=0 dma=8 length=8 rkey=bad imm=7 ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
completion recv id=1 status=LOC_ACCESS_ERR
state ERR
