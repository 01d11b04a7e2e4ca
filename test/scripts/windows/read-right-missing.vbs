# SPDX-License-Identifier: MIT
# A READ by a window that grants only WRITE is refused.
source ibv_bind_mw(3): mw_access_flags

qp q RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=0 length=512 access=write
completion send id=1
< RDMA_READ_REQUEST psn=0 addr=0 dma=8 rkey=w
> NAK_REMOTE_ACCESS psn=0 msn=0
