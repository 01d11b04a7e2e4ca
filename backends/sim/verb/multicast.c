/* SPDX-License-Identifier: MIT */
/* Multicast groups. The engine knows the members of each group. */
#include "backends/sim/verb/verbs.h"

int verb_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return refuse_gone("attach_mcast", KIND_QP, ibv);
	driver_catch_up(&hold.world->driver);
	err = sim_multicast_attach(qp->engine, gid, lid);
	return err ? say_refused(hold.world, "attach_mcast", err) : 0;
}

int verb_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		return refuse_gone("detach_mcast", KIND_QP, ibv);
	driver_catch_up(&hold.world->driver);
	err = sim_multicast_detach(qp->engine, gid, lid);
	return err ? say_refused(hold.world, "detach_mcast", err) : 0;
}
