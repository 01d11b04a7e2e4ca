# SPDX-License-Identifier: MIT
# The responder's program learns of the violation by an event.
source ibv_get_async_event(3): QP_ACCESS_ERR
known rxe-6.1,rxe-6.12 no_affiliated_events

qp q RC
< RDMA_WRITE_ONLY psn=0 addr=0 dma=8 length=8 rkey=bad ack_request
> NAK_REMOTE_ACCESS psn=0 msn=0
event QP_ACCESS_ERR
