# SPDX-License-Identifier: MIT
# A SEND that invalidates a key of no window draws no answer, neither ACK nor NAK.
source google/rdma-unit-test unit/rc_test.cc, SendWithInvalidateBadRkey, quoting 9.9.6.3, class J
known rxe-6.1,rxe-6.12 refused_invalidations_acknowledged

qp q RC
post_recv id=1 length=64
< SEND_ONLY_WITH_INVALIDATE psn=0 length=8 key=0x77 ack_request
completion recv id=1 status=*
silence 5ms
