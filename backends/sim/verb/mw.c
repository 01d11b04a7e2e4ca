/* SPDX-License-Identifier: MIT */
/* Memory windows. The engine binds and invalidates them. */
#include "backends/sim/verb/verbs.h"

static int check_type(const struct context *context, enum ibv_mw_type type)
{
	const unsigned int flags = context->device->engine->profile->limits.device_cap_flags;
	const unsigned int needed = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW
							  : IBV_DEVICE_MEM_WINDOW_TYPE_2A |
								    IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return refuse_why("alloc_mw", (struct vb_why){VB_WHY_MW_TYPE, {type}});
	if (!(flags & needed))
		return refuse_why("alloc_mw",
				  (struct vb_why){VB_WHY_MW_TYPE_LACKING, {type, needed}});
	return 0;
}

struct ibv_mw *verb_alloc_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type)
{
	HOLD hold = context_hold(ibv_pd->context);
	struct context *context = context_of(ibv_pd->context);
	struct pd *pd = pd_of(ibv_pd);
	struct mw *mw;
	int err;

	if (!pd)
		return null_errno(refuse_gone("alloc_mw", KIND_PD, ibv_pd));
	err = check_type(context, type);
	if (err)
		return null_errno(err);
	mw = object_new(context, KIND_MW, "alloc_mw");
	if (!mw)
		return NULL;
	err = sim_mw_create(context->device->engine, pd->number, type, &mw->engine);
	if (err) {
		object_end(KIND_MW, mw);
		return null_errno(say_refused(hold.world, "alloc_mw", err));
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
		return refuse_gone("dealloc_mw", KIND_MW, ibv);
	verb_end_mw(mw);
	return 0;
}

/* --- binding --- */

#define BIND "bind_mw"

static int refuse_bind(enum vb_reason reason, uint64_t first, uint64_t second)
{
	return refuse_why(BIND, (struct vb_why){reason, {first, second}});
}

/* The checks and their errors are those of rdma-core providers/mlx5/qp.c, mlx5_bind_mw. */
static int check_bind(const struct qp *qp, const struct mw *mw, const struct ibv_mw_bind_info *info)
{
	const struct ibv_context *context = qp->ibv.context;
	struct mr *mr = region_in(context, info->mr);

	if (mw->ibv.type != IBV_MW_TYPE_1)
		return refuse_bind(VB_WHY_BIND_MW_TYPE, mw->ibv.rkey, 0);
	if (!info->mr && (info->addr || info->length))
		return refuse_bind(VB_WHY_BIND_MW_NO_MR, info->length, info->addr);
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return refuse_bind(VB_WHY_BIND_MW_ZERO_BASED, mw->ibv.rkey, 0);
	if (info->mr && !mr)
		return mr_in(context, info->mr) ? refuse_plainly(BIND, VB_WHY_BIND_MW_NULL_MR)
						: refuse_missing(BIND, KIND_MR, context, info->mr);
	if (mr && mr->engine->pd != mw->engine->pd)
		return refuse_bind(VB_WHY_BIND_MW_PD, mr->ibv.lkey, mw->ibv.rkey);
	return 0;
}

static int bind(struct ibv_qp *ibv_qp, struct ibv_mw *ibv_mw, struct ibv_mw_bind *info)
{
	struct qp *qp = qp_of(ibv_qp);
	struct mw *mw = mw_in(ibv_qp->context, ibv_mw);
	uint32_t lkey, rkey;
	int err;

	if (!qp)
		return refuse_gone(BIND, KIND_QP, ibv_qp);
	if (!mw)
		return refuse_missing(BIND, KIND_MW, ibv_qp->context, ibv_mw);
	err = check_bind(qp, mw, &info->bind_info);
	if (err)
		return err;
	lkey = info->bind_info.mr ? ((struct mr *)info->bind_info.mr)->engine->lkey : 0;
	err = sim_qp_post_bind(qp->engine, mw->engine, info, lkey, &rkey);
	if (err)
		return say_refused(context_of(ibv_qp->context)->world, BIND, err);
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
