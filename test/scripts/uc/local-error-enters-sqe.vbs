# SPDX-License-Identifier: MIT
# A send whose own memory may not be read moves a UC QP to SQE, not to ERR. Nothing is sent.
source Linux drivers/infiniband/core/verbs.c, qp_state_table: SQE; that an error enters it is unsourced
known rxe-6.1 send_errors_end_qp,bad_lkey_is_operation_error
known rxe-6.12 send_errors_end_qp,bad_lkey_is_flush

qp q UC
post_send SEND id=1 length=8 lkey=bad
completion send id=1 status=LOC_PROT_ERR
state SQE
silence 5ms
