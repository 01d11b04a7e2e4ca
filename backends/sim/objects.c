/* SPDX-License-Identifier: MIT */
#include "objects.h"

#include "world.h"

static const size_t sizes[KINDS] = {
	[KIND_PD] = sizeof(struct pd),		 [KIND_MR] = sizeof(struct mr),
	[KIND_CQ] = sizeof(struct cq),		 [KIND_QP] = sizeof(struct qp),
	[KIND_AH] = sizeof(struct ah),		 [KIND_CHANNEL] = sizeof(struct channel),
	[KIND_CONTEXT] = sizeof(struct context),
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

struct pd *pd_of(struct ibv_pd *ibv)
{
	return live(ibv->context, KIND_PD, ibv->handle, ibv) ? (struct pd *)ibv : NULL;
}

struct mr *mr_of(struct ibv_mr *ibv)
{
	return live(ibv->context, KIND_MR, ibv->handle, ibv) ? (struct mr *)ibv : NULL;
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
