# SPDX-License-Identifier: MIT
# Only the QP that bound a window of type 2 may invalidate it. A SEND with Invalidate to another QP leaves the window bound.
source ibv_bind_mw(3) names type 2 QP-associated; ibv_alloc_mw(3)
known rxe-6.1,rxe-6.12 windows_invalidated_by_any_qp

qp q RC
qp r RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=0 length=512 access=write
completion send id=1
post_recv id=2 length=64 qp=r
< SEND_ONLY_WITH_INVALIDATE psn=0 length=8 key=w ack_request qp=r
completion recv id=2 status=* qp=r
silence 5ms
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 rkey=w ack_request
> ACK psn=0 msn=1
