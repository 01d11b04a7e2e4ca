# SPDX-License-Identifier: MIT
# A window cannot be bound to memory of another protection domain.
source ibv_alloc_pd(3): a PD protects its objects from other PDs; the status is unsourced
known rxe-6.1 window_regions_of_any_pd
known rxe-6.12 bad_lkey_is_flush

qp q RC
qp other RC other_pd
window w TYPE_2
post_send BIND_MW id=1 window=w of=other at=0 length=512 access=write
completion send id=1 status=MW_BIND_ERR
state ERR
