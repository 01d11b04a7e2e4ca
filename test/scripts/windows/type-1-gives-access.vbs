# SPDX-License-Identifier: MIT
# The verb ibv_bind_mw binds a window of type 1 and gives it a new key.
source ibv_bind_mw(3)

qp q RC
window w TYPE_1
bind_mw window=w id=1 at=1024 length=512 access=write
completion send id=1 opcode=BIND_MW
< RDMA_WRITE_ONLY psn=0 addr=1024 dma=8 length=8 data=700 rkey=w ack_request
> ACK psn=0 msn=1
memory at=1024 length=8 data=700
