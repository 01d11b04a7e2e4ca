# SPDX-License-Identifier: MIT
# A DREQ with IDs that no connection has is answered, so that its sender ends.
source Linux drivers/infiniband/core/cm.c, cm_issue_drep

listen
< DREQ remote_comm_id=0x77 remote_qpn=0x10
> DREP remote_comm_id=0x5c000001 local_comm_id=0x77
