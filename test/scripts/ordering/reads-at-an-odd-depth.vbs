# SPDX-License-Identifier: MIT
# With max_rd_atomic 3, at most 3 READs are outstanding.
source ibv_modify_qp(3): max_rd_atomic
known rxe-6.1,rxe-6.12 reads_round_up

qp q RC max_rd_atomic=3
post_send RDMA_READ id=1 length=8 addr=0
post_send RDMA_READ id=2 length=8 addr=64
post_send RDMA_READ id=3 length=8 addr=128
post_send RDMA_READ id=4 length=8 addr=192
> RDMA_READ_REQUEST psn=0 addr=0 dma=8
> RDMA_READ_REQUEST psn=1 addr=64 dma=8
> RDMA_READ_REQUEST psn=2 addr=128 dma=8
silence 5ms
