# SPDX-License-Identifier: MIT
# If the Q_Key of a work request has its high bit set, the datagram has the Q_Key of the QP.
source Linux drivers/infiniband/hw/qib/qib_ud.c, qib_make_ud_req: "Qkeys with the high order bit set"
known rxe-6.1,rxe-6.12 high_qkey_is_sent

qp q UD qkey=0x11111111
post_send SEND id=1 length=8 qkey=0x80000000
> SEND_ONLY psn=0 length=8 qkey=0x11111111
completion send id=1
