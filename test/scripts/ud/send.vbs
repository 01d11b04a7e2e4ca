# SPDX-License-Identifier: MIT
# A datagram has the Q_Key of the work request and the QPN of its sender.
source ibv_post_send(3): wr.ud; ibv_poll_cq(3): src_qp

qp q UD
post_send SEND id=1 length=8 at=64 qkey=0x22222222
> SEND_ONLY psn=0 length=8 data=64 qkey=0x22222222
completion send id=1
