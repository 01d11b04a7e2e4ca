/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_DEVICE_H
#define SRC_CONNECT_DEVICE_H

#include <verbena/connect.h>

/* Reads the attributes of a port, which must be ACTIVE or ARMED, and a GID of it. Returns 0,
 * ENETDOWN, or the errno of the query; the sentence names the port. */
int port_read(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port);
int port_read_gid(struct ibv_context *context, uint8_t port_num, int gid_index, union ibv_gid *gid);

#endif /* SRC_CONNECT_DEVICE_H */
