# SPDX-License-Identifier: MIT
# A remote operation NAK ends its request with that error.
source Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_ack: AETH_NAK_REM_OP_ERR

qp q RC
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
< NAK_REMOTE_OPERATION psn=0 msn=0
completion send id=1 status=REM_OP_ERR
state ERR
