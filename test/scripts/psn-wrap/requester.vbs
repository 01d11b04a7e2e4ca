# SPDX-License-Identifier: MIT
# PSNs have 24 bits: 0 follows 0xffffff.
source Linux drivers/infiniband/sw/rxe/rxe_verbs.h, psn_compare: 24 bits

qp q RC mtu=1024 first_psn=0xffffff
post_send SEND id=1 length=2048
> SEND_FIRST psn=@0xffffff length=1024
> SEND_LAST psn=@0 length=1024
< ACK psn=@0 msn=1
completion send id=1
