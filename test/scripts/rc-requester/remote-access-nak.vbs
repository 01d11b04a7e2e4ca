# SPDX-License-Identifier: MIT
# A remote access NAK ends its request with that error, and the requests behind it are flushed.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_ack: AETH_NAK_REM_ACC_ERR; rxe_drain_resp_pkts

qp q RC
post_send RDMA_WRITE id=1 length=8 addr=0
post_send SEND id=2 length=8
> RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8
> SEND_ONLY psn=1 length=8
< NAK_REMOTE_ACCESS psn=0 msn=0
completion send id=1 status=REM_ACCESS_ERR
completion send id=2 status=WR_FLUSH_ERR
state ERR
