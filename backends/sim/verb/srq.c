/* SPDX-License-Identifier: MIT */
/* Shared receive queues, basic and XRC. */
#include "backends/sim/verb/verbs.h"

static const uint32_t known_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				   IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
				   IBV_SRQ_INIT_ATTR_TM;

/* The objects that a new SRQ uses. */
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
	const bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;
	const uint32_t xrc_parts = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t needed = IBV_SRQ_INIT_ATTR_PD | (is_xrc(attr) ? xrc_parts : 0);
	const uint32_t missing = needed & ~attr->comp_mask;

	if (attr->comp_mask & ~known_mask)
		return refuse_comp_mask("create_srq_ex", attr->comp_mask & ~known_mask);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM || (typed && attr->srq_type == IBV_SRQT_TM))
		return refuse_plainly("create_srq_ex", VB_WHY_SRQ_TAG_MATCHING);
	if (typed && attr->srq_type != IBV_SRQT_BASIC && attr->srq_type != IBV_SRQT_XRC)
		return refuse_why("create_srq_ex",
				  (struct vb_why){VB_WHY_SRQ_TYPE, {(uint64_t)attr->srq_type}});
	if (missing)
		return refuse_why("create_srq_ex", (struct vb_why){VB_WHY_SRQ_PARTS, {missing}});
	return 0;
}

static int find_parts(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr,
		      struct parts *parts)
{
	*parts = (struct parts){.pd = pd_in(context, attr->pd)};
	if (!parts->pd)
		return refuse_missing("create_srq", KIND_PD, context, attr->pd);
	if (!is_xrc(attr))
		return 0;
	parts->xrcd = xrcd_in(context, attr->xrcd);
	parts->cq = cq_in(context, attr->cq);
	if (!parts->xrcd)
		return refuse_missing("create_srq_ex", KIND_XRCD, context, attr->xrcd);
	return parts->cq ? 0 : refuse_missing("create_srq_ex", KIND_CQ, context, attr->cq);
}

static struct srq *new_srq(struct context *context, const struct parts *parts,
			   struct ibv_srq_init_attr_ex *attr)
{
	struct sim_srq_init init = {
		.attr = attr->attr,
		.pd = parts->pd->number,
		.xrcd = parts->xrcd ? parts->xrcd->domain->engine : NULL,
		.cq = parts->cq ? parts->cq->engine : NULL,
	};
	struct srq *srq = object_new(context, KIND_SRQ, "create_srq");
	int err;

	if (!srq)
		return NULL;
	init.user = srq;
	err = sim_srq_create(context->device->engine, &init, &srq->engine);
	if (err) {
		object_end(KIND_SRQ, srq);
		return null_errno(say_refused(context->world, "create_srq", err));
	}
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = attr->pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq->pd = parts->pd;
	srq->xrcd = parts->xrcd;
	srq->cq = parts->cq;
	srq->pd->users++;
	if (srq->xrcd)
		srq->xrcd->users++;
	attr->attr.max_wr = init.attr.max_wr;
	attr->attr.max_sge = init.attr.max_sge;
	return srq;
}

struct ibv_srq *verb_create_srq_ex(struct ibv_context *ibv, struct ibv_srq_init_attr_ex *attr)
{
	HOLD hold = context_hold(ibv);
	struct parts parts;
	struct srq *srq;
	int err = check_mask(attr);

	if (!err)
		err = find_parts(ibv, attr, &parts);
	if (err)
		return null_errno(err);
	srq = new_srq(context_of(ibv), &parts, attr);
	return srq ? &srq->ibv : NULL;
}

struct ibv_srq *verb_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex all = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = verb_create_srq_ex(pd->context, &all);

	if (srq)
		attr->attr = all.attr;
	return srq;
}

int verb_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
	HOLD hold = context_hold(ibv->context);
	struct srq *srq = srq_of(ibv);
	int err;

	if (!srq)
		return refuse_gone("modify_srq", KIND_SRQ, ibv);
	driver_catch_up(&hold.world->driver);
	err = sim_srq_modify(srq->engine, attr, attr_mask);
	return err ? say_refused(hold.world, "modify_srq", err) : 0;
}

int verb_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	HOLD hold = context_hold(ibv->context);
	struct srq *srq = srq_of(ibv);

	if (!srq)
		return refuse_gone("query_srq", KIND_SRQ, ibv);
	driver_catch_up(&hold.world->driver);
	sim_srq_query(srq->engine, attr);
	return 0;
}

int verb_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	HOLD hold = context_hold(ibv->context);
	struct srq *srq = srq_of(ibv);

	if (!srq)
		return refuse_gone("get_srq_num", KIND_SRQ, ibv);
	if (!srq->xrcd)
		return refuse_plainly("get_srq_num", VB_WHY_SRQ_NOT_XRC);
	*number = srq->engine->number;
	return 0;
}

void verb_end_srq(void *object)
{
	struct srq *srq = object;

	event_queue_forget(&object_context(srq)->async, srq);
	sim_srq_destroy(srq->engine);
	srq->pd->users--;
	if (srq->xrcd)
		srq->xrcd->users--;
	object_end(KIND_SRQ, srq);
}

static bool all_acknowledged(const void *arg)
{
	const struct srq *srq = arg;

	return srq->async_events_read == srq->ibv.events_completed;
}

/* ibv_get_async_event(3): waits until every event that was read is acknowledged. */
int verb_destroy_srq(struct ibv_srq *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct srq *srq = srq_of(ibv);
	int err;

	if (!srq)
		return refuse_gone("destroy_srq", KIND_SRQ, ibv);
	if (srq->engine->users)
		return refuse_why("destroy_srq",
				  (struct vb_why){VB_WHY_SRQ_BUSY, {srq->engine->users}});
	err = driver_wait_for_others(&hold.world->driver, all_acknowledged, srq);
	if (err)
		return refuse_events("destroy_srq", err, KIND_SRQ, srq);
	verb_end_srq(srq);
	return 0;
}

int verb_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	HOLD hold = context_hold_to_post(ibv->context);
	struct srq *srq = srq_of(ibv);
	int err;

	if (!srq) {
		*bad_wr = wr;
		return refuse_queue("post_srq_recv", KIND_SRQ, ibv);
	}
	err = sim_srq_post(srq->engine, wr, bad_wr);
	if (err)
		say_refused(hold.world, "post_srq_recv", err);
	driver_run_posted(&hold.world->driver);
	return err;
}
