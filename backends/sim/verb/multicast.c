/* SPDX-License-Identifier: MIT */
/* Multicast groups. The engine knows the members of each group. */
#include "backends/sim/verb/verbs.h"

int verb_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	driver_catch_up(&hold.world->driver);
	err = qp ? sim_multicast_attach(qp->engine, gid, lid) : EINVAL;
	if (err == ENOMEM)
		return say(err, "attach_mcast: the device has no room for more groups or members");
	return err ? say(err, "attach_mcast: no such QP, not a UD QP, or not a multicast GID") : 0;
}

int verb_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);

	driver_catch_up(&hold.world->driver);
	return qp && !sim_multicast_detach(qp->engine, gid, lid)
		       ? 0
		       : say(EINVAL, "detach_mcast: no such QP, or the QP is not in that group");
}
