# SPDX-License-Identifier: MIT
# A send that fails locally does not end the repetitions of the sends before it.
source ibv_modify_qp(3): timeout, retry_cnt
known rxe-6.1 local_errors_end_repeats
known rxe-6.12 local_errors_flush_all

qp q RC timeout=17
post_send SEND id=1 length=8
post_send SEND id=2 length=8 lkey=bad
> SEND_ONLY psn=0 length=8
within 2s > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
completion send id=2 status=*
