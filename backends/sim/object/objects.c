/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/objects.h"

#include "backends/sim/base/say.h"

#include <errno.h>
#include <string.h>

static const size_t sizes[KINDS] = {
	[KIND_PD] = sizeof(struct pd),	   [KIND_MR] = sizeof(struct mr),
	[KIND_CQ] = sizeof(struct cq),	   [KIND_QP] = sizeof(struct qp),
	[KIND_AH] = sizeof(struct ah),	   [KIND_CHANNEL] = sizeof(struct channel),
	[KIND_SRQ] = sizeof(struct srq),   [KIND_MW] = sizeof(struct mw),
	[KIND_DM] = sizeof(struct dm),	   [KIND_TD] = sizeof(struct td),
	[KIND_XRCD] = sizeof(struct xrcd), [KIND_CONTEXT] = sizeof(struct context),
};

void store_init(struct store *store)
{
	for (unsigned int i = 0; i < KINDS; i++)
		pool_init(&store->pools[i], sizes[i]);
	handles_init(&store->contexts);
}

void store_end(struct store *store)
{
	for (unsigned int i = 0; i < KINDS; i++)
		pool_end(&store->pools[i]);
	handles_end(&store->contexts);
}

bool context_live(const struct context *context)
{
	return handles_has(&context->store->contexts, context->handle, context);
}

void *object_new(struct context *context, enum kind kind, uint32_t *handle, const char *verb)
{
	struct store *store = context->store;
	void *object = pool_take(&store->pools[kind]);

	if (object && handles_add(&context->handles[kind], object, handle)) {
		pool_give(&store->pools[kind], object);
		object = NULL;
	}
	if (!object)
		return say_null(ENOMEM, "%s: out of memory", verb);
	store->live[kind]++;
	/*
	 * A program that makes objects between two queries of a port is not waiting for the port.
	 */
	memset(context->port_answer, 0, sizeof(context->port_answer));
	return object;
}

void object_end(struct context *context, enum kind kind, uint32_t handle, void *object)
{
	handles_remove(&context->handles[kind], handle);
	pool_give(&context->store->pools[kind], object);
	context->store->live[kind]--;
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

struct dm *dm_of(struct ibv_dm *ibv)
{
	struct dm *dm = (struct dm *)ibv;

	if (!live(ibv->context, KIND_DM, dm->slot, ibv) || (dm->root && !dm_of(&dm->root->ibv)))
		return NULL;
	return dm;
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

struct pd *pd_in(const struct ibv_context *context, struct ibv_pd *ibv)
{
	return ibv && ibv->context == context ? pd_of(ibv) : NULL;
}

struct cq *cq_in(const struct ibv_context *context, struct ibv_cq *ibv)
{
	return ibv && ibv->context == context ? cq_of(ibv) : NULL;
}

struct mw *mw_in(const struct ibv_context *context, struct ibv_mw *ibv)
{
	return ibv && ibv->context == context ? mw_of(ibv) : NULL;
}

struct xrcd *xrcd_in(const struct ibv_context *context, struct ibv_xrcd *ibv)
{
	return ibv && ibv->context == context ? xrcd_of(ibv) : NULL;
}

struct mr *region_in(const struct ibv_context *context, struct ibv_mr *ibv)
{
	struct mr *mr = ibv && ibv->context == context ? mr_of(ibv) : NULL;

	return mr && mr->engine->kind == SIM_MR_REGION ? mr : NULL;
}

/* --- elements of asynchronous events --- */

static struct element element_cq(struct cq *cq)
{
	return (struct element){
		.context = context_of(cq->ibv.context),
		.kind = KIND_CQ,
		.handle = cq->ibv.handle,
		.read = &cq->async_events_read,
		.acked = &cq->ibv.async_events_completed,
	};
}

static struct element element_qp(struct qp *qp)
{
	return (struct element){
		.context = context_of(qp->ibv.context),
		.kind = KIND_QP,
		.handle = qp->ibv.handle,
		.read = &qp->async_events_read,
		.acked = &qp->ibv.events_completed,
	};
}

static struct element element_srq(struct srq *srq)
{
	return (struct element){
		.context = context_of(srq->ibv.context),
		.kind = KIND_SRQ,
		.handle = srq->ibv.handle,
		.read = &srq->async_events_read,
		.acked = &srq->ibv.events_completed,
	};
}

bool element_of(enum ibv_event_type type, void *object, struct element *element)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		*element = element_cq(object);
		return true;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		*element = element_qp(object);
		return true;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		*element = element_srq(object);
		return true;
	default:
		return false;
	}
}
