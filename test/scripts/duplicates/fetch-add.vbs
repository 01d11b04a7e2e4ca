# SPDX-License-Identifier: MIT
# An atomic that comes again is answered from the saved result and executed once.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request: find_resource

qp q RC
store at=0 number=100
< FETCH_ADD psn=0 addr=0 add=5
> ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=100
< FETCH_ADD psn=0 addr=0 add=5
> ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=100
memory at=0 number=105
