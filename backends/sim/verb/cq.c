/* SPDX-License-Identifier: MIT */
/* Completion queues. */
#include "backends/sim/verb/verbs.h"

#include "sim/object/rules.h"

/* The flags of ibv_cq_init_attr_ex that verb_fill_poll() can serve. */
static const uint64_t known_wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static bool is_parent_domain(const struct context *context, struct ibv_pd *ibv)
{
	const struct pd *pd = pd_in(&context->verbs.context, ibv);

	return pd && pd->extends;
}

static int check_attr(const struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const struct ibv_device_attr *limits = &context->device->engine->profile->limits;
	const struct ibv_context *ibv = &context->verbs.context;

	if (!context_live(context))
		return say(EINVAL, "create_cq: the context is closed");
	if (attr->cqe < 1 || attr->cqe > (uint32_t)limits->max_cqe)
		return say(EINVAL, "create_cq: %u entries: a CQ has 1 to %d", attr->cqe,
			   limits->max_cqe);
	if (attr->comp_vector >= (uint32_t)context->verbs.context.num_comp_vectors)
		return say(EINVAL,
			   "create_cq: there is no completion vector %u: there are %d, from 0",
			   attr->comp_vector, context->verbs.context.num_comp_vectors);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    !is_parent_domain(context, attr->parent_domain))
		return say(pd_in(ibv, attr->parent_domain)
				   ? EINVAL
				   : object_missing(ibv, attr->parent_domain),
			   "create_cq: parent_domain is no parent domain of this context");
	if (attr->channel && !channel_in(ibv, attr->channel))
		return say(object_missing(ibv, attr->channel),
			   "create_cq: no such channel in this context");
	return 0;
}

/* Fills a CQ whose engine's CQ is made, and counts it where it is used. */
static void fill_cq(struct cq *cq, const struct ibv_cq_init_attr_ex *attr)
{
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	cq->ibv.cqe = (int)cq->engine->size;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->poll_mutex, NULL);
	verb_fill_poll(cq, attr->wc_flags);
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
		cq->channel = (struct channel *)attr->channel;
		cq->channel->users++;
		attr->channel->refcnt++;
	}
}

static struct cq *create(struct ibv_context *ibv, const struct ibv_cq_init_attr_ex *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	int err = check_attr(context, attr);
	struct cq *cq;

	if (err)
		return null_errno(err);
	cq = object_new(context, KIND_CQ, "create_cq");
	if (!cq)
		return NULL;
	err = sim_cq_create(context->device->engine, attr->cqe, cq, &cq->engine);
	if (err) {
		object_end(KIND_CQ, cq);
		return null_errno(say_refused(hold.world, "create_cq", err));
	}
	fill_cq(cq, attr);
	return cq;
}

struct ibv_cq *verb_create_cq(struct ibv_context *ibv, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		/* As an unsigned number, a negative vector is too large. */
		.comp_vector = (uint32_t)comp_vector,
	};
	struct cq *cq = create(ibv, &attr);

	return cq ? &cq->ibv : NULL;
}

/* Returns true if the device lacks the time stamps or the ignored overrun that attr asks for. */
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

struct ibv_cq_ex *verb_create_cq_ex(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t flags =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	const struct context *context = context_of(ibv);
	struct cq *cq;

	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return say_null(EINVAL, "create_cq_ex: unknown bits in comp_mask 0x%x",
				attr->comp_mask);
	if (asks_too_much(context, attr) || attr->wc_flags & ~known_wc_flags ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && attr->flags & ~flags &&
	     sim_device_obeys(context->device->engine, SIM_RULE_CQ_FLAGS_KNOWN)))
		return say_null(
			EOPNOTSUPP,
			"create_cq_ex: the device does not have all of wc_flags 0x%llx, flags 0x%x",
			(unsigned long long)attr->wc_flags, attr->flags);
	cq = create(ibv, attr);
	return cq ? &cq->ex : NULL;
}

int verb_resize_cq(struct ibv_cq *ibv, int cqe)
{
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		return say(ENOENT, "resize_cq: no such CQ");
	err = sim_cq_resize(cq->engine, cqe < 0 ? 0 : (unsigned int)cqe);
	if (err)
		return say_refused(hold.world, "resize_cq", err);
	ibv->cqe = (int)cq->engine->size;
	return 0;
}

/* The errors are those of Linux drivers/infiniband/core/uverbs_cmd.c. */
int verb_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *moderate = &attr->moderate;
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		return say(ENOENT, "modify_cq: no such CQ");
	if (!attr->attr_mask)
		return say(EINVAL, "modify_cq: attr_mask is 0");
	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return say(EOPNOTSUPP, "modify_cq: unknown bits in attr_mask 0x%x",
			   attr->attr_mask);
	err = sim_cq_moderate(cq->engine, moderate->cq_count, moderate->cq_period);
	driver_catch_up(&hold.world->driver);
	return err ? say_refused(hold.world, "modify_cq", err) : 0;
}

int verb_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);

	if (!cq)
		return say(ENOENT, "req_notify_cq: no such CQ");
	sim_cq_arm(cq->engine, solicited_only);
	return 0;
}

void verb_end_cq(void *object)
{
	struct cq *cq = object;
	struct channel *channel = cq->channel;

	if (channel) {
		event_queue_forget(&channel->events, cq);
		channel->users--;
		channel->ibv.refcnt--;
	}
	event_queue_forget(&object_context(cq)->async, cq);
	if (cq->parent)
		cq->parent->users--;
	sim_cq_destroy(cq->engine);
	object_end(KIND_CQ, cq);
}

static bool all_acknowledged(const void *arg)
{
	const struct cq *cq = arg;

	return cq->comp_events_read == cq->ibv.comp_events_completed &&
	       cq->async_events_read == cq->ibv.async_events_completed;
}

/* ibv_get_cq_event(3): waits until every event that was read is acknowledged. */
int verb_destroy_cq(struct ibv_cq *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		return say(ENOENT, "destroy_cq: no such CQ");
	if (cq->engine->users)
		return say(EBUSY,
			   "destroy_cq: CQ %u: %u queues complete into it; destroy them first",
			   ibv->handle, cq->engine->users);
	err = driver_wait_for_others(&hold.world->driver, all_acknowledged, cq);
	if (err)
		return say(
			err,
			"destroy_cq: CQ %u: %u completion events and %u asynchronous events were "
			"read; acknowledge them first",
			ibv->handle, cq->comp_events_read - ibv->comp_events_completed,
			cq->async_events_read - ibv->async_events_completed);
	verb_end_cq(cq);
	return 0;
}
