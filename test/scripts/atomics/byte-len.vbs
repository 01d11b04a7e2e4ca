# SPDX-License-Identifier: MIT
# An atomic returns 8 bytes, whatever the length of its SGE.
source ibv_poll_cq(3): byte_len is the number of bytes transferred
known rxe-6.1,rxe-6.12 atomics_tell_all_bytes

qp q RC
post_send ATOMIC_FETCH_AND_ADD id=1 length=16 at=64 add=1
> FETCH_ADD psn=0 addr=0 add=1
< ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=5
completion send id=1 opcode=FETCH_ADD byte_len=8
