# SPDX-License-Identifier: MIT
# All packets of a message that has drawn an RNR NAK come again.
source Linux drivers/infiniband/hw/qib/qib_rc.c, do_rc_ack: RNR NAK, reset_psn

qp q RC mtu=1024
post_send SEND id=1 length=2048 at=64
> SEND_FIRST psn=0 length=1024 data=64
> SEND_LAST psn=1 length=1024 data=1088
< RNR_NAK psn=0 timer=1 msn=0
within 50ms > SEND_FIRST psn=0 length=1024 data=64
> SEND_LAST psn=1 length=1024 data=1088
< ACK psn=1 msn=1
completion send id=1
