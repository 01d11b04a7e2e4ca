/* SPDX-License-Identifier: MIT */
/* Memory regions. */
#include "backends/sim/verb/verbs.h"

/* --- registration --- */

/* Returns the PD of the program that an MR's PD is, or extends. */
static const struct pd *plain_pd(const struct pd *pd)
{
	return pd->extends ? pd->extends : pd;
}

static void describe(const struct mr *mr)
{
	const struct sim_mr *engine = mr->engine;
	const bool has_bytes = engine->kind == SIM_MR_REGION && engine->length != UINT64_MAX;

	object_describe(KIND_MR, mr,
			&(struct described){
				.addr = engine->base,
				.length = engine->length,
				.iova = engine->iova,
				.access = (uint32_t)engine->access,
				.lkey = engine->lkey,
				.rkey = mr->ibv.rkey,
				.pd = plain_pd(mr->pd)->ibv.handle,
				.flags = has_bytes ? 0 : DESCRIBED_NO_BYTES,
			});
}

struct mr *verb_new_mr(struct ibv_pd *ibv_pd, const struct sim_mr_init *asked, const char *verb)
{
	struct context *context = context_of(ibv_pd->context);
	struct sim_mr_init init = *asked;
	struct pd *pd = pd_of(ibv_pd);
	struct mr *mr;
	int err;

	if (!pd)
		return null_errno(refuse_gone(verb, KIND_PD, ibv_pd));
	mr = object_new(context, KIND_MR, verb);
	if (!mr)
		return NULL;
	init.pd = pd->number;
	err = sim_mr_create(context->device->engine, &init, &mr->engine);
	if (err) {
		object_end(KIND_MR, mr);
		return null_errno(say_refused(context->world, verb, err));
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
	describe(mr);
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

int verb_try_end_mr(struct mr *mr)
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
	verb_try_end_mr(mr);
}

/* A window of this process is bound to the stand-in for the MR of the other process. */
static int dereg_foreign(struct vb_sim *world, struct mr *mr)
{
	return mr->engine->windows ? say_refused(world, "dereg_mr", sim_mr_destroy(mr->engine))
				   : verb_destroy_foreign("dereg_mr", KIND_MR, mr);
}

/* With an import, its root ends as well. */
int verb_dereg_mr(struct ibv_mr *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct mr *mr;
	int err;

	/* A posted unbinding of a window is done by now, and what an importer destroys is gone. */
	driver_catch_up(&hold.world->driver);
	mr = mr_of(ibv);
	if (!mr)
		return refuse_gone("dereg_mr", KIND_MR, ibv);
	if (object_is_foreign(KIND_MR, mr))
		return dereg_foreign(hold.world, mr);
	err = verb_try_end_mr(mr->root ? mr->root : mr);
	if (err)
		return say_refused(hold.world, "dereg_mr", err);
	if (mr->root)
		verb_try_end_mr(mr);
	return 0;
}

/* --- ibv_rereg_mr(3) --- */

#define REREG "rereg_mr"

/* What an MR is whose range, PD and access cannot change; NULL for an MR of the program's memory. */
static const char *fixed_kind(const struct mr *mr)
{
	if (mr->root)
		return "an imported MR";
	if (mr->dm)
		return "an MR of device memory";
	return mr->engine->kind == SIM_MR_REGION ? NULL : "a null MR";
}

/* What libibverbs itself checks: rdma-core libibverbs/verbs.c, ibv_rereg_mr. */
static int check_rereg(const struct mr *mr, int flags, void *addr, size_t length, int access)
{
	const int unknown = flags & ~IBV_REREG_MR_FLAGS_SUPPORTED;
	const char *fixed = mr ? fixed_kind(mr) : NULL;

	if (fixed)
		return refuse_why(REREG,
				  (struct vb_why){.reason = VB_WHY_REREG_KIND, .text = fixed});
	if (unknown)
		return refuse_why(REREG,
				  (struct vb_why){VB_WHY_REREG_FLAGS, {(unsigned int)unknown}});
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return refuse_why(REREG,
				  (struct vb_why){VB_WHY_REREG_ACCESS, {(unsigned int)access}});
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr))
		return refuse_why(REREG,
				  (struct vb_why){VB_WHY_REREG_RANGE, {(uintptr_t)addr, length}});
	return 0;
}

