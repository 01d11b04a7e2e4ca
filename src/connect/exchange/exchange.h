/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_EXCHANGE_H
#define SRC_CONNECT_EXCHANGE_H

#include <verbena/rdma.h>

/* Makes a listener of vb_rdma_exchange_tcp() from a listening socket, which the listener closes; the
 * socket is also closed if the call fails. Returns 0 or errno; for fd -1 the present errno. */
int tcp_listener_of(int fd, void **listener);

#endif /* SRC_CONNECT_EXCHANGE_H */
