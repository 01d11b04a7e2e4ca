# SPDX-License-Identifier: MIT
# The answer has the value from before the addition.
source ibv_post_send(3): compare_add

qp q RC
store at=8 number=0xffffffffffffffff
< FETCH_ADD psn=0 addr=8 add=3
> ATOMIC_ACKNOWLEDGE psn=0 msn=1 original=0xffffffffffffffff
memory at=8 number=2
