# SPDX-License-Identifier: MIT
# After an RNR NAK the responder drops later requests without an answer until the refused one comes again.
source Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv_error: none while r_nak_state
known rxe-6.1,rxe-6.12 rnr_naks_stop_nothing

qp q RC
< SEND_ONLY psn=0 length=8 ack_request
> RNR_NAK psn=0 msn=0
< SEND_ONLY psn=1 length=8 ack_request
silence 5ms
post_recv id=1 length=64
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
