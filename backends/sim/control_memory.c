/* SPDX-License-Identifier: MIT */
#include "control.h"
#include "say.h"
#include "world.h"

#include <errno.h>

/* --- protection domains --- */

static struct pd *new_pd(struct context *context)
{
	struct vb_sim *world = context->world;
	struct pd *pd;
	uint32_t handle;

	if (!context_live(context))
		return say_null(EINVAL, "alloc_pd: the context is closed");
	if (context->handles[KIND_PD].live >=
	    (uint32_t)context->device->engine->profile->limits.max_pd)
		return say_null(ENOMEM, "alloc_pd: %s has no more PDs", context->device->ibv.name);
	pd = object_new(context, KIND_PD, &handle);
	if (!pd)
		return say_null(ENOMEM, "alloc_pd: out of memory");
	pd->ibv.context = &context->verbs.context;
	pd->ibv.handle = handle;
	pd->number = ++world->last_pd;
	return pd;
}

struct ibv_pd *control_alloc_pd(struct ibv_context *ibv)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct pd *pd = new_pd(context);

	world_unlock(context->world, locked);
	return pd ? &pd->ibv : NULL;
}

int control_dealloc_pd(struct ibv_pd *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct pd *pd = pd_of(ibv);
	int err = 0;

	if (!pd)
		err = say(EINVAL, "dealloc_pd: no such PD");
	else if (pd->users)
		err = say(EBUSY, "dealloc_pd: PD %u: %u MRs and QPs are in it", ibv->handle,
			  pd->users);
	else
		object_end(context, KIND_PD, ibv->handle, pd);
	world_unlock(context->world, locked);
	return err;
}

/* --- memory regions --- */

static struct mr *new_mr(struct ibv_pd *ibv_pd, const struct sim_mr_init *asked)
{
	struct context *context = context_of(ibv_pd->context);
	struct sim_mr_init init = *asked;
	struct pd *pd = pd_of(ibv_pd);
	struct mr *mr;
	uint32_t handle;
	int err;

	if (!pd)
		return say_null(EINVAL, "reg_mr: no such PD");
	mr = object_new(context, KIND_MR, &handle);
	if (!mr)
		return say_null(ENOMEM, "reg_mr: out of memory");
	init.pd = pd->number;
	err = sim_mr_create(context->device->engine, &init, &mr->engine);
	if (err) {
		object_end(context, KIND_MR, handle, mr);
		return say_null(err, "reg_mr: %zu bytes at %p with access 0x%x: %s", init.length,
				init.addr, (unsigned int)init.access,
				err == EFAULT ? "not mapped, or read-only and LOCAL_WRITE"
					      : "refused");
	}
	mr->engine->user = mr;
	mr->ibv = (struct ibv_mr){
		.context = ibv_pd->context,
		.pd = ibv_pd,
		.addr = init.addr,
		.length = init.length,
		.handle = handle,
		.lkey = mr->engine->lkey,
		.rkey = mr->engine->rkey,
	};
	pd->users++;
	return mr;
}

struct ibv_mr *control_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				    unsigned int access)
{
	const struct sim_mr_init init = {
		.addr = addr,
		.length = length,
		.iova = iova,
		.access = (int)access,
	};
	struct vb_sim *world = context_of(pd->context)->world;
	bool locked = world_lock(world);
	struct mr *mr = new_mr(pd, &init);

	world_unlock(world, locked);
	return mr ? &mr->ibv : NULL;
}

struct ibv_mr *control_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return control_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *control_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				   int access)
{
	return control_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

int control_dereg_mr(struct ibv_mr *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct mr *mr = mr_of(ibv);

	if (mr) {
		sim_mr_destroy(mr->engine);
		((struct pd *)ibv->pd)->users--;
		object_end(context, KIND_MR, ibv->handle, mr);
	}
	world_unlock(context->world, locked);
	return mr ? 0 : say(EINVAL, "dereg_mr: no such MR");
}
