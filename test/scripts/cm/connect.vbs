# SPDX-License-Identifier: MIT
# The active side sends REQ, and RTU when the program establishes the connection; it ends the connection with DREQ.
source Linux drivers/infiniband/core/cm.c, ib_send_cm_req, ib_send_cm_rtu, ib_send_cm_dreq
only ethernet A simulated device of InfiniBand has no IP address to connect from.

qp q RC
connect
> REQ service_id=0x1061d2f retry_count=6 rnr_retry_count=6 responder_resources=4 initiator_depth=4
< REP
cm_event CONNECT_RESPONSE
establish
> RTU
disconnect
> DREQ remote_qpn=0x100
< DREP
cm_event DISCONNECTED
