/* SPDX-License-Identifier: MIT */
/* Shared receive queues, basic and XRC. */
#include "backends/sim/verb/control.h"
#include "backends/sim/verb/data.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <assert.h>
#include <errno.h>

static const uint32_t known_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				   IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
				   IBV_SRQ_INIT_ATTR_TM;

/* What an SRQ is made of, looked up. */
struct parts {
	struct pd *pd;
	struct xrcd *xrcd;
	struct cq *cq;
};

static bool is_xrc(const struct ibv_srq_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
}

static int check_mask(const struct ibv_srq_init_attr_ex *attr)
{
	bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;

	if (attr->comp_mask & ~known_mask)
		return say(EINVAL, "create_srq_ex: comp_mask 0x%x", attr->comp_mask);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM || (typed && attr->srq_type == IBV_SRQT_TM))
		return say(EOPNOTSUPP, "create_srq_ex: the device matches no tags");
	if (typed && attr->srq_type != IBV_SRQT_BASIC && attr->srq_type != IBV_SRQT_XRC)
		return say(EINVAL, "create_srq_ex: no SRQ type %d", (int)attr->srq_type);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return say(EINVAL, "create_srq_ex: no PD is given");
	if (is_xrc(attr) && (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) ||
			     !(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)))
		return say(EINVAL, "create_srq_ex: an XRC SRQ needs an XRC domain and a CQ");
	return 0;
}

static int find_parts(const struct context *context, const struct ibv_srq_init_attr_ex *attr,
		      struct parts *parts)
{
	const struct ibv_context *ibv = &context->verbs.context;

	*parts = (struct parts){0};
	if (attr->pd && attr->pd->context == ibv)
		parts->pd = pd_of(attr->pd);
	if (!parts->pd)
		return say(EINVAL, "create_srq: no such PD in this context");
	if (!is_xrc(attr))
		return 0;
	if (attr->xrcd && attr->xrcd->context == ibv)
		parts->xrcd = xrcd_of(attr->xrcd);
	if (attr->cq && attr->cq->context == ibv)
		parts->cq = cq_of(attr->cq);
	if (!parts->xrcd || !parts->cq)
		return say(EINVAL, "create_srq_ex: no such %s in this context",
			   parts->xrcd ? "CQ" : "XRC domain");
	return 0;
}

static void fill_srq(struct srq *srq, struct ibv_context *context,
		     const struct ibv_srq_init_attr_ex *attr, uint32_t handle)
{
	srq->ibv = (struct ibv_srq){
		.context = context,
		.srq_context = attr->srq_context,
		.pd = attr->pd,
		.handle = handle,
	};
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
}

static int new_srq(struct context *context, struct ibv_srq_init_attr_ex *attr, struct srq **out)
{
	struct sim_srq_init init = {.attr = attr->attr};
	struct parts parts;
	struct srq *srq;
	uint32_t handle;
	int err = find_parts(context, attr, &parts);

	if (err)
		return err;
	srq = object_new(context, KIND_SRQ, &handle);
	if (!srq)
		return say(ENOMEM, "create_srq: out of memory");
	init.pd = parts.pd->number;
	init.xrcd = parts.xrcd ? parts.xrcd->domain->engine : NULL;
	init.cq = parts.cq ? parts.cq->engine : NULL;
	init.user = srq;
	err = sim_srq_create(context->device->engine, &init, &srq->engine);
	if (err) {
		object_end(context, KIND_SRQ, handle, srq);
		return say(err, "create_srq: %u WRs of %u SGEs: refused by the device",
			   attr->attr.max_wr, attr->attr.max_sge);
	}
	fill_srq(srq, &context->verbs.context, attr, handle);
	srq->xrcd = parts.xrcd;
	parts.pd->users++;
	if (srq->xrcd)
		srq->xrcd->users++;
	attr->attr.max_wr = init.attr.max_wr;
	attr->attr.max_sge = init.attr.max_sge;
	*out = srq;
	return 0;
}

struct ibv_srq *control_create_srq_ex(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct srq *srq = NULL;
	int err = check_mask(attr);

	if (!err)
		err = new_srq(context, attr, &srq);
	world_unlock(context->world, locked);
	if (err)
		errno = err;
	return err ? NULL : &srq->ibv;
}

struct ibv_srq *control_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex all = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = control_create_srq_ex(pd->context, &all);

	if (srq)
		attr->attr = all.attr;
	return srq;
}

int control_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct srq *srq = srq_of(ibv);
	int err = EINVAL;

	if (!srq) {
		say(err, "modify_srq: no such SRQ");
	} else {
		driver_catch_up(world);
		err = sim_srq_modify(srq->engine, attr, attr_mask);
		if (err)
			say(err, "modify_srq: SRQ %u: max_wr %u, limit %u with mask 0x%x: refused",
			    ibv->handle, attr->max_wr, attr->srq_limit, (unsigned int)attr_mask);
	}
	world_unlock(world, locked);
	return err;
}

int control_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct srq *srq = srq_of(ibv);

	if (srq) {
		driver_catch_up(world);
		sim_srq_query(srq->engine, attr);
	}
	world_unlock(world, locked);
	return srq ? 0 : say(EINVAL, "query_srq: no such SRQ");
}

int control_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct srq *srq = srq_of(ibv);
	bool good = srq && srq->xrcd;

	if (good)
		*number = srq->engine->number;
	world_unlock(world, locked);
	return good ? 0 : say(EINVAL, "get_srq_num: no such SRQ, or not an XRC one");
}

void control_end_srq(struct context *context, struct srq *srq)
{
	assert(srq);
	event_queue_forget(&context->async, srq);
	sim_srq_destroy(srq->engine);
	((struct pd *)srq->ibv.pd)->users--;
	if (srq->xrcd)
		srq->xrcd->users--;
	object_end(context, KIND_SRQ, srq->ibv.handle, srq);
}

static bool all_acknowledged(const void *arg)
{
	const struct srq *srq = arg;

	return srq->async_events_read == srq->ibv.events_completed;
}

/* ibv_get_async_event(3): destroying waits for the acknowledgement of every event that was read. */
static int wait_for_acks(struct vb_sim *world, const struct srq *srq)
{
	if (!driver_wait_for_others(world, all_acknowledged, srq))
		return 0;
	return say(EDEADLK, "destroy_srq: SRQ %u: %u events are read and not acknowledged",
		   srq->ibv.handle, srq->async_events_read - srq->ibv.events_completed);
}

int control_destroy_srq(struct ibv_srq *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct srq *srq = srq_of(ibv);
	int err;

	if (!srq)
		err = say(EINVAL, "destroy_srq: no such SRQ");
	else if (srq->engine->users)
		err = say(EBUSY, "destroy_srq: SRQ %u: %u QPs use it", ibv->handle,
			  srq->engine->users);
	else
		err = wait_for_acks(context->world, srq);
	if (!err)
		control_end_srq(context, srq);
	world_unlock(context->world, locked);
	return err;
}

int data_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct srq *srq = srq_of(ibv);
	int err;

	if (!srq) {
		*bad_wr = wr;
		err = say(EINVAL, "post_srq_recv: no such SRQ");
	} else {
		err = sim_srq_post(srq->engine, wr, bad_wr);
		if (err)
			say(err, "post_srq_recv: SRQ %u: %u of %u WRs are posted", ibv->handle,
			    sim_srq_count(srq->engine), srq->engine->queue.max_wr);
		if (world->driver.real)
			driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}
