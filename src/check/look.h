/* SPDX-License-Identifier: MIT */
/* Queries of a device in the middle of a verb. On a backend with a virtual clock they do not move time. */
#ifndef SRC_CHECK_LOOK_H
#define SRC_CHECK_LOOK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <verbena/backend.h>

/* Query a QP or a port. Return false if the device cannot answer. */
bool look_state(struct ibv_qp *qp, enum ibv_qp_state *state);
bool look_attr(struct ibv_qp *qp, struct ibv_qp_attr *attr);
bool look_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port);

/* Finds the QP to which a connected QP leads, or, if ah is not NULL, the QP remote_qpn at that address. It
 * may be in another process, which is then asked. Returns false if the QP is unknown. */
bool look_peer(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, struct vb_peer *peer);

#endif /* SRC_CHECK_LOOK_H */
