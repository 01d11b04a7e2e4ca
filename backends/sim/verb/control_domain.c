/* SPDX-License-Identifier: MIT */
/* Thread domains and parent domains. */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

static struct td *new_td(struct context *context, const struct ibv_td_init_attr *attr)
{
	struct td *td;
	uint32_t handle;

	if (!context_live(context) || attr->comp_mask)
		return say_null(EINVAL, "alloc_td: the context is closed, or a comp_mask");
	td = object_new(context, KIND_TD, &handle);
	if (!td)
		return say_null(ENOMEM, "alloc_td: out of memory");
	td->ibv.context = &context->verbs.context;
	td->handle = handle;
	return td;
}

struct ibv_td *control_alloc_td(struct ibv_context *ibv, struct ibv_td_init_attr *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct td *td = new_td(context, attr);

	world_unlock(context->world, locked);
	return td ? &td->ibv : NULL;
}

int control_dealloc_td(struct ibv_td *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct td *td = td_of(ibv);
	int err = 0;

	if (!td)
		err = say(EINVAL, "dealloc_td: no such thread domain");
	else if (td->users)
		err = say(EBUSY, "dealloc_td: %u parent domains use it", td->users);
	else
		object_end(context, KIND_TD, td->handle, td);
	world_unlock(context->world, locked);
	return err;
}

static struct pd *new_parent(struct context *context,
			     const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	const struct ibv_context *ibv = &context->verbs.context;
	struct pd *pd = attr->pd && attr->pd->context == ibv ? pd_of(attr->pd) : NULL;
	struct td *td = attr->td && attr->td->context == ibv ? td_of(attr->td) : NULL;
	struct pd *parent;
	uint32_t handle;

	if (attr->comp_mask & ~known)
		return say_null(EINVAL, "alloc_parent_domain: comp_mask 0x%x", attr->comp_mask);
	if (!pd || (attr->td && !td))
		return say_null(EINVAL, "alloc_parent_domain: no such %s in this context",
				pd ? "thread domain" : "PD");
	parent = object_new(context, KIND_PD, &handle);
	if (!parent)
		return say_null(ENOMEM, "alloc_parent_domain: out of memory");
	parent->ibv.context = &context->verbs.context;
	parent->ibv.handle = handle;
	parent->slot = handle;
	parent->number = pd->number;
	parent->extends = pd;
	parent->td = td;
	pd->users++;
	if (td)
		td->users++;
	return parent;
}

/* The allocators are for buffers that a program and its adapter share; there are none here. */
struct ibv_pd *control_alloc_parent_domain(struct ibv_context *ibv,
					   struct ibv_parent_domain_init_attr *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct pd *parent = new_parent(context, attr);

	world_unlock(context->world, locked);
	return parent ? &parent->ibv : NULL;
}

static void forget_view(struct pd *pd)
{
	struct pd **at = &pd->root->views;

	while (*at && *at != pd)
		at = &(*at)->next_view;
	if (*at)
		*at = pd->next_view;
}

void control_end_pd(struct context *context, struct pd *pd)
{
	if (pd->extends)
		pd->extends->users--;
	if (pd->td)
		pd->td->users--;
	if (pd->root)
		forget_view(pd);
	object_end(context, KIND_PD, pd->slot, pd);
}
