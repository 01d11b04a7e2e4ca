# SPDX-License-Identifier: MIT
# The immediate data of the last packet is in the completion.
source ibv_poll_cq(3): imm_data, IBV_WC_WITH_IMM

qp q RC
post_recv id=1 length=64
< SEND_ONLY_WITH_IMMEDIATE psn=0 length=4 data=9 imm=0x01020304 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=4 imm=0x01020304
