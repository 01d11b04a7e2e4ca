/* SPDX-License-Identifier: MIT */
/* Connections in the log: events of the connection manager, addresses and parameters. */
#ifndef SRC_LOG_CONNECTION_H
#define SRC_LOG_CONNECTION_H

#include "src/layer/layer.h"
#include "src/log/structure.h"

#include <rdma/rdma_cma.h>

/* Writes the event that a call of cm_get_cm_event has taken. */
void connection_write(const struct layer_call *call, uint64_t time_ns);

/* Returns the number of the QP of a call's identifier; 0 if there is none. */
uint32_t connection_qpn(const struct layer_call *call);

/* Adds an address with its port, such as "10.0.0.1 7471"; NULL as null. */
void connection_add_address(struct line *line, const struct sockaddr *address);

/* The name of an enum rdma_port_space; NULL if there is none. */
const char *connection_port_space(uint64_t space);

/* The members of struct rdma_conn_param. */
extern const struct member connection_param[];

#endif /* SRC_LOG_CONNECTION_H */
