# SPDX-License-Identifier: MIT
# LOCAL_INV of a key that no window has fails.
source unsourced; Linux drivers/infiniband/sw/rxe/rxe_mw.c, rxe_invalidate_mw, fails as well
only sim SoftRoCE of Linux 6.1 crashes its kernel (drivers/infiniband/sw/rxe/rxe_mw.c, rxe_invalidate_mw)
known rxe-6.1 bad_invalidation_is_operation_error
known rxe-6.12 bad_lkey_is_flush

qp q RC
post_send LOCAL_INV id=1 key=0x77
completion send id=1 status=MW_BIND_ERR
state ERR