static int as_code(int code, int err)
{
	errno = err;
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
	describe(mr);
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

	err = check_rereg(mr, flags, addr, length, access);
	if (err)
		return as_code(IBV_REREG_MR_ERR_INPUT, err);
	/* The library checks the arguments before it asks the device: rdma-core
	 * libibverbs/verbs.c, ibv_rereg_mr. */
	err = verb_lacks(context_of(ibv->context), SIM_LACKS_REREGISTRATION, REREG);
	if (!err && !mr)
		err = refuse_gone(REREG, KIND_MR, ibv);
	if (!err && !flags)
		err = refuse_plainly(REREG, VB_WHY_REREG_NOTHING);
	if (err)
		return as_code(IBV_REREG_MR_ERR_CMD, err);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		pd = pd_in(ibv->context, ibv_pd);
		if (!pd)
			return as_code(IBV_REREG_MR_ERR_CMD,
				       refuse_missing(REREG, KIND_PD, ibv->context, ibv_pd));
		init.pd = pd->number;
	}
	err = sim_mr_change(mr->engine, flags, &init);
	if (err)
		return as_code(IBV_REREG_MR_ERR_CMD,
			       say_refused(context_of(ibv->context)->world, REREG, err));
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

#define ADVISE "advise_mr"

static int refuse_key(enum vb_reason reason, uint32_t index, uint32_t lkey)
{
	return refuse_why(ADVISE, (struct vb_why){reason, {index, lkey}});
}

/* The MR of an lkey that ibv_advise_mr(3) can be given. The errors are those of Linux
 * drivers/infiniband/hw/mlx5/odp.c, get_prefetchable_mr. */
static int find_advised(const struct pd *pd, uint32_t index, uint32_t lkey, bool write,
			const struct sim_mr **out)
{
	const struct sim_device *device = context_of(pd->ibv.context)->device->engine;
	const struct sim_mr *window = sim_mr_find(device, SIM_KEY_REMOTE, lkey);
	const struct sim_mr *mr = sim_mr_find(device, SIM_KEY_LOCAL, lkey);

	if (window && window->kind >= SIM_MR_WINDOW_1)
		return refuse_key(VB_WHY_ADVISE_WINDOW, index, lkey);
	if (!mr)
		return refuse_key(VB_WHY_ADVISE_KEY, index, lkey);
	if (mr->kind != SIM_MR_REGION || !(mr->access & IBV_ACCESS_ON_DEMAND))
		return refuse_key(VB_WHY_ADVISE_PINNED, index, lkey);
	if (mr->pd != pd->number)
		return refuse_key(VB_WHY_ADVISE_PD, index, lkey);
	if (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return refuse_key(VB_WHY_ADVISE_READ_ONLY, index, lkey);
	*out = mr;
	return 0;
}

static int advise_one(const struct pd *pd, enum ibv_advise_mr_advice advice, uint32_t index,
		      const struct ibv_sge *sge)
{
	const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct context *context = context_of(pd->ibv.context);
	const struct sim_mr *mr = NULL;
	const void *addr;
	int err = find_advised(pd, index, sge->lkey, write, &mr);

	if (err)
		return err;
	addr = sim_mr_at(mr, sge->addr, sge->length, 0);
	if (!addr && sge->length)
		return refuse_why(ADVISE, (struct vb_why){VB_WHY_ADVISE_RANGE,
							  {index, sge->length, sge->addr, sge->lkey,
							   mr->length, mr->iova}});
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return 0;
	err = sim_memory_probe(context->device->engine, addr, sge->length, write);
	return err ? say_refused(context->world, ADVISE, err) : 0;
}

static int check_advice(enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t num_sge)
{
	const uint32_t unknown = flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH;

	if (unknown)
		return refuse_why(ADVISE, (struct vb_why){VB_WHY_ADVISE_FLAGS, {unknown}});
	if (!num_sge)
		return refuse_plainly(ADVISE, VB_WHY_ADVISE_NO_SGES);
	if (advice < IBV_ADVISE_MR_ADVICE_PREFETCH ||
	    advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return refuse_why(ADVISE, (struct vb_why){VB_WHY_ADVISE_ADVICE, {advice}});
	return 0;
}

int verb_advise_mr(struct ibv_pd *ibv, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge)
{
	HOLD hold = context_hold(ibv->context);
	struct pd *pd = pd_of(ibv);
	int err = verb_lacks(context_of(ibv->context), SIM_LACKS_ON_DEMAND, ADVISE);

	if (err)
		return err;
	if (!pd)
		return refuse_gone(ADVISE, KIND_PD, ibv);
	err = check_advice(advice, flags, num_sge);
	for (uint32_t i = 0; i < num_sge && !err; i++)
		err = advise_one(pd, advice, i, &sg_list[i]);
	return err;
}
