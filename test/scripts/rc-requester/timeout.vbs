# SPDX-License-Identifier: MIT
# Without an answer the requester repeats the packet after 4.096 us * 2^timeout, retry_cnt times. Then the send fails.
source ibv_modify_qp(3): timeout, retry_cnt; Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_from_attr: 4096 ns << timeout
known rxe-6.1/sim,rxe-6.12/sim timers_tick
known mlx5 ack_timeout_floor

qp q RC timeout=14 retry_cnt=2
post_send SEND id=7 length=16 at=64
> SEND_ONLY psn=0 length=16 data=64
+67.108864ms > SEND_ONLY psn=0 length=16 data=64
+67.108864ms > SEND_ONLY psn=0 length=16 data=64
+67.108864ms completion send id=7 status=RETRY_EXC_ERR
state ERR
