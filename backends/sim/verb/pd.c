/* SPDX-License-Identifier: MIT */
/* Protection domains, thread domains, parent domains. */
#include "backends/sim/verb/verbs.h"

/* --- protection domains --- */

/* Counts the PDs of all contexts of the device: its limit is for all of them together. */
static uint32_t pds_of(const struct vb_sim *world, const struct device *device)
{
	const struct context *context;
	uint32_t at = 0, count = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->device == device)
			count += context->handles[KIND_PD].live;
	return count;
}

static struct pd *new_pd(struct context *context, uint32_t number, const char *verb)
{
	struct pd *pd = object_new(context, KIND_PD, verb);

	if (!pd)
		return NULL;
	pd->number = number;
	object_describe(KIND_PD, pd, &(struct described){0});
	return pd;
}

struct ibv_pd *verb_alloc_pd(struct ibv_context *ibv)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct device *device = context->device;
	const int limit = device->engine->profile->limits.max_pd;
	struct pd *pd;

	if (!context_live(context))
		return null_errno(refuse_plainly("alloc_pd", VB_WHY_CONTEXT_CLOSED));
	if (pds_of(hold.world, device) >= (uint32_t)limit)
		return null_errno(refuse_limit("alloc_pd", "max_pd", limit));
	pd = new_pd(context, hold.world->last_pd + 1, "alloc_pd");
	if (!pd)
		return NULL;
	hold.world->last_pd++;
	return &pd->ibv;
}

uint32_t verb_pd_users(const struct pd *pd)
{
	const struct pd *root = pd->root ? pd->root : pd;
	uint32_t users = root->users;

	for (const struct pd *view = root->views; view; view = view->next_view)
		users += view->users;
	return users;
}

static void forget_view(struct pd *pd)
{
	struct pd **at = &pd->root->views;

	while (*at && *at != pd)
		at = &(*at)->next_view;
	if (*at)
		*at = pd->next_view;
}

void verb_end_pd(void *object)
{
	struct pd *pd = object;

	if (pd->extends)
		pd->extends->users--;
	if (pd->td)
		pd->td->users--;
	if (pd->root)
		forget_view(pd);
	object_end(KIND_PD, pd);
}

/* With an import, its root ends as well; other imports of the root can then only be unimported. */
int verb_dealloc_pd(struct ibv_pd *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct pd *pd = pd_of(ibv), *root;

	if (!pd)
		return refuse_gone("dealloc_pd", KIND_PD, ibv);
	if (verb_pd_users(pd))
		return refuse_busy("dealloc_pd", VB_WHY_PD_BUSY, ibv->handle, KIND_PD, pd);
	if (object_is_foreign(KIND_PD, pd))
		return verb_destroy_foreign("dealloc_pd", KIND_PD, pd);
	root = pd->root;
	verb_end_pd(pd);
	if (root)
		verb_end_pd(root);
	return 0;
}

/* --- thread domains --- */

struct ibv_td *verb_alloc_td(struct ibv_context *ibv, struct ibv_td_init_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct td *td;

	if (verb_lacks(context, SIM_LACKS_DOMAINS, "alloc_td"))
		return NULL;
	if (!context_live(context))
		return null_errno(refuse_plainly("alloc_td", VB_WHY_CONTEXT_CLOSED));
	if (attr->comp_mask)
		return null_errno(refuse_comp_mask("alloc_td", attr->comp_mask));
	td = object_new(context, KIND_TD, "alloc_td");
	return td ? &td->ibv : NULL;
}

void verb_end_td(void *td)
{
	object_end(KIND_TD, td);
}

int verb_dealloc_td(struct ibv_td *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct td *td = td_of(ibv);

	if (!td)
		return refuse_gone("dealloc_td", KIND_TD, ibv);
	if (td->users)
		return refuse_busy("dealloc_td", VB_WHY_TD_BUSY, 0, KIND_TD, td);
	verb_end_td(td);
	return 0;
}

/* --- parent domains --- */

/* The allocators in attr are for buffers that a program and its adapter share. The simulator shares
 * none, and ignores them. */
struct ibv_pd *verb_alloc_parent_domain(struct ibv_context *ibv,
					struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known =
		IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	HOLD hold = context_hold(ibv);
	struct pd *pd = pd_in(ibv, attr->pd);
	struct td *td = td_in(ibv, attr->td);
	struct pd *parent;

	if (verb_lacks(context_of(ibv), SIM_LACKS_DOMAINS, "alloc_parent_domain"))
		return NULL;
	if (attr->comp_mask & ~known)
		return null_errno(
			refuse_comp_mask("alloc_parent_domain", attr->comp_mask & ~known));
	if (!pd)
		return null_errno(refuse_missing("alloc_parent_domain", KIND_PD, ibv, attr->pd));
	if (attr->td && !td)
		return null_errno(refuse_missing("alloc_parent_domain", KIND_TD, ibv, attr->td));
	parent = new_pd(context_of(ibv), pd->number, "alloc_parent_domain");
	if (!parent)
		return NULL;
	object_describe(KIND_PD, parent, &(struct described){.flags = DESCRIBED_PARENT});
	parent->extends = pd;
	parent->td = td;
	pd->users++;
	if (td)
		td->users++;
	return &parent->ibv;
}
