# SPDX-License-Identifier: MIT
# A long WRITE with immediate data that finds no receive is lost. Later messages arrive.
source Linux drivers/infiniband/hw/qib/qib_uc.c, qib_uc_rcv: a FIRST or ONLY packet begins a new message
known rxe-6.1,rxe-6.12 cut_writes_jam_uc

qp q UC mtu=1024
< RDMA_WRITE_FIRST psn=0 addr=0 dma=1032 length=1024
< RDMA_WRITE_LAST_WITH_IMMEDIATE psn=1 length=8 imm=1
silence 5ms
post_recv id=1 length=64
< SEND_ONLY psn=2 length=8
completion recv id=1 byte_len=8
