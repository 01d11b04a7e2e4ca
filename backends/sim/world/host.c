/* SPDX-License-Identifier: MIT */
/* What the engine asks its owner for: objects of the program, events, the program's memory. */
#include "backends/sim/guard/guard.h"
#include "backends/sim/world/world.h"

/* A UD send may name an AH of the QP's own context and PD. */
static struct sim_ah *find_ah(void *arg, const struct sim_qp *engine, struct ibv_ah *ibv)
{
	const struct qp *qp = sim_qp_user(engine);
	struct ah *ah;

	if (!ibv || ibv->context != qp->ibv.context)
		return NULL;
	ah = ah_of(ibv);
	if (!ah || (ah->engine->pd != sim_qp_pd(engine) &&
		    !sim_qp_device(engine)->quirks.foreign_ahs_end_sends))
		return NULL;
	return ah->engine;
}

static bool find_mw(void *arg, const struct sim_qp *engine, struct ibv_mw *ibv_mw,
		    struct ibv_mr *ibv_mr, uint32_t *mw_number, uint32_t *region_lkey)
{
	const struct qp *qp = sim_qp_user(engine);
	const struct mw *mw = mw_in(qp->ibv.context, ibv_mw);
	const struct mr *mr = region_in(qp->ibv.context, ibv_mr);

	if (!mw || (ibv_mr && !mr))
		return false;
	*mw_number = mw->engine->number;
	*region_lkey = mr ? mr->engine->lkey : 0;
	return true;
}

static void cq_event(void *arg, struct sim_cq *engine)
{
	struct vb_sim *world = arg;
	struct cq *cq = engine->user;
	const struct queued_event event = {.object = cq};

	if (!cq->channel)
		return;
	event_queue_push(&cq->channel->events, &event);
	driver_changed(&world->driver);
}

/*
 * Each handle of a shared QP gets the event: Linux drivers/infiniband/core/verbs.c,
 * __ib_shared_qp_event_handler.
 */
static void push_to_handles(struct qp *first, struct queued_event event)
{
	struct qp *qp = first;

	do {
		event.object = qp;
		event_queue_push(&context_of(qp->ibv.context)->async, &event);
		qp = qp->next_handle;
	} while (qp != first);
}

static void push_to_contexts(struct vb_sim *world, const struct sim_device *device,
			     const struct queued_event *event)
{
	struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->device->engine == device)
			event_queue_push(&context->async, event);
}

static void async_event(void *arg, struct sim_device *device, const struct sim_event *event)
{
	struct vb_sim *world = arg;
	const struct queued_event queued = {
		.object = event->element,
		.type = event->type,
		.port_num = (int)event->port_num,
	};
	const enum kind kind = event_kind(event->type);

	if (kind == KINDS)
		push_to_contexts(world, device, &queued);
	else if (kind == KIND_QP)
		push_to_handles(event->element, queued);
	else
		event_queue_push(&object_context(event->element)->async, &queued);
	driver_changed(&world->driver);
}

struct sim_host world_host(struct vb_sim *world)
{
	return (struct sim_host){
		.arg = world,
		.cq_event = cq_event,
		.async_event = async_event,
		.find_ah = find_ah,
		.find_mw = find_mw,
		.memory = {.copy = guard_copy, .probe = guard_probe},
	};
}
