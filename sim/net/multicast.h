/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups and their members.
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
	uint16_t lid;	    /* InfiniBand; else 0 */
	uint16_t given_lid; /* as the program gave it */
};

/* ibv_attach_mcast(3) and ibv_detach_mcast(3). Attaching a member again has no effect. EINVAL for a
 * QP that is not UD, a GID or LID that is not multicast, and detaching a QP that is no member;
 * ENOMEM; the errors of the way out (sim/net/wire.h). */
int sim_multicast_attach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid);
int sim_multicast_detach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* Returns true if the QP is a member of any group. */
bool sim_multicast_has(const struct sim_qp *qp);

/* Takes a QP out of its groups. */
void sim_multicast_forget(struct sim_qp *qp);

/* Frees all memberships. */
void sim_multicast_destroy(struct sim_net *net);

/* Returns true if a packet of this route is for the member, and the member's device has the
 * port. */
bool sim_multicast_matches(const struct sim_member *member, const struct sim_port *port,
			   const struct sim_route *route);

#endif
