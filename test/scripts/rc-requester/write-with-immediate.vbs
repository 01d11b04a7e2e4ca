# SPDX-License-Identifier: MIT
# The immediate data stands in the last packet.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, next_opcode_rc

qp q RC
post_send RDMA_WRITE_WITH_IMM id=1 length=8 at=0 addr=0 imm=9
> RDMA_WRITE_ONLY_WITH_IMMEDIATE psn=0 addr=0 dma=8 length=8 data=0 imm=9
< ACK psn=0 msn=1
completion send id=1
