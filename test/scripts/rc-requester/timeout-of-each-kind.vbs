# SPDX-License-Identifier: MIT
# The number of retries is exact, whatever the timer is.
source ibv_modify_qp(3): retry_cnt; Linux drivers/infiniband/hw/qib/qib_rc.c, qib_restart_rc: s_retry
known mlx5 ack_timeout_floor

qp q RC timeout=8 retry_cnt=3
post_send RDMA_WRITE id=7 length=16 at=64 addr=0
> RDMA_WRITE_ONLY psn=0 addr=0 dma=16 length=16
within 50ms > RDMA_WRITE_ONLY psn=0 addr=0 dma=16 length=16
within 50ms > RDMA_WRITE_ONLY psn=0 addr=0 dma=16 length=16
within 50ms > RDMA_WRITE_ONLY psn=0 addr=0 dma=16 length=16
within 50ms completion send id=7 status=RETRY_EXC_ERR
