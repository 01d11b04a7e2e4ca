# SPDX-License-Identifier: MIT
# A SEND that names no SRQ of the XRC domain is an invalid request.
source unsourced
known rxe-6.1,rxe-6.12 - SoftRoCE has no XRC.

srq s xrc
qp q XRC_RECV
< SEND_ONLY psn=0 srqn=0xabcdef length=8 ack_request
> NAK_INVALID_REQUEST psn=0 msn=0
