/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/objects.h"

#include "backends/sim/world/world.h"

#include <string.h>

static const size_t sizes[KINDS] = {
	[KIND_PD] = sizeof(struct pd),	   [KIND_MR] = sizeof(struct mr),
	[KIND_CQ] = sizeof(struct cq),	   [KIND_QP] = sizeof(struct qp),
	[KIND_AH] = sizeof(struct ah),	   [KIND_CHANNEL] = sizeof(struct channel),
	[KIND_SRQ] = sizeof(struct srq),   [KIND_MW] = sizeof(struct mw),
	[KIND_DM] = sizeof(struct dm),	   [KIND_TD] = sizeof(struct td),
	[KIND_XRCD] = sizeof(struct xrcd), [KIND_CONTEXT] = sizeof(struct context),
};

size_t object_bytes(enum kind kind)
{
	return sizes[kind];
}

bool context_live(const struct context *context)
{
	return handles_has(&context->world->contexts, context->handle, context);
}

void *object_new(struct context *context, enum kind kind, uint32_t *handle)
{
	struct vb_sim *world = context->world;
	void *object = pool_take(&world->pools[kind]);

	if (!object)
		return NULL;
	if (handles_add(&context->handles[kind], object, handle)) {
		pool_give(&world->pools[kind], object);
		return NULL;
	}
	world->live[kind]++;
	/* Who makes objects between its questions does not wait for another answer. */
	memset(context->port_answer, 0, sizeof(context->port_answer));
	return object;
}

void object_end(struct context *context, enum kind kind, uint32_t handle, void *object)
{
	struct vb_sim *world = context->world;

	handles_remove(&context->handles[kind], handle);
	pool_give(&world->pools[kind], object);
	world->live[kind]--;
}

static bool live(struct ibv_context *context, enum kind kind, uint32_t handle, const void *object)
{
	return handles_has(&context_of(context)->handles[kind], handle, object);
}

/* An import lives as long as its root. */
struct pd *pd_of(struct ibv_pd *ibv)
{
	struct pd *pd = (struct pd *)ibv;

	if (!live(ibv->context, KIND_PD, pd->slot, ibv) || (pd->root && !pd_of(&pd->root->ibv)))
		return NULL;
	return pd;
}

struct mr *mr_of(struct ibv_mr *ibv)
{
	struct mr *mr = (struct mr *)ibv;

	if (!live(ibv->context, KIND_MR, mr->slot, ibv) || (mr->root && !mr_of(&mr->root->ibv)))
		return NULL;
	return mr;
}

struct ah *ah_of(struct ibv_ah *ibv)
{
	return live(ibv->context, KIND_AH, ibv->handle, ibv) ? (struct ah *)ibv : NULL;
}

struct channel *channel_of(struct ibv_comp_channel *ibv)
{
	struct channel *channel = (struct channel *)ibv;

	return live(ibv->context, KIND_CHANNEL, channel->handle, ibv) ? channel : NULL;
}

struct td *td_of(struct ibv_td *ibv)
{
	struct td *td = (struct td *)ibv;

	return live(ibv->context, KIND_TD, td->handle, ibv) ? td : NULL;
}

struct dm *dm_of(struct ibv_dm *ibv)
{
	struct dm *dm = (struct dm *)ibv;

	if (!live(ibv->context, KIND_DM, dm->slot, ibv) || (dm->root && !dm_of(&dm->root->ibv)))
		return NULL;
	return dm;
}

struct mw *mw_of(struct ibv_mw *ibv)
{
	return live(ibv->context, KIND_MW, ibv->handle, ibv) ? (struct mw *)ibv : NULL;
}

struct srq *srq_of(struct ibv_srq *ibv)
{
	return live(ibv->context, KIND_SRQ, ibv->handle, ibv) ? (struct srq *)ibv : NULL;
}

struct xrcd *xrcd_of(struct ibv_xrcd *ibv)
{
	struct xrcd *xrcd = (struct xrcd *)ibv;

	return live(ibv->context, KIND_XRCD, xrcd->handle, ibv) ? xrcd : NULL;
}
