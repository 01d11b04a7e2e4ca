/* SPDX-License-Identifier: MIT */
/* What rules ask a device in the middle of a verb: a backend with a virtual clock does not move it. */
#ifndef SRC_CHECK_LOOK_H
#define SRC_CHECK_LOOK_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Return false if the device does not say. */
bool look_state(struct ibv_qp *qp, enum ibv_qp_state *state);
bool look_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port);

#endif /* SRC_CHECK_LOOK_H */
