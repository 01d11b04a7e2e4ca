# SPDX-License-Identifier: MIT
# REQ, REP and RTU make a connection. A DREQ ends it: the program's disconnect answers with DREP.
source Linux drivers/infiniband/core/cm.c, cm_req_handler, cm_rtu_handler, cm_dreq_handler; rdma_disconnect(3)

qp q RC
listen
< REQ local_qpn=0x100
cm_event CONNECT_REQUEST
accept
> REP remote_comm_id=0x5c000001 responder_resources=4 initiator_depth=4
< RTU
cm_event ESTABLISHED
< DREQ
cm_event DISCONNECTED
disconnect
> DREP remote_comm_id=0x5c000001
