# SPDX-License-Identifier: MIT
# The requester sends the operands, and puts the old value into its buffer.
source ibv_post_send(3): compare_add, swap

qp q RC
post_send ATOMIC_FETCH_AND_ADD id=1 at=16 addr=64 add=5
> FETCH_ADD psn=0 addr=64 add=5
< ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=1000
completion send id=1 opcode=FETCH_ADD
memory at=16 number=1000
post_send ATOMIC_CMP_AND_SWP id=2 at=16 addr=64 compare=1005 swap=6
> COMPARE_SWAP psn=1 addr=64 compare=1005 swap=6
< ATOMIC_ACKNOWLEDGE psn=1 msn=2 original=1005
completion send id=2 opcode=COMP_SWAP
memory at=16 number=1005
