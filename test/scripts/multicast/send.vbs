# SPDX-License-Identifier: MIT
# A send to a group goes to the group's GID and to QP 0xffffff. The sender need not be a member.
source ibv_attach_mcast(3); Linux drivers/infiniband/sw/rxe/rxe_hdr.h, IB_MULTICAST_QPN

qp q UD
post_send SEND id=1 length=8 at=64 group=1 qkey=0x11111111
> SEND_ONLY group=1 psn=0 length=8 data=64 qkey=0x11111111
completion send id=1
