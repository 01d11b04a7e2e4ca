# SPDX-License-Identifier: MIT
# The passive side repeats a REP that no RTU answers.
source Linux drivers/infiniband/core/cm.c, cm_process_send_error; cma.c: CMA_CM_RESPONSE_TIMEOUT

qp q RC
listen
< REQ local_cm_response_timeout=16
cm_event CONNECT_REQUEST
accept
> REP remote_comm_id=0x5c000001
within 5s > REP remote_comm_id=0x5c000001
< RTU
cm_event ESTABLISHED
