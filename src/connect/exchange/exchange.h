/* SPDX-License-Identifier: MIT */
/*
 * Both carriers of lines, TCP and the memory of this process, are a struct vb_rdma_exchange. This
 * header has what the ranks of a team need of TCP beside that interface.
 */
#ifndef SRC_CONNECT_EXCHANGE_H
#define SRC_CONNECT_EXCHANGE_H

#include <netdb.h>
#include <verbena/rdma.h>

/* Looks up a host (NULL: any, with AI_PASSIVE in flags). Ended by freeaddrinfo(3). Returns 0, or
 * EINVAL with a sentence. */
int tcp_resolve(const char *host, uint16_t port, int flags, struct addrinfo **found);

/* Opens a line to one of the addresses, as struct vb_rdma_exchange.connect. */
int tcp_open(const struct addrinfo *found, void **line);

/* Makes a line or listener of a socket, which it closes in the end, and also if the call fails.
 * Returns 0 or ENOMEM. */
int tcp_object(int fd, void **made);

#endif /* SRC_CONNECT_EXCHANGE_H */
