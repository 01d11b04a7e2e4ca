# SPDX-License-Identifier: MIT
# A request that leaves the window is refused, even inside the region.
source ibv_bind_mw(3): addr and length are the bounds of the window
known rxe-6.1,rxe-6.12 window_bounds_unchecked

qp q RC
window w TYPE_1
bind_mw window=w id=1 at=1024 length=512 access=write
completion send id=1
< RDMA_WRITE_ONLY psn=0 addr=1535 dma=2 length=2 rkey=w ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
