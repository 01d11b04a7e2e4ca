# SPDX-License-Identifier: MIT
# Binding a range that leaves its region fails, even if address plus length wraps around.
source ibv_bind_mw(3): a window is bound to a part of its region
known rxe-6.1 window_ranges_wrap
known rxe-6.12 bad_lkey_is_flush,window_ranges_wrap

qp q RC
window w TYPE_2
post_send BIND_MW id=1 window=w at=4096 length=0xfffffffffffffc00 access=write
completion send id=1 status=MW_BIND_ERR
state ERR
