# SPDX-License-Identifier: MIT
# With max_rd_atomic 0 a READ cannot be executed.
source Linux drivers/infiniband/sw/rdmavt/qp.c, rvt_qp_valid_operation; the status: unsourced
known rxe-6.1,rxe-6.12 reads_without_room_wait

qp q RC max_rd_atomic=0
post_send RDMA_READ id=1 length=8 addr=0
completion send id=1 status=LOC_QP_OP_ERR
