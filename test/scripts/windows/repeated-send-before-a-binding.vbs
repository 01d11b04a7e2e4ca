# SPDX-License-Identifier: MIT
# A send that is repeated does not repeat the binding behind it.
source unsourced: a work request is executed once
known rxe-6.1,rxe-6.12 repeated_bindings_fail

qp q RC timeout=17
window w TYPE_2
post_send SEND id=1 length=8
post_send BIND_MW id=2 window=w at=0 length=512 access=write
> SEND_ONLY psn=0 length=8
within 2s > SEND_ONLY psn=0 length=8
< ACK psn=0 msn=1
completion send id=1
completion send id=2
