/* SPDX-License-Identifier: MIT */
#include "backends/sim/object/extended.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"
#include "sim/object/rules.h"

#include <errno.h>

static bool is_parent_domain(const struct context *context, struct ibv_pd *ibv)
{
	struct pd *pd;

	if (!ibv || ibv->context != &context->verbs.context)
		return false;
	pd = pd_of(ibv);
	return pd && pd->extends;
}

static bool attr_fits(const struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const struct ibv_device_attr *limits = &context->device->engine->profile->limits;

	if (attr->cqe < 1 || attr->cqe > (uint32_t)limits->max_cqe) {
		say(EINVAL, "create_cq: %u entries: 1 to %d are possible", attr->cqe,
		    limits->max_cqe);
		return false;
	}
	if (attr->comp_vector >= (uint32_t)context->verbs.context.num_comp_vectors) {
		say(EINVAL, "create_cq: completion vector %u: there are %d", attr->comp_vector,
		    context->verbs.context.num_comp_vectors);
		return false;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    !is_parent_domain(context, attr->parent_domain)) {
		say(EINVAL, "create_cq: parent_domain is not one of this context");
		return false;
	}
	if (attr->channel &&
	    (attr->channel->context != &context->verbs.context || !channel_of(attr->channel))) {
		say(EINVAL, "create_cq: the channel is not one of this context");
		return false;
	}
	return true;
}

static struct cq *new_cq(struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct cq *cq;
	uint32_t handle;
	int err;

	if (!context_live(context))
		return say_null(EINVAL, "create_cq: the context is closed");
	if (!attr_fits(context, attr)) {
		errno = EINVAL;
		return NULL;
	}
	cq = object_new(context, KIND_CQ, &handle);
	if (!cq)
		return say_null(ENOMEM, "create_cq: out of memory");
	err = sim_cq_create(context->device->engine, attr->cqe, cq, &cq->engine);
	if (err) {
		object_end(context, KIND_CQ, handle, cq);
		return say_null(err, "create_cq: refused by the device");
	}
	cq->ibv.context = &context->verbs.context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	cq->ibv.handle = handle;
	cq->ibv.cqe = (int)cq->engine->size;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->poll_mutex, NULL);
	extended_fill_cq(cq, attr->wc_flags);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		cq->engine->ignore_overrun = attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
		cq->single_threaded = attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	}
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = (struct pd *)attr->parent_domain;
		cq->parent->users++;
		cq->single_threaded |= cq->parent->td != NULL;
	}
	if (attr->channel) {
		((struct channel *)attr->channel)->users++;
		attr->channel->refcnt++;
	}
	return cq;
}

static struct cq *create(struct ibv_context *ibv, const struct ibv_cq_init_attr_ex *attr)
{
	struct vb_sim *world = context_of(ibv)->world;
	bool locked = world_lock(world);
	struct cq *cq = new_cq(context_of(ibv), attr);

	world_unlock(world, locked);
	return cq;
}

struct ibv_cq *control_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
				 struct ibv_comp_channel *channel, int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		/* A negative one is as wrong as one that is too large. */
		.comp_vector = (uint32_t)comp_vector,
	};
	struct cq *cq = create(ibv, &attr);

	return cq ? &cq->ibv : NULL;
}

/* Stamps, or an overrun that is ignored, where the device has none. */
static bool asks_too_much(const struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t stamps =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const unsigned int lacks = context->device->engine->profile->lacks;

	if (attr->wc_flags & stamps && lacks & SIM_LACKS_TIMESTAMPS)
		return true;
	return attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	       attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN && lacks & SIM_LACKS_IGNORED_OVERRUN;
}

struct ibv_cq_ex *control_create_cq_ex(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t flags =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	const struct context *context = context_of(ibv);
	struct cq *cq;

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return say_null(EINVAL, "create_cq_ex: comp_mask 0x%x", attr->comp_mask);
	if (asks_too_much(context, attr) || attr->wc_flags & ~(uint64_t)EXTENDED_WC_FLAGS ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~flags &&
	     sim_device_obeys(context->device->engine, SIM_RULE_CQ_FLAGS_KNOWN)))
		return say_null(EOPNOTSUPP, "create_cq_ex: wc_flags 0x%llx, flags 0x%x",
				(unsigned long long)attr->wc_flags, attr->flags);
	cq = create(ibv, attr);
	return cq ? &cq->ex : NULL;
}

int control_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of(ibv);
	int err = EINVAL;

	if (cq && cqe > 0)
		err = sim_cq_resize(cq->engine, (unsigned int)cqe);
	if (err)
		say(err, "resize_cq: %s to %d entries", cq ? "the CQ cannot change" : "no such CQ",
		    cqe);
	else
		ibv->cqe = (int)cq->engine->size;
	world_unlock(world, locked);
	return err;
}

/* The errors are those of Linux drivers/infiniband/core/uverbs_cmd.c. */
int control_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *moderate = &attr->moderate;
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq || !attr->attr_mask)
		err = say(EINVAL, "modify_cq: no such CQ, or attr_mask 0");
	else if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		err = say(EOPNOTSUPP, "modify_cq: attr_mask 0x%x", attr->attr_mask);
	else if ((err = sim_cq_moderate(cq->engine, moderate->cq_count, moderate->cq_period)))
		say(err, "modify_cq: CQ %u: no event after %u completions or %u us", ibv->handle,
		    moderate->cq_count, moderate->cq_period);
	driver_catch_up(world);
	world_unlock(world, locked);
	return err;
}

void control_end_cq(struct context *context, struct cq *cq)
{
	struct channel *channel = (struct channel *)cq->ibv.channel;

	if (channel) {
		event_queue_forget(&channel->events, cq);
		channel->users--;
		channel->ibv.refcnt--;
	}
	event_queue_forget(&context->async, cq);
	if (cq->parent)
		cq->parent->users--;
	sim_cq_destroy(cq->engine);
	object_end(context, KIND_CQ, cq->ibv.handle, cq);
}

static bool all_acknowledged(const void *arg)
{
	const struct cq *cq = arg;

	return cq->comp_events_read == cq->ibv.comp_events_completed &&
	       cq->async_events_read == cq->ibv.async_events_completed;
}

/* ibv_get_cq_event(3): destroying waits for the acknowledgement of every event that was read. */
static int wait_for_acks(struct vb_sim *world, const struct cq *cq)
{
	if (!driver_wait_for_others(world, all_acknowledged, cq))
		return 0;
	return say(EDEADLK,
		   "destroy_cq: CQ %u: %u completion and %u asynchronous events are read and not "
		   "acknowledged",
		   cq->ibv.handle, cq->comp_events_read - cq->ibv.comp_events_completed,
		   cq->async_events_read - cq->ibv.async_events_completed);
}

int control_destroy_cq(struct ibv_cq *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		err = say(EINVAL, "destroy_cq: no such CQ");
	else if (cq->engine->users)
		err = say(EBUSY, "destroy_cq: CQ %u: %u queues complete into it", ibv->handle,
			  cq->engine->users);
	else
		err = wait_for_acks(context->world, cq);
	if (!err)
		control_end_cq(context, cq);
	world_unlock(context->world, locked);
	return err;
}
