/* SPDX-License-Identifier: MIT */
/* Multicast groups. The engine knows the members of each group. */
#include "backends/sim/verb/verbs.h"

int verb_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return say(ENOENT, "attach_mcast: no such QP");
	driver_catch_up(&hold.world->driver);
	err = sim_multicast_attach(qp->engine, gid, lid);
	if (err == ENOMEM)
		return say(err, "attach_mcast: the device has no room for more groups or members");
	return err ? say(err, "attach_mcast: not a UD QP, or not a multicast GID") : 0;
}

int verb_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);

	if (!qp)
		return say(ENOENT, "detach_mcast: no such QP");
	driver_catch_up(&hold.world->driver);
	return sim_multicast_detach(qp->engine, gid, lid)
		       ? say(EINVAL, "detach_mcast: the QP is not in that group")
		       : 0;
}
