# SPDX-License-Identifier: MIT
# A datagram above the port's MTU is not sent; the send succeeds.
source C10-93.1.1, quoted in Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester
known mlx5 long_datagrams_fail

qp q UD
post_send SEND id=1 length=5000
completion send id=1
silence 5ms
