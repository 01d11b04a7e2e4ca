# SPDX-License-Identifier: MIT
# The requester repeats an atomic with the same PSN when no answer comes. A late answer completes it once.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester: req_retry makes the packets again from the WQE

qp q RC timeout=17
post_send ATOMIC_FETCH_AND_ADD id=1 addr=0 add=5
> FETCH_ADD psn=0 addr=0 add=5
within 2s > FETCH_ADD psn=0 addr=0 add=5
< ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=3
completion send id=1
silence 1ms
