# SPDX-License-Identifier: MIT
# A REQ that comes again after REP was sent makes no second connection: there is one event.
source docs/cm-messages.md, States: REP_SENT, REQ: nothing; Linux drivers/infiniband/core/cm.c, cm_dup_req_handler

qp q RC
listen
< REQ
cm_event CONNECT_REQUEST
accept
> REP remote_comm_id=0x5c000001
< REQ
silence 5ms
< RTU
cm_event ESTABLISHED
