# SPDX-License-Identifier: MIT
# The memory of an SRQ's receives is of the SRQ's PD; the QP may be of another one.
source ibv_create_srq(3): the SRQ belongs to its PD
known rxe-6.1,rxe-6.12 srq_memory_is_of_the_qp

srq s other_pd
qp q RC srq=s
post_recv id=1 length=64 srq=s
< SEND_ONLY psn=0 length=8 ack_request
> ACK psn=0 msn=1
completion recv id=1 byte_len=8
