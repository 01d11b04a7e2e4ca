# SPDX-License-Identifier: MIT
# The requester sends a misaligned atomic. The responder refuses it.
source unsourced: who checks the address of an atomic
known rxe-6.1,rxe-6.12 atomics_checked_when_posted

qp q RC
post_send ATOMIC_FETCH_AND_ADD id=1 addr=3 add=1
> FETCH_ADD psn=0 addr=3 add=1
< NAK_INVALID_REQUEST psn=0 msn=0
completion send id=1 status=REM_INV_REQ_ERR
