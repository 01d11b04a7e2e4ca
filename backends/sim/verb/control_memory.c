/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

/* --- protection domains --- */

/* A limit is the device's, over all that have it open. */
static uint32_t pds_of(const struct vb_sim *world, const struct device *device)
{
	const struct context *context;
	uint32_t at = 0, count = 0;

	while ((context = handles_next(&world->contexts, &at)))
		if (context->device == device)
			count += context->handles[KIND_PD].live;
	return count;
}

static struct pd *new_pd(struct context *context)
{
	struct vb_sim *world = context->world;
	struct pd *pd;
	uint32_t handle;

	if (!context_live(context))
		return say_null(EINVAL, "alloc_pd: the context is closed");
	if (pds_of(world, context->device) >=
	    (uint32_t)context->device->engine->profile->limits.max_pd)
		return say_null(ENOMEM, "alloc_pd: %s has no more PDs", context->device->ibv.name);
	pd = object_new(context, KIND_PD, &handle);
	if (!pd)
		return say_null(ENOMEM, "alloc_pd: out of memory");
	pd->ibv.context = &context->verbs.context;
	pd->ibv.handle = handle;
	pd->slot = handle;
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

/* With those that were made in imports of it. */
static uint32_t count_users(const struct pd *pd)
{
	const struct pd *root = pd->root ? pd->root : pd;
	uint32_t users = root->users;

	for (const struct pd *view = root->views; view; view = view->next_view)
		users += view->users;
	return users;
}

/* What ends is the PD; of its imports, the one that was given ends with it. */
static void end_pd_and_root(struct context *context, struct pd *pd)
{
	struct pd *root = pd->root;

	control_end_pd(context, pd);
	if (root)
		control_end_pd(context_of(root->ibv.context), root);
}

int control_dealloc_pd(struct ibv_pd *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct pd *pd = pd_of(ibv);
	int err = 0;

	if (!pd)
		err = say(EINVAL, "dealloc_pd: no such PD");
	else if (count_users(pd))
		err = say(EBUSY, "dealloc_pd: PD %u: %u objects are in it", ibv->handle,
			  count_users(pd));
	else if (pd->ahs && context->device->engine->quirks.ah_keeps_pd_busy)
		err = say(EBUSY, "dealloc_pd: PD %u: %u AHs are in it", ibv->handle, pd->ahs);
	else
		end_pd_and_root(context, pd);
	world_unlock(context->world, locked);
	return err;
}

/* --- memory regions --- */

struct mr *control_new_mr_locked(struct ibv_pd *ibv_pd, const struct sim_mr_init *asked,
				 const char *verb)
{
	struct context *context = context_of(ibv_pd->context);
	struct sim_mr_init init = *asked;
	struct pd *pd = pd_of(ibv_pd);
	struct mr *mr;
	uint32_t handle;
	int err;

	if (!pd)
		return say_null(EINVAL, "%s: no such PD", verb);
	mr = object_new(context, KIND_MR, &handle);
	if (!mr)
		return say_null(ENOMEM, "%s: out of memory", verb);
	init.pd = pd->number;
	err = sim_mr_create(context->device->engine, &init, &mr->engine);
	if (err) {
		object_end(context, KIND_MR, handle, mr);
		return say_null(err, "%s: %zu bytes at %p with access 0x%x: %s", verb, init.length,
				init.addr, (unsigned int)init.access,
				err == EFAULT ? "not mapped, or read-only and LOCAL_WRITE"
					      : "refused");
	}
	mr->engine->user = mr;
	mr->slot = handle;
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

struct mr *control_new_mr(struct ibv_pd *pd, const struct sim_mr_init *init, const char *verb)
{
	struct vb_sim *world = context_of(pd->context)->world;
	bool locked = world_lock(world);
	struct mr *mr = control_new_mr_locked(pd, init, verb);

	world_unlock(world, locked);
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
	struct mr *mr = control_new_mr(pd, &init, "reg_mr");

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

static void forget_mr(struct context *context, struct mr *mr)
{
	if (!mr->root) {
		((struct pd *)mr->ibv.pd)->users--;
		if (mr->dm)
			mr->dm->users--;
	}
	object_end(context, KIND_MR, mr->slot, mr);
}

/* EBUSY while a window is bound to it; then nothing is changed. An import's root ends as well. */
int control_end_mr(struct context *context, struct mr *mr)
{
	struct mr *root = mr->root;
	int err = sim_mr_destroy(mr->engine);

	if (err)
		return err;
	forget_mr(context, mr);
	if (root)
		forget_mr(context_of(root->ibv.context), root);
	return 0;
}

void control_leave_mr(struct context *context, struct mr *mr)
{
	if (mr->root)
		forget_mr(context, mr);
	else
		control_end_mr(context, mr);
}

void control_unimport_mr(struct ibv_mr *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct mr *mr = (struct mr *)ibv;

	if (mr->root && handles_has(&context->handles[KIND_MR], mr->slot, mr))
		forget_mr(context, mr);
	world_unlock(context->world, locked);
}

int control_dereg_mr(struct ibv_mr *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct mr *mr = mr_of(ibv);
	int err = EINVAL;

	if (mr) {
		/* A window that was posted to be unbound is, by now. */
		driver_catch_up(context->world);
		err = control_end_mr(context, mr);
	}
	world_unlock(context->world, locked);
	if (err)
		say(err, "dereg_mr: %s", mr ? "windows are bound to it" : "no such MR");
	return err;
}
