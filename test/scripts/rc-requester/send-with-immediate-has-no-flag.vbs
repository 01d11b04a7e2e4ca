# SPDX-License-Identifier: MIT
# The completion of a send with immediate has no flag: the immediate data are the receiver's.
source ibv_poll_cq(3): IBV_WC_WITH_IMM, imm_data is valid, of receives
known rxe-6.1,rxe-6.12 sends_tell_immediate

qp q RC
post_send SEND_WITH_IMM id=1 length=8 imm=7
> SEND_ONLY_WITH_IMMEDIATE psn=0 length=8 imm=7
< ACK psn=0 msn=1
completion send id=1 flags=none
