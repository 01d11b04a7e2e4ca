/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_EXCHANGE_H
#define SRC_CONNECT_EXCHANGE_H

#include <verbena/rdma.h>

/* Makes a listener of vb_rdma_exchange_tcp() from a listening socket, which the listener closes; the
 * socket is closed also if the call fails. fd -1 fails with errno as it is. Returns 0 or errno. */
int tcp_listener_of(int fd, void **listener);

#endif /* SRC_CONNECT_EXCHANGE_H */
