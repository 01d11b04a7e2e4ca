# Without an answer the requester repeats its packet after 4.096 us * 2^timeout, retry_cnt times. Then the send fails.
source ibv_modify_qp(3): timeout, retry_cnt

qp q RC timeout=8 retry_cnt=2
post_send SEND id=7 length=16 at=64
> SEND_ONLY psn=0 length=16 data=64
+1.048576ms > SEND_ONLY psn=0 length=16 data=64
+1.048576ms > SEND_ONLY psn=0 length=16 data=64
+1.048576ms completion send id=7 status=RETRY_EXC_ERR
state ERR
