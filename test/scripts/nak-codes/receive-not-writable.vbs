# SPDX-License-Identifier: MIT
# A responder that cannot write its own receive answers with a remote operation error.
source Linux drivers/infiniband/sw/rdmavt/qp.c, init_sge: LOC_PROT_ERR; Linux drivers/infiniband/hw/qib/qib_rc.c, qib_rc_rcv: nack_op_err
known rxe-6.1,rxe-6.12 bad_receive_is_operation_error

qp q RC
post_recv id=1 length=64 lkey=bad
< SEND_ONLY psn=0 length=16 ack_request
> NAK_REMOTE_OPERATION psn=0 msn=0
completion recv id=1 status=LOC_PROT_ERR
