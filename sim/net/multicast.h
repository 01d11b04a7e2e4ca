/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups: which QPs are members of which.
 */
#ifndef SIM_NET_MULTICAST_H
#define SIM_NET_MULTICAST_H

#include "sim/object/path.h"

struct sim_engine;
struct sim_net;
struct sim_qp;

/* A QP in a group. */
struct sim_member {
	struct sim_member *next;
	struct sim_qp *qp;
	struct sim_device *device; /* the QP's */
	union ibv_gid gid;
	uint16_t lid; /* InfiniBand; else 0 */
};

/* ibv_attach_mcast(3): UD only. EINVAL for another type or a GID that is not multicast, ENOMEM.
 * Attaching twice is attaching once. Detaching a QP that is not attached: EINVAL. */
int sim_multicast_attach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid);
int sim_multicast_detach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* True if the QP is a member of a group. */
bool sim_multicast_has(const struct sim_qp *qp);

/* Takes a QP that ends out of its groups. */
void sim_multicast_forget(struct sim_qp *qp);

void sim_multicast_destroy(struct sim_net *net);

/* True if a packet on this route is for the member at the port. */
bool sim_multicast_matches(const struct sim_member *member, const struct sim_port *port,
			   const struct sim_route *route);

#endif
