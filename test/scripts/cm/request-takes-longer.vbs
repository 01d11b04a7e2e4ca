# SPDX-License-Identifier: MIT
# An MRA asks the active side to wait: the REQ is repeated later than its timeout says.
source Linux drivers/infiniband/core/cm.c, cm_mra_handler; docs/cm-messages.md, States: REQ_SENT, MRA
only ethernet A simulated device of InfiniBand has no IP address to connect from.

qp q RC
connect
> REQ service_id=0x1061d2f
< MRA message_mraed=0 service_timeout=21
silence 8s
< REP
cm_event CONNECT_RESPONSE
establish
> RTU
