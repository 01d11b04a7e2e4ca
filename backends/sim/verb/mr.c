/* SPDX-License-Identifier: MIT */
/* Memory regions. */
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/verbs.h"

/* --- registration --- */

static const char *cause_of(int err)
{
	if (err == EFAULT)
		return "the memory is not mapped, or is read-only and LOCAL_WRITE is asked for";
	if (err == EMFILE || err == ENFILE)
		return "no descriptor is free to read /proc/self/maps; close one, or raise "
		       "RLIMIT_NOFILE";
	if (err == ENOMEM)
		return "no memory";
	return "the device refuses it";
}

struct mr *verb_new_mr(struct ibv_pd *ibv_pd, const struct sim_mr_init *asked, const char *verb)
{
	struct context *context = context_of(ibv_pd->context);
	struct sim_mr_init init = *asked;
	struct pd *pd = pd_of(ibv_pd);
	struct mr *mr;
	int err;

	if (!pd)
		return say_null(ENOENT, "%s: no such PD", verb);
	mr = object_new(context, KIND_MR, verb);
	if (!mr)
		return NULL;
	init.pd = pd->number;
	err = sim_mr_create(context->device->engine, &init, &mr->engine);
	if (err) {
		object_end(KIND_MR, mr);
		return say_null(err, "%s: %zu bytes at %p with access 0x%x: %s", verb, init.length,
				init.addr, (unsigned int)init.access, cause_of(err));
	}
	mr->ibv = (struct ibv_mr){
		.context = ibv_pd->context,
		.pd = ibv_pd,
		.addr = init.addr,
		.length = init.length,
		.handle = mr->slot,
		.lkey = mr->engine->lkey,
		.rkey = mr->engine->rkey,
	};
	mr->pd = pd;
	pd->users++;
	return mr;
}

struct ibv_mr *verb_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access)
{
	HOLD hold = context_hold(pd->context);
	const struct sim_mr_init init = {
		.addr = addr,
		.length = length,
		.iova = iova,
		.access = (int)access,
	};
	struct mr *mr = verb_new_mr(pd, &init, "reg_mr");

	return mr ? &mr->ibv : NULL;
}

struct ibv_mr *verb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return verb_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *verb_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				int access)
{
	return verb_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

/* A null MR has the greatest length, and no rkey. */
struct ibv_mr *verb_alloc_null_mr(struct ibv_pd *pd)
{
	HOLD hold = context_hold(pd->context);
	const struct sim_mr_init init = {.null = true, .access = IBV_ACCESS_LOCAL_WRITE};
	struct mr *mr;

	if (verb_lacks(context_of(pd->context), SIM_LACKS_NULL_REGIONS, "alloc_null_mr"))
		return NULL;
	mr = verb_new_mr(pd, &init, "alloc_null_mr");
	if (!mr)
		return NULL;
	mr->ibv.length = SIZE_MAX;
	mr->ibv.rkey = 0;
	return &mr->ibv;
}

/* --- deregistration --- */

/* EBUSY while a window is bound to the MR; then nothing changes. Of an import, the root stays. */
static int end_mr(struct mr *mr)
{
	int err = mr->root ? 0 : sim_mr_destroy(mr->engine);

	if (err)
		return err;
	if (!mr->root) {
		mr->pd->users--;
		if (mr->dm)
			mr->dm->users--;
	}
	object_end(KIND_MR, mr);
	return 0;
}

void verb_end_mr(void *mr)
{
	end_mr(mr);
}

/* With an import, its root ends as well. */
int verb_dereg_mr(struct ibv_mr *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct mr *mr = mr_of(ibv);
	int err;

	if (!mr)
		return say(ENOENT, "dereg_mr: no such MR");
	/* A posted unbinding of a window is done by now. */
	driver_catch_up(&hold.world->driver);
	err = end_mr(mr->root ? mr->root : mr);
	if (err)
		return say(
			err,
			"dereg_mr: memory windows are bound to the MR; unbind or free them first");
	if (mr->root)
		end_mr(mr);
	return 0;
}

/* --- ibv_rereg_mr(3) --- */

static int refuse_rereg(int code, int err, const char *cause)
{
	say_minus(err, "rereg_mr: %s", cause);
	return code;
}

static void take_change(struct mr *mr, int flags, struct pd *pd, void *addr, size_t length)
{
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->pd->users--;
		pd->users++;
		mr->pd = pd;
		mr->ibv.pd = &pd->ibv;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = addr;
		mr->ibv.length = length;
	}
	mr->ibv.lkey = mr->engine->lkey;
	mr->ibv.rkey = mr->engine->rkey;
}

