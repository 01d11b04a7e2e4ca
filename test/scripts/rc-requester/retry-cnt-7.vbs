# SPDX-License-Identifier: MIT
# With retry_cnt 7 the requester retries seven times, and not for ever.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_restart_rc: counts s_retry down from any value
known rxe-6.1,rxe-6.12 retry_7_is_endless
known mlx5 ack_timeout_floor

qp q RC timeout=8 retry_cnt=7
post_send SEND id=1 length=8
> SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms > SEND_ONLY psn=0 length=8
within 50ms completion send id=1 status=RETRY_EXC_ERR
