# SPDX-License-Identifier: MIT
# A SEND that finds no receive is dropped without an answer.
source Linux drivers/infiniband/sw/rxe/rxe_resp.c, ERR_RNR on UC

qp q UC
< SEND_ONLY psn=0 length=8
silence 5ms
post_recv id=1 length=64
< SEND_ONLY psn=1 length=8
completion recv id=1 byte_len=8
