# SPDX-License-Identifier: MIT
# A READ of no bytes is answered by a response without a payload.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey: "A zero-byte op is not required to set an addr or rkey"

qp q RC
< RDMA_READ_REQUEST psn=0 addr=0 dma=0 rkey=bad
> RDMA_READ_RESPONSE_ONLY psn=0 msn=1 length=0
