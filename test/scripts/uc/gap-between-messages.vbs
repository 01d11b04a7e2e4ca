# SPDX-License-Identifier: MIT
# A message on UC may begin at any PSN.
source Linux drivers/infiniband/hw/qib/qib_uc.c, qib_uc_rcv: a FIRST or ONLY packet begins a new message

qp q UC
post_recv id=1 length=64
< SEND_ONLY psn=100 length=8
completion recv id=1 byte_len=8
