# SPDX-License-Identifier: MIT
# The PSNs of a READ response wrap, too.
source Linux drivers/infiniband/sw/rxe/rxe_verbs.h, psn_compare: 24 bits

qp q RC mtu=1024 first_peer_psn=0xffffff
< RDMA_READ_REQUEST psn=@0xffffff addr=0 dma=2056
> RDMA_READ_RESPONSE_FIRST psn=@0xffffff msn=1 length=1024 data=0
> RDMA_READ_RESPONSE_MIDDLE psn=@0 length=1024 data=1024
> RDMA_READ_RESPONSE_LAST psn=@1 msn=1 length=8 data=2048
