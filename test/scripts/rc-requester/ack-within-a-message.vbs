# SPDX-License-Identifier: MIT
# An ACK of a message's first packet acknowledges that packet: only the rest comes again.
source Linux drivers/infiniband/hw/qib/qib_rc.c, reset_psn: from the oldest PSN that is not acknowledged

qp q RC mtu=1024 timeout=17
post_send SEND id=1 length=3072 at=0
> SEND_FIRST psn=0 length=1024 data=0
> SEND_MIDDLE psn=1 length=1024 data=1024
> SEND_LAST psn=2 length=1024 data=2048
< ACK psn=0 msn=0
within 2s > SEND_MIDDLE psn=1 length=1024 data=1024
> SEND_LAST psn=2 length=1024 data=2048
< ACK psn=2 msn=1
completion send id=1
