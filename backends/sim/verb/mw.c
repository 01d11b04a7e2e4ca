/* SPDX-License-Identifier: MIT */
/* Memory windows. The engine binds and invalidates them. */
#include "backends/sim/verb/verbs.h"

static bool device_has(const struct context *context, enum ibv_mw_type type)
{
	const unsigned int flags = context->device->engine->profile->limits.device_cap_flags;

	if (type == IBV_MW_TYPE_1)
		return flags & IBV_DEVICE_MEM_WINDOW;
	return flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

struct ibv_mw *verb_alloc_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type)
{
	HOLD hold = context_hold(ibv_pd->context);
	struct context *context = context_of(ibv_pd->context);
	struct pd *pd = pd_of(ibv_pd);
	struct mw *mw;
	int err;

	if (!pd)
		return say_null(ENOENT, "alloc_mw: no such PD");
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return say_null(EINVAL, "alloc_mw: there is no window of type %d", (int)type);
	if (!device_has(context, type))
		return say_null(EOPNOTSUPP, "alloc_mw: %s does not support windows of type %d",
				context->device->ibv.name, (int)type);
	mw = object_new(context, KIND_MW, "alloc_mw");
	if (!mw)
		return NULL;
	err = sim_mw_create(context->device->engine, pd->number, type, &mw->engine);
	if (err) {
		object_end(KIND_MW, mw);
		return say_null(err, "alloc_mw: all windows of %s are in use",
				context->device->ibv.name);
	}
	mw->ibv.pd = ibv_pd;
	mw->ibv.rkey = mw->engine->rkey;
	mw->ibv.type = type;
	mw->pd = pd;
	pd->users++;
	return &mw->ibv;
}

void verb_end_mw(void *object)
{
	struct mw *mw = object;

	sim_mw_destroy(mw->engine);
	mw->pd->users--;
	object_end(KIND_MW, mw);
}

int verb_dealloc_mw(struct ibv_mw *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct mw *mw = mw_of(ibv);

	if (!mw)
		return say(ENOENT, "dealloc_mw: no such window");
	verb_end_mw(mw);
	return 0;
}

/* --- binding --- */

/* The checks and their errors are those of rdma-core providers/mlx5/qp.c, mlx5_bind_mw. */
static int check_bind(const struct qp *qp, const struct mw *mw, const struct ibv_mw_bind_info *info)
{
	struct mr *mr = region_in(qp->ibv.context, info->mr);

	if (mw->ibv.type != IBV_MW_TYPE_1)
		return say(EINVAL, "bind_mw: window %u is of type 2; bind it with IBV_WR_BIND_MW",
			   mw->ibv.handle);
	if (!info->mr && (info->addr || info->length))
		return say(EINVAL, "bind_mw: a range needs an MR");
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return say(EINVAL, "bind_mw: a window of type 1 cannot be zero-based; use type 2");
	if (info->mr && !mr)
		return say(mr_in(qp->ibv.context, info->mr)
				   ? EINVAL
				   : object_missing(qp->ibv.context, info->mr),
			   "bind_mw: no such MR in this context, or a null MR");
	if (mr && mr->engine->pd != mw->engine->pd)
		return say(EPERM, "bind_mw: the MR and window %u are of different PDs",
			   mw->ibv.handle);
	return 0;
}

static int bind(struct ibv_qp *ibv_qp, struct ibv_mw *ibv_mw, struct ibv_mw_bind *info)
{
	struct qp *qp = qp_of(ibv_qp);
	struct mw *mw = mw_in(ibv_qp->context, ibv_mw);
	uint32_t lkey, rkey;
	int err;

	if (!qp)
		return say(ENOENT, "bind_mw: no such QP");
	if (!mw)
		return say(object_missing(ibv_qp->context, ibv_mw), "bind_mw: no such window");
	err = check_bind(qp, mw, &info->bind_info);
	if (err)
		return err;
	lkey = info->bind_info.mr ? ((struct mr *)info->bind_info.mr)->engine->lkey : 0;
	err = sim_qp_post_bind(qp->engine, mw->engine, info, lkey, &rkey);
	if (err)
		return say_refused(context_of(ibv_qp->context)->world, "bind_mw", err);
	ibv_mw->rkey = rkey;
	return 0;
}

int verb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *info)
{
	HOLD hold = context_hold(qp->context);
	int err = bind(qp, mw, info);

	driver_catch_up(&hold.world->driver);
	return err;
}
