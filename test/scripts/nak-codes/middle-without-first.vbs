# SPDX-License-Identifier: MIT
# A MIDDLE packet that no FIRST packet has begun is an invalid request.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_op_seq

qp q RC mtu=1024
< RDMA_WRITE_MIDDLE psn=0 length=1024 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
state ERR
