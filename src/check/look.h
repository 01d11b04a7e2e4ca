/* SPDX-License-Identifier: MIT */
/* What rules ask a device in the middle of a verb: a backend with a virtual clock does not move it. */
#ifndef SRC_CHECK_LOOK_H
#define SRC_CHECK_LOOK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <verbena/backend.h>

/* Return false if the device does not say. */
bool look_state(struct ibv_qp *qp, enum ibv_qp_state *state);
bool look_attr(struct ibv_qp *qp, struct ibv_qp_attr *attr);
bool look_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port);

/* Looks at the QP to which a connected QP leads; ah: at the QP of a number at the address handle. It may be a
 * QP of another process, which is asked. Returns false if the QP is unknown. */
bool look_peer(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, struct vb_peer *peer);

#endif /* SRC_CHECK_LOOK_H */
