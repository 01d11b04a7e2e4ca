# SPDX-License-Identifier: MIT
# A REJ of the peer ends the attempt to connect.
source Linux drivers/infiniband/core/cm.c, cm_rej_handler; rdma_get_cm_event(3): REJECTED
only ethernet A simulated device of InfiniBand has no IP address to connect from.

qp q RC
connect
> REQ service_id=0x1061d2f
< REJ reason=28 message_rejected=0
cm_event REJECTED
silence 5ms
