# SPDX-License-Identifier: MIT
# A sender that is a member of the group receives its own multicast.
source ibv_attach_mcast(3): each attached QP receives a copy
# On scripts/softroce-script the machine itself is a member, for whom Linux repeats the packet: SoftRoCE passes there.
known rxe-6.1/sim,rxe-6.12/sim multicast_leaves_device

qp q UD
attach group=1
post_recv id=1 length=64 at=128
post_send SEND id=2 length=8 at=64 group=1 qkey=0x11111111
> SEND_ONLY group=1 psn=0 length=8 data=64 qkey=0x11111111
completion send id=2
completion recv id=1 byte_len=48
memory at=168 length=8 data=64
