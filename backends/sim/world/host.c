/* SPDX-License-Identifier: MIT */
/* What the engine asks its owner for: objects of the program, events, the program's memory. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/guard/distant.h"
#include "backends/sim/world/world.h"
#include "src/guard/held.h"

#include <stdio.h>

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
	if (cq->awaited) {
		cq->awaited = false;
		driver_disarmed(&world->driver);
	}
	event_queue_push(&cq->channel->events, &event);
	driver_changed(&world->driver);
}

/*
 * Each handle of a shared QP gets the event: Linux drivers/infiniband/core/verbs.c,
 * __ib_shared_qp_event_handler.
 */
static void push_to_handles(struct vb_sim *world, struct qp *first, struct queued_event event)
{
	struct qp *qp = first;

	do {
		event.object = qp;
		if (qp->ibv.context)
			event_queue_push(&context_of(qp->ibv.context)->async, &event);
		else
			world->calls.event(world, qp, event.type);
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

/* --- events for a watcher --- */

enum { NAME_BYTES = 64 };

static void note(void *arg, const struct vb_event *event, void *element)
{
	const struct vb_sim *world = arg;
	const struct cq *cq = element;
	struct vb_event named;
	char name[NAME_BYTES];
	int state = cancel_off();

	if (cq) {
		snprintf(name, sizeof(name), "CQ %u", cq->ibv.handle);
		named = *event;
		named.texts[0] = name;
		named.object = &cq->ibv;
		event = &named;
	}
	world->note(world->note_arg, event);
	cancel_restore(state);
}

void world_note(struct vb_sim *world, vb_event_fn *fn, void *arg)
{
	world->note = fn;
	world->note_arg = arg;
	sim_notes_watch(world->driver.engine, fn != NULL);
}

/* Names the object that an asynchronous event belongs to: the kind and the number that the program
 * knows. Returns the libibverbs object; NULL for an event of a port or a device. */
static const void *name_element(const struct sim_device *device, const struct sim_event *event,
				char name[NAME_BYTES])
{
	const struct qp *qp = event->element;
	const struct cq *cq = event->element;
	const struct srq *srq = event->element;

	switch (event_kind(event->type)) {
	case KIND_QP:
		snprintf(name, NAME_BYTES, "QP 0x%x", qp->ibv.qp_num);
		return &qp->ibv;
	case KIND_CQ:
		snprintf(name, NAME_BYTES, "CQ %u", cq->ibv.handle);
		return &cq->ibv;
	case KIND_SRQ:
		snprintf(name, NAME_BYTES, "SRQ %u", srq->ibv.handle);
		return &srq->ibv;
	default:
		if (event->port_num)
			snprintf(name, NAME_BYTES, "port %u", event->port_num);
		else
			snprintf(name, NAME_BYTES, "%s", device->name);
		return NULL;
	}
}

static void note_async(struct vb_sim *world, const struct sim_device *device,
		       const struct sim_event *event)
{
	const bool of_qp = event_kind(event->type) == KIND_QP;
	char name[NAME_BYTES];
	struct vb_event noted = {
		.kind = VB_EVENT_ASYNC,
		.device = device->name,
		.port = event->port_num,
		.qpn = of_qp ? ((const struct qp *)event->element)->ibv.qp_num : 0,
		.values = {event->type},
		.texts = {name},
	};

	noted.object = name_element(device, event, name);
	sim_note(world->driver.engine, &noted, NULL);
}

/* --- asynchronous events --- */

static void async_event(void *arg, struct sim_device *device, const struct sim_event *event)
{
	struct vb_sim *world = arg;
	const struct queued_event queued = {
		.object = event->element,
		.type = event->type,
		.port_num = (int)event->port_num,
	};
	const enum kind kind = event_kind(event->type);

	if (sim_watched(world->driver.engine))
		note_async(world, device, event);
	if (kind == KINDS) {
		push_to_contexts(world, device, &queued);
		if (world->cm.event)
			world->cm.event(world->cm.arg, device, event->type);
	} else if (kind == KIND_QP) {
		push_to_handles(world, event->element, queued);
	} else {
		event_queue_push(&object_context(event->element)->async, &queued);
	}
	driver_changed(&world->driver);
}

/* --- memory --- */

static int copy_holding(void *dst, const void *src, size_t length_bytes)
{
	return held_copy(guard_copy, dst, src, length_bytes);
}

static int copy_distant_holding(void *dst, const void *src, size_t length_bytes)
{
	return held_copy(distant_copy, dst, src, length_bytes);
}

typedef int copy_fn(void *dst, const void *src, size_t length_bytes);

/* Imports have memory of other processes. */
static copy_fn *choose_copy(const struct vb_sim *world)
{
	if (held_wanted())
		return world->shared ? copy_distant_holding : copy_holding;
	return world->shared ? distant_copy : guard_copy;
}

static uint64_t now_ns(void *arg)
{
	struct vb_sim *world = arg;

	return driver_now_ns(&world->driver);
}

struct sim_host world_host(struct vb_sim *world)
{
	return (struct sim_host){
		.arg = world,
		.cq_event = cq_event,
		.async_event = async_event,
		.note = note,
		.find_ah = find_ah,
		.find_mw = find_mw,
		.memory = {.copy = choose_copy(world),
			   .probe = guard_probe,
			   .find_hole = guard_find_hole},
		.now_ns = now_ns,
		.claim_numbers = world->shared ? world_claim_numbers : NULL,
		.claim_arg = world,
	};
}
