# SPDX-License-Identifier: MIT
# A bound window gives the peer access to its part of the memory.
source ibv_bind_mw(3); ibv_post_send(3), IBV_WR_BIND_MW

qp q RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=1024 length=512 access=write
completion send id=1 opcode=BIND_MW
< RDMA_WRITE_ONLY psn=0 addr=1024 dma=8 length=8 data=700 rkey=w ack_request
> ACK psn=0 msn=1
memory at=1024 length=8 data=700
