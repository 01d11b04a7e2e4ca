/* SPDX-License-Identifier: MIT */
/* Memory regions beyond ibv_reg_mr(): changing one, the null MR, advice. */
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

/* --- ibv_rereg_mr(3) --- */

static int refuse_rereg(int code, int err, const char *cause)
{
	say_minus(err, "rereg_mr: %s", cause);
	return code;
}

static void take_change(struct mr *mr, int flags, struct pd *pd, void *addr, size_t length)
{
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		((struct pd *)mr->ibv.pd)->users--;
		pd->users++;
		mr->ibv.pd = &pd->ibv;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = addr;
		mr->ibv.length = length;
	}
	mr->ibv.lkey = mr->engine->lkey;
	mr->ibv.rkey = mr->engine->rkey;
}

/* What libibverbs finds is ERR_INPUT; what the kernel and its driver find is ERR_CMD. */
static int rereg(struct ibv_mr *ibv, int flags, struct ibv_pd *ibv_pd, void *addr, size_t length,
		 int access)
{
	struct mr *mr = mr_of(ibv);
	struct sim_mr_init init = {
		.addr = addr,
		.length = length,
		.iova = (uintptr_t)addr,
		.access = access,
	};
	struct pd *pd = NULL;
	int err;

	if (!mr || mr->dm || mr->root || mr->engine->kind != SIM_MR_REGION)
		return refuse_rereg(IBV_REREG_MR_ERR_INPUT, EINVAL,
				    "no such MR, a null MR, an import, or one of device memory");
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr)))
		return refuse_rereg(IBV_REREG_MR_ERR_INPUT, EINVAL,
				    "unknown flags, access without its flag, or no new range");
	/* The library looks at the arguments before it asks the device: rdma-core
	 * libibverbs/verbs.c, ibv_rereg_mr. */
	if (context_of(ibv->context)->device->engine->profile->lacks & SIM_LACKS_REREGISTRATION)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, EOPNOTSUPP,
				    "the device does not have this verb");
	if (!flags)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, EINVAL, "no flags");
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		pd = ibv_pd && ibv_pd->context == ibv->context ? pd_of(ibv_pd) : NULL;
		if (!pd)
			return refuse_rereg(IBV_REREG_MR_ERR_CMD, EINVAL,
					    "no such PD in the MR's context");
		init.pd = pd->number;
	}
	err = sim_mr_change(mr->engine, flags, &init);
	if (err)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, err,
				    err == EBUSY ? "windows are bound to it"
						 : "access or range refused");
	take_change(mr, flags, pd, addr, length);
	return 0;
}

int control_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		     int access)
{
	struct vb_sim *world = context_of(mr->context)->world;
	bool locked = world_lock(world);
	int code;

	driver_catch_up(world);
	code = rereg(mr, flags, pd, addr, length, access);
	world_unlock(world, locked);
	return code;
}

/* --- ibv_alloc_null_mr(3) --- */

/* It has the greatest length, and its rkey is not for anybody. */
struct ibv_mr *control_alloc_null_mr(struct ibv_pd *pd)
{
	const struct sim_mr_init init = {.null = true, .access = IBV_ACCESS_LOCAL_WRITE};
	struct mr *mr = control_new_mr(pd, &init, "alloc_null_mr");

	if (!mr)
		return NULL;
	mr->ibv.length = SIZE_MAX;
	mr->ibv.rkey = 0;
	return &mr->ibv;
}

/* --- ibv_advise_mr(3) --- */

static int advise_one(const struct context *context, const struct pd *pd,
		      enum ibv_advise_mr_advice advice, const struct ibv_sge *sge)
{
	const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct sim_mr *mr = sim_mr_find(context->device->engine, SIM_KEY_LOCAL, sge->lkey);
	const void *addr;

	if (!mr)
		return say(EFAULT, "advise_mr: no MR has lkey 0x%x", sge->lkey);
	if (mr->kind != SIM_MR_REGION || !(mr->access & IBV_ACCESS_ON_DEMAND))
		return say(EINVAL, "advise_mr: lkey 0x%x is not of an on-demand MR", sge->lkey);
	if (!pd || mr->pd != pd->number || (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
		return say(EPERM, "advise_mr: lkey 0x%x is of another PD, or read-only", sge->lkey);
	addr = sim_mr_at(mr, sge->addr, sge->length, 0);
	if (!addr && sge->length)
		return say(EFAULT, "advise_mr: outside the MR of lkey 0x%x", sge->lkey);
	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT &&
	    guard_probe(addr, sge->length, write))
		return say(EFAULT, "advise_mr: %u bytes at %p are not mapped", sge->length, addr);
	return 0;
}

int control_advise_mr(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct pd *pd = pd_of(ibv);
	int err = 0;

	if (!pd || flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sge)
		err = say(EINVAL, "advise_mr: no such PD, flags 0x%x, or no SGEs", flags);
	else if (advice < IBV_ADVISE_MR_ADVICE_PREFETCH ||
		 advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		err = say(ENOTSUP, "advise_mr: no advice %d", (int)advice);
	for (uint32_t i = 0; i < num_sge && !err; i++)
		err = advise_one(context, pd, advice, &sg_list[i]);
	world_unlock(context->world, locked);
	return err;
}
