# SPDX-License-Identifier: MIT
# A long SEND is one message: it takes one receive and draws one ACK, with the PSN of its last packet. The MSN counts it once.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, execute: the MSN counts with the last packet

qp q RC mtu=1024
post_recv id=1 length=4096 at=4096
< SEND_FIRST psn=0 length=1024 data=100
< SEND_MIDDLE psn=1 length=1024 data=1124
< SEND_LAST psn=2 length=8 data=2148 ack_request
> ACK psn=2 msn=1
completion recv id=1 byte_len=2056
memory at=4096 length=2056 data=100
