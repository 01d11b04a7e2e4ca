# SPDX-License-Identifier: MIT
# A long message has FIRST, MIDDLE and LAST packets of the path MTU. The last one asks for an ACK.
source Linux drivers/infiniband/sw/rxe/rxe_req.c, next_opcode_rc

qp q RC mtu=256
post_send SEND_WITH_IMM id=1 length=520 at=0 imm=0x55
> SEND_FIRST psn=0 length=256 data=0
> SEND_MIDDLE psn=1 length=256 data=256
> SEND_LAST_WITH_IMMEDIATE psn=2 length=8 data=512 imm=0x55 ack_request
< ACK psn=2 msn=1
completion send id=1
