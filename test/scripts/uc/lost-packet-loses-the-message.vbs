# SPDX-License-Identifier: MIT
# A gap within a message loses the message. Its receive serves the next one.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_psn: UC drops the message
known rxe-6.1/real,rxe-6.12/real - after the cut message the device loses the next one as well

qp q UC mtu=1024
post_recv id=1 length=4096
< SEND_FIRST psn=0 length=1024
< SEND_LAST psn=2 length=8
silence 5ms
< SEND_ONLY psn=3 length=8
completion recv id=1 byte_len=8
