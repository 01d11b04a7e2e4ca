# SPDX-License-Identifier: MIT
# The completion of a receive on a connection has no IBV_WC_GRH.
source ibv_poll_cq(3): IBV_WC_GRH is valid only for UD QPs
known rxe-6.1,rxe-6.12 grh_flag_on_connections

qp q RC
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8 flags=none
