/* SPDX-License-Identifier: MIT */
/* Completion queues. */
#include "backends/sim/verb/verbs.h"

#include "sim/object/rules.h"

/* The flags of ibv_cq_init_attr_ex that verb_fill_poll() can serve. */
static const uint64_t known_wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

#define CREATE "create_cq"

static int check_parent(struct ibv_context *context, struct ibv_pd *ibv)
{
	const struct pd *pd = pd_in(context, ibv);

	if (!pd)
		return refuse_missing(CREATE, KIND_PD, context, ibv);
	return pd->extends ? 0
			   : refuse_why(CREATE, (struct vb_why){VB_WHY_CQ_PARENT, {ibv->handle}});
}

static int check_attr(struct context *context, const struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t entries = (uint32_t)context->device->engine->profile->limits.max_cqe;
	struct ibv_context *ibv = &context->verbs.context;
	const uint32_t vectors = (uint32_t)ibv->num_comp_vectors;
	int err;

	if (!context_live(context))
		return refuse_plainly(CREATE, VB_WHY_CONTEXT_CLOSED);
	if (attr->cqe < 1 || attr->cqe > entries)
		return refuse_why(CREATE, (struct vb_why){VB_WHY_CQ_SIZE, {attr->cqe, entries}});
	if (attr->comp_vector >= vectors)
		return refuse_why(CREATE,
				  (struct vb_why){VB_WHY_CQ_VECTOR, {attr->comp_vector, vectors}});
	err = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? check_parent(ibv, attr->parent_domain)
							 : 0;
	if (err)
		return err;
	return attr->channel && !channel_in(ibv, attr->channel)
		       ? refuse_missing(CREATE, KIND_CHANNEL, ibv, attr->channel)
		       : 0;
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
	cq = object_new(context, KIND_CQ, CREATE);
	if (!cq)
		return NULL;
	err = sim_cq_create(context->device->engine, attr->cqe, cq, &cq->engine);
	if (err) {
		object_end(KIND_CQ, cq);
		return null_errno(say_refused(hold.world, CREATE, err));
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

#define CREATE_EX "create_cq_ex"

static int refuse_flags(enum vb_reason reason, uint64_t flags)
{
	return refuse_why(CREATE_EX, (struct vb_why){reason, {flags}});
}

/* EOPNOTSUPP for what the device's CQs do not have. */
static int check_flags(const struct sim_device *device, const struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t stamps =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const unsigned int lacks = device->profile->lacks;
	const uint64_t known = known_wc_flags & (lacks & SIM_LACKS_TIMESTAMPS ? ~stamps : ~0ull);
	const uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	const uint32_t unknown = flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
						     IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);

	if (attr->wc_flags & ~known)
		return refuse_flags(VB_WHY_CQ_WC_FLAGS, attr->wc_flags & ~known);
	if (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN && lacks & SIM_LACKS_IGNORED_OVERRUN)
		return refuse_flags(VB_WHY_CQ_OVERRUN_LACKING, 0);
	if (unknown && sim_device_obeys(device, SIM_RULE_CQ_FLAGS_KNOWN))
		return refuse_flags(VB_WHY_CQ_FLAGS, unknown);
	return 0;
}

struct ibv_cq_ex *verb_create_cq_ex(struct ibv_context *ibv, struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t unknown = attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS |
							       IBV_CQ_INIT_ATTR_MASK_PD);
	int err = unknown ? refuse_comp_mask(CREATE_EX, unknown)
			  : check_flags(context_of(ibv)->device->engine, attr);
	struct cq *cq;

	if (err)
		return null_errno(err);
	cq = create(ibv, attr);
	return cq ? &cq->ex : NULL;
}

int verb_resize_cq(struct ibv_cq *ibv, int cqe)
{
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		return refuse_gone("resize_cq", KIND_CQ, ibv);
	err = sim_cq_resize(cq->engine, cqe < 0 ? 0 : (unsigned int)cqe);
	if (err)
		return say_refused(hold.world, "resize_cq", err);
	ibv->cqe = (int)cq->engine->size;
	return 0;
}

/* The errors are those of Linux drivers/infiniband/core/uverbs_cmd.c. */
int verb_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	const uint32_t unknown = attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE;
	const struct ibv_moderate_cq *moderate = &attr->moderate;
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);
	int err;

	if (!cq)
		return refuse_gone("modify_cq", KIND_CQ, ibv);
	if (!attr->attr_mask)
		return refuse_plainly("modify_cq", VB_WHY_CQ_MODIFY_NOTHING);
	if (unknown)
		return refuse_why("modify_cq", (struct vb_why){VB_WHY_CQ_MODIFY_MASK, {unknown}});
	err = sim_cq_moderate(cq->engine, moderate->cq_count, moderate->cq_period);
	driver_catch_up(&hold.world->driver);
	return err ? say_refused(hold.world, "modify_cq", err) : 0;
}

int verb_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	HOLD hold = context_hold(ibv->context);
	struct cq *cq = cq_of(ibv);

	if (!cq)
		return refuse_gone("req_notify_cq", KIND_CQ, ibv);
	sim_cq_arm(cq->engine, solicited_only);
	if (cq->channel && cq->engine->armed & SIM_CQ_ARM_MASK && !cq->awaited) {
		cq->awaited = true;
		driver_armed(&hold.world->driver);
	}
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
	if (cq->awaited)
		driver_disarmed(&object_context(cq)->world->driver);
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
		return refuse_gone("destroy_cq", KIND_CQ, ibv);
	if (cq->engine->users)
		return refuse_busy("destroy_cq", VB_WHY_CQ_BUSY, ibv->handle, KIND_CQ, cq);
	err = driver_wait_for_others(&hold.world->driver, all_acknowledged, cq);
	if (err)
		return refuse_wait(
			"destroy_cq", err,
			(struct vb_why){VB_WHY_CQ_EVENTS,
					{ibv->handle,
					 cq->comp_events_read - ibv->comp_events_completed,
					 cq->async_events_read - ibv->async_events_completed}});
	verb_end_cq(cq);
	return 0;
}