/* ERR_INPUT is what libibverbs itself refuses, ERR_CMD what the kernel or its driver refuses. */
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

	if (mr && (mr->dm || mr->root || mr->engine->kind != SIM_MR_REGION))
		return refuse_rereg(IBV_REREG_MR_ERR_INPUT, EINVAL,
				    "the MR cannot change: a null MR, an import, device memory");
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS)) ||
	    (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr)))
		return refuse_rereg(IBV_REREG_MR_ERR_INPUT, EINVAL,
				    "unknown flags, access without CHANGE_ACCESS, or "
				    "CHANGE_TRANSLATION without a range");
	/* The library checks the arguments before it asks the device: rdma-core
	 * libibverbs/verbs.c, ibv_rereg_mr. */
	if (context_of(ibv->context)->device->engine->profile->lacks & SIM_LACKS_REREGISTRATION)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, EOPNOTSUPP,
				    "the device does not have this verb");
	if (!mr)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, ENOENT, "no such MR");
	if (!flags)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, EINVAL, "no flags");
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		pd = pd_in(ibv->context, ibv_pd);
		if (!pd)
			return refuse_rereg(IBV_REREG_MR_ERR_CMD,
					    object_missing(ibv->context, ibv_pd),
					    "no such PD in the MR's context");
		init.pd = pd->number;
	}
	err = sim_mr_change(mr->engine, flags, &init);
	if (err)
		return refuse_rereg(IBV_REREG_MR_ERR_CMD, err,
				    err == EBUSY ? "memory windows are bound to the MR"
						 : "the device refuses the access or the range");
	take_change(mr, flags, pd, addr, length);
	return 0;
}

int verb_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	HOLD hold = context_hold(mr->context);

	driver_catch_up(&hold.world->driver);
	return rereg(mr, flags, pd, addr, length, access);
}

/* --- ibv_advise_mr(3) --- */

/* The MR of an lkey that ibv_advise_mr(3) can be given. The errors are those of Linux
 * drivers/infiniband/hw/mlx5/odp.c, get_prefetchable_mr. */
static int find_advised(const struct pd *pd, uint32_t lkey, bool write, const struct sim_mr **out)
{
	const struct sim_device *device = context_of(pd->ibv.context)->device->engine;
	const struct sim_mr *window = sim_mr_find(device, SIM_KEY_REMOTE, lkey);
	const struct sim_mr *mr = sim_mr_find(device, SIM_KEY_LOCAL, lkey);

	if (window && window->kind >= SIM_MR_WINDOW_1)
		return say(EINVAL, "advise_mr: the key 0x%x is that of a memory window", lkey);
	if (!mr || mr->kind != SIM_MR_REGION || !(mr->access & IBV_ACCESS_ON_DEMAND))
		return say(ENOENT, "advise_mr: no on-demand MR has lkey 0x%x", lkey);
	if (mr->pd != pd->number || (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE)))
		return say(EPERM, "advise_mr: the MR of lkey 0x%x is of another PD, or read-only",
			   lkey);
	*out = mr;
	return 0;
}

static int advise_one(const struct pd *pd, enum ibv_advise_mr_advice advice,
		      const struct ibv_sge *sge)
{
	const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct sim_mr *mr = NULL;
	const void *addr;
	int err = find_advised(pd, sge->lkey, write, &mr);

	if (err)
		return err;
	addr = sim_mr_at(mr, sge->addr, sge->length, 0);
	if (!addr && sge->length)
		return say(EFAULT, "advise_mr: the range is outside the MR of lkey 0x%x",
			   sge->lkey);
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0;
	err = guard_probe(addr, sge->length, write);
	return err ? say(err, "advise_mr: %u bytes at %p: %s", sge->length, addr,
			 err == EFAULT ? "they are not mapped, or are read-only" : cause_of(err))
		   : 0;
}

int verb_advise_mr(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge)
{
	HOLD hold = context_hold(ibv->context);
	struct pd *pd = pd_of(ibv);
	int err = verb_lacks(context_of(ibv->context), SIM_LACKS_ON_DEMAND, "advise_mr");

	if (err)
		return err;
	if (!pd)
		return say(ENOENT, "advise_mr: no such PD");
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sge)
		return say(EINVAL, "advise_mr: unknown flags 0x%x, or no SGEs", flags);
	if (advice < IBV_ADVISE_MR_ADVICE_PREFETCH ||
	    advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return say(ENOTSUP, "advise_mr: there is no advice %d", (int)advice);
	for (uint32_t i = 0; i < num_sge && !err; i++)
		err = advise_one(pd, advice, &sg_list[i]);
	return err;
}
