# SPDX-License-Identifier: MIT
# A reset ends the repetition of sends: in the next connection the requester obeys a sequence NAK.
source ibv_modify_qp(3): RESET; Linux drivers/infiniband/hw/qib/qib_rc.c, qib_restart_rc
known rxe-6.1,rxe-6.12 repeats_outlive_reset

qp q RC timeout=17 retry_cnt=1
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
within 2s > SEND_ONLY psn=0 length=8
modify RESET
modify INIT
modify RTR
modify RTS
post_send SEND id=2 length=16
> SEND_ONLY psn=0 length=16
< NAK_SEQUENCE psn=0 msn=0
> SEND_ONLY psn=0 length=16
< ACK psn=0 msn=1
completion send id=2
