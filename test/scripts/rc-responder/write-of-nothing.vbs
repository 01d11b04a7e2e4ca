# SPDX-License-Identifier: MIT
# A WRITE of no bytes needs neither a right rkey nor a right address.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_rkey: "A zero-byte op is not required to set an addr or rkey"

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0xffffffff dma=0 rkey=bad ack_request
> ACK psn=0 msn=1
state RTS
