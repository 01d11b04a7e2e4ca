# SPDX-License-Identifier: MIT
# A REQ to a service that nobody listens for is rejected: reason 8, the service ID is invalid.
source Linux drivers/infiniband/core/cm.c, cm_match_req: IB_CM_REJ_INVALID_SERVICE_ID

listen
< REQ service_id=0x1061d30
> REJ reason=8 message_rejected=0 remote_comm_id=0x5c000001
