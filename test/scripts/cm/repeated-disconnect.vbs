# SPDX-License-Identifier: MIT
# A DREQ that comes again in TIMEWAIT is answered again.
source docs/cm-messages.md, States: TIMEWAIT, DREQ; Linux drivers/infiniband/core/cm.c, cm_dreq_handler

qp q RC
listen
< REQ
cm_event CONNECT_REQUEST
accept
> REP ...
< RTU
cm_event ESTABLISHED
< DREQ
cm_event DISCONNECTED
disconnect
> DREP remote_comm_id=0x5c000001
< DREQ
> DREP remote_comm_id=0x5c000001
