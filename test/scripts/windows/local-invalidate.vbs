# SPDX-License-Identifier: MIT
# LOCAL_INV ends the window's access before it completes.
source ibv_post_send(3), IBV_WR_LOCAL_INV

qp q RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=0 length=512 access=write
completion send id=1
post_send LOCAL_INV id=2 key=w
completion send id=2 opcode=LOCAL_INV
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 rkey=w ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
