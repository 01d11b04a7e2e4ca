# SPDX-License-Identifier: MIT
# A WRITE with a wrong rkey is dropped. The QP stays in RTS.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, ERR_RKEY on UC

qp q UC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 data=100 rkey=bad
silence 5ms
memory at=0 length=8 data=0
state RTS
