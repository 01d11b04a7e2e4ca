# SPDX-License-Identifier: MIT
# Only ibv_bind_mw binds a window of type 1. Posting BIND_MW for it is refused.
source ibv_bind_mw(3): for windows of type 1; the errno is unsourced
known rxe-6.1,rxe-6.12 type_1_bound_by_sends

qp q RC
window w TYPE_1
post_send BIND_MW id=1 window=w at=0 length=512 access=write = EINVAL
