# SPDX-License-Identifier: MIT
# A SEND with Invalidate ends the window's access before its receive completes.
source ibv_post_send(3), IBV_WR_SEND_WITH_INV; ibv_poll_cq(3), IBV_WC_WITH_INV
known rxe-6.1,rxe-6.12 invalidation_told_as_checksum,grh_flag_on_connections

qp q RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=0 length=512 access=write
completion send id=1
post_recv id=2 length=64
< SEND_ONLY_WITH_INVALIDATE psn=0 length=8 key=w ack_request
> ACK psn=0 msn=1
completion recv id=2 byte_len=8 flags=WITH_INV
< RDMA_WRITE_ONLY psn=1 addr=0 dma=8 length=8 rkey=w ack_request
> NAK_REMOTE_ACCESS psn=1 msn=1
