# SPDX-License-Identifier: MIT
# A SEND is one packet of the next PSN. The ACK of this PSN completes it.
source ibv_post_send(3), ibv_poll_cq(3)

qp q RC
post_send SEND id=1 length=8 at=64
> SEND_ONLY psn=0 length=8 data=64 ack_request
< ACK psn=0 msn=1
completion send id=1 opcode=SEND
