# SPDX-License-Identifier: MIT
# A compare-and-swap changes the value only if it equals `compare`. Each answer has the value from before.
source ibv_post_send(3): compare_add, swap

qp q RC
store at=0 number=7
< COMPARE_SWAP psn=0 addr=0 compare=8 swap=9
> ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=7
memory at=0 number=7
< COMPARE_SWAP psn=1 addr=0 compare=7 swap=9
> ATOMIC_ACKNOWLEDGE psn=1 msn=2 original=7
memory at=0 number=9
