# SPDX-License-Identifier: MIT
# The program rejects a request: reason 28, the consumer's.
source Linux drivers/infiniband/core/cma.c, rdma_reject: IB_CM_REJ_CONSUMER_DEFINED

listen
< REQ
cm_event CONNECT_REQUEST
reject
> REJ reason=28 message_rejected=0 remote_comm_id=0x5c000001
