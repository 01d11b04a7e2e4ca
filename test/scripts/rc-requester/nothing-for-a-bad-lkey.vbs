# SPDX-License-Identifier: MIT
# A send whose own memory may not be read fails at the requester: no packet leaves the device.
source Linux drivers/infiniband/sw/rdmavt/qp.c, init_sge: LOC_PROT_ERR
known rxe-6.1 bad_lkey_is_operation_error
known rxe-6.12 bad_lkey_is_flush

qp q RC
post_send SEND id=1 length=8 lkey=bad
completion send id=1 status=LOC_PROT_ERR
state ERR
silence 5ms
