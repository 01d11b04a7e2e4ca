/* SPDX-License-Identifier: MIT */
/* Memory windows: the engine binds and invalidates, here are the objects. */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

static bool device_has(const struct context *context, enum ibv_mw_type type)
{
	const unsigned int flags = context->device->engine->profile->limits.device_cap_flags;

	if (type == IBV_MW_TYPE_1)
		return flags & IBV_DEVICE_MEM_WINDOW;
	return flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
}

static struct mw *new_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type)
{
	struct context *context = context_of(ibv_pd->context);
	struct pd *pd = pd_of(ibv_pd);
	struct mw *mw;
	uint32_t handle;
	int err;

	if (!pd || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2))
		return say_null(EINVAL, "alloc_mw: no such PD, or no type %d", (int)type);
	if (!device_has(context, type))
		return say_null(EOPNOTSUPP, "alloc_mw: %s has no windows of type %d",
				context->device->ibv.name, (int)type);
	mw = object_new(context, KIND_MW, &handle);
	if (!mw)
		return say_null(ENOMEM, "alloc_mw: out of memory");
	err = sim_mw_create(context->device->engine, pd->number, type, &mw->engine);
	if (err) {
		object_end(context, KIND_MW, handle, mw);
		return say_null(err, "alloc_mw: %s has no more windows", context->device->ibv.name);
	}
	mw->engine->user = mw;
	mw->ibv = (struct ibv_mw){
		.context = ibv_pd->context,
		.pd = ibv_pd,
		.rkey = mw->engine->rkey,
		.handle = handle,
		.type = type,
	};
	pd->users++;
	return mw;
}

struct ibv_mw *control_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vb_sim *world = context_of(pd->context)->world;
	bool locked = world_lock(world);
	struct mw *mw = new_mw(pd, type);

	world_unlock(world, locked);
	return mw ? &mw->ibv : NULL;
}

void control_end_mw(struct context *context, struct mw *mw)
{
	sim_mw_destroy(mw->engine);
	((struct pd *)mw->ibv.pd)->users--;
	object_end(context, KIND_MW, mw->ibv.handle, mw);
}

int control_dealloc_mw(struct ibv_mw *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct mw *mw = mw_of(ibv);

	if (mw)
		control_end_mw(context, mw);
	world_unlock(context->world, locked);
	return mw ? 0 : say(EINVAL, "dealloc_mw: no such window");
}

/* --- binding --- */

/* The region that a binding names: of the QP's context, and one that has an rkey. NULL for none. */
static struct mr *region_for(const struct ibv_context *context, struct ibv_mr *ibv)
{
	struct mr *mr = ibv && ibv->context == context ? mr_of(ibv) : NULL;

	return mr && mr->engine->kind == SIM_MR_REGION ? mr : NULL;
}

/* ibv_bind_mw() of <infiniband/verbs.h> has these checks and their errors. */
static int check_bind(const struct qp *qp, const struct mw *mw, const struct ibv_mw_bind_info *info)
{
	struct mr *mr = region_for(qp->ibv.context, info->mr);

	if (mw->ibv.type != IBV_MW_TYPE_1)
		return say(EINVAL, "bind_mw: window %u is of type 2, which is bound by a posted WR",
			   mw->ibv.handle);
	if (!info->mr && (info->addr || info->length))
		return say(EINVAL, "bind_mw: a range without an MR");
	if (info->mw_access_flags & IBV_ACCESS_ZERO_BASED &&
	    sim_qp_device(qp->engine)->quirks.zero_based_type_1_refused)
		return say(EINVAL, "bind_mw: this device has no windows of type 1 from 0");
	if (info->mr && !mr)
		return say(EINVAL, "bind_mw: no such MR in this context");
	if (mr && mr->engine->pd != mw->engine->pd)
		return say(EPERM, "bind_mw: the MR is of another PD than window %u",
			   mw->ibv.handle);
	return 0;
}

static int bind_locked(struct ibv_qp *ibv_qp, struct ibv_mw *ibv_mw, struct ibv_mw_bind *bind)
{
	struct qp *qp = qp_of(ibv_qp);
	struct mw *mw = ibv_mw->context == ibv_qp->context ? mw_of(ibv_mw) : NULL;
	uint32_t lkey, rkey;
	int err;

	if (!qp || !mw)
		return say(EINVAL, "bind_mw: no such %s", qp ? "window" : "QP");
	err = check_bind(qp, mw, &bind->bind_info);
	if (err)
		return err;
	lkey = bind->bind_info.mr ? ((struct mr *)bind->bind_info.mr)->engine->lkey : 0;
	err = sim_qp_post_bind(qp->engine, mw->engine, bind, lkey, &rkey);
	if (err)
		return say(err, "bind_mw: QP 0x%x takes no binding of window %u", ibv_qp->qp_num,
			   ibv_mw->handle);
	ibv_mw->rkey = rkey;
	return 0;
}

int control_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vb_sim *world = context_of(qp->context)->world;
	bool locked = world_lock(world);
	int err = bind_locked(qp, mw, bind);

	if (world->driver.real)
		driver_catch_up(world);
	world_unlock(world, locked);
	return err;
}

bool control_find_mw(void *arg, const struct sim_qp *engine, struct ibv_mw *ibv_mw,
		     struct ibv_mr *ibv_mr, uint32_t *mw_number, uint32_t *region_lkey)
{
	const struct qp *qp = sim_qp_user(engine);
	struct mw *mw = NULL;
	struct mr *mr = region_for(qp->ibv.context, ibv_mr);

	if (ibv_mw && ibv_mw->context == qp->ibv.context)
		mw = mw_of(ibv_mw);
	if (!mw || (ibv_mr && !mr))
		return false;
	*mw_number = mw->engine->number;
	*region_lkey = mr ? mr->engine->lkey : 0;
	return true;
}
