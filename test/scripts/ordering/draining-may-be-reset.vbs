# SPDX-License-Identifier: MIT
# A QP whose send queue drains may be reset. Its sends end without a completion.
source ibv_modify_qp(3): RESET is allowed from every state
known rxe-6.1,rxe-6.12 draining_refuses_changes

qp q RC timeout=0
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
modify SQD
modify RESET
state RESET
silence 5ms
