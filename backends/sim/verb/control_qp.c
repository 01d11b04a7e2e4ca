/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/control.h"
#include "backends/sim/verb/wr_api.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"
#include "sim/object/rules.h"

#include "sim/qp/state.h"

#include <errno.h>
#include <string.h>

/* What a QP is made of, looked up. */
struct parts {
	struct pd *pd;	   /* NULL for a target QP */
	struct xrcd *xrcd; /* of a target QP only */
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq;
};

static bool is_target(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type == IBV_QPT_XRC_RECV;
}

void control_fill_qp(struct qp *qp, struct ibv_context *context, void *qp_context,
		     enum ibv_qp_type type, uint32_t handle)
{
	qp->ibv = (struct ibv_qp){
		.context = context,
		.qp_context = qp_context,
		.handle = handle,
		.qp_num = sim_qp_number(qp->engine),
		.state = IBV_QPS_RESET,
		.qp_type = type,
	};
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

/* Not in this context is as wrong as not there. */
static struct cq *cq_in(const struct ibv_context *context, struct ibv_cq *ibv)
{
	return ibv && ibv->context == context ? cq_of(ibv) : NULL;
}

static int find_domain(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		       struct parts *parts)
{
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	struct ibv_xrcd *xrcd = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? attr->xrcd : NULL;

	if (is_target(attr)) {
		parts->xrcd = xrcd && xrcd->context == context ? xrcd_of(xrcd) : NULL;
		return parts->xrcd ? 0
				   : say(EINVAL, "create_qp: no such XRC domain in this context");
	}
	parts->pd = pd && pd->context == context ? pd_of(pd) : NULL;
	return parts->pd ? 0 : say(EINVAL, "create_qp: no such PD in this context");
}

static const struct sim_device *device_of(const struct ibv_context *context)
{
	return context_of((struct ibv_context *)context)->device->engine;
}

/* A target QP has no CQs; an XRC send QP has one, and no receive queue. */
static int find_parts(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		      struct parts *parts)
{
	int err;

	*parts = (struct parts){0};
	err = find_domain(context, attr, parts);
	if (err || is_target(attr))
		return err;
	parts->send_cq = cq_in(context, attr->send_cq);
	if (!parts->send_cq)
		return say(EINVAL, "create_qp: no such send CQ in this context");
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return attr->srq ? say(EINVAL, "create_qp: an XRC send QP takes no SRQ") : 0;
	parts->recv_cq = cq_in(context, attr->recv_cq);
	if (!parts->recv_cq)
		return say(EINVAL, "create_qp: no such receive CQ in this context");
	if (attr->srq) {
		/* ibv_create_qp(3), Notes: RC and UD. */
		if (attr->qp_type == IBV_QPT_UC &&
		    sim_device_obeys(device_of(context), SIM_RULE_SRQ_OF_TYPE))
			return say(EINVAL, "create_qp: a UC QP takes no SRQ");
		parts->srq = attr->srq->context == context ? srq_of(attr->srq) : NULL;
		if (!parts->srq || parts->srq->xrcd)
			return say(EINVAL, "create_qp: no such SRQ in this context, or an XRC one");
	}
	return 0;
}

static int create_engine(struct context *context, const struct parts *parts,
			 struct ibv_qp_init_attr_ex *attr, struct qp *qp)
{
	struct sim_qp_init init = {
		.type = attr->qp_type,
		.srq = parts->srq ? parts->srq->engine : NULL,
		.xrcd = parts->xrcd ? parts->xrcd->domain->engine : NULL,
		.pd = parts->pd ? parts->pd->number : 0,
		.send_cq = parts->send_cq ? parts->send_cq->engine : NULL,
		.recv_cq = parts->recv_cq ? parts->recv_cq->engine : NULL,
		.cap = attr->cap,
		.sig_all = attr->sq_sig_all,
		.create_flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS
					? (uint32_t)attr->create_flags
					: 0,
		.user = qp,
	};
	int err;

	/* Ignored with an SRQ: ibv_create_qp(3); and on XRC send QPs: Linux
	 * drivers/infiniband/core/uverbs_cmd.c, create_qp. */
	if (parts->srq || !parts->recv_cq)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	if (is_target(attr))
		init.cap = (struct ibv_qp_cap){0};
	/* Inline data of the calls goes to the engine as one piece. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !init.cap.max_send_sge)
		init.cap.max_send_sge = 1;
	err = sim_qp_create(context->device->engine, &init, &qp->engine);
	if (err)
		return say(err, "create_qp: type %d with %u+%u WRs, %u+%u SGEs, %u inline",
			   (int)attr->qp_type, attr->cap.max_send_wr, attr->cap.max_recv_wr,
			   attr->cap.max_send_sge, attr->cap.max_recv_sge,
			   attr->cap.max_inline_data);
	attr->cap = init.cap;
	return 0;
}

static int extend(struct qp *qp, const struct parts *parts, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	/* With a thread domain the program keeps to one thread (ibv_wr_post(3)). */
	if (wr_api_fill(qp, attr->send_ops_flags, !(parts->pd && parts->pd->td)))
		return say(ENOMEM, "create_qp_ex: out of memory");
	qp->extended = QP_IS_EXTENDED;
	return 0;
}

static int new_qp(struct context *context, struct ibv_qp_init_attr_ex *attr, struct qp **out)
{
	struct parts parts;
	struct qp *qp;
	uint32_t handle;
	int err = find_parts(&context->verbs.context, attr, &parts);

	if (err)
		return err;
	qp = object_new(context, KIND_QP, &handle);
	if (!qp)
		return say(ENOMEM, "create_qp: out of memory");
	qp->next_handle = qp;
	err = create_engine(context, &parts, attr, qp);
	if (err) {
		object_end(context, KIND_QP, handle, qp);
		return err;
	}
	control_fill_qp(qp, &context->verbs.context, attr->qp_context, attr->qp_type, handle);
	err = extend(qp, &parts, attr);
	if (err) {
		sim_qp_destroy(qp->engine);
		object_end(context, KIND_QP, handle, qp);
		return err;
	}
	qp->ibv.pd = parts.pd ? &parts.pd->ibv : NULL;
	qp->ibv.send_cq = parts.send_cq ? &parts.send_cq->ibv : NULL;
	qp->ibv.recv_cq = parts.recv_cq ? &parts.recv_cq->ibv : NULL;
	qp->ibv.srq = parts.srq ? &parts.srq->ibv : NULL;
	qp->xrcd = parts.xrcd;
	if (parts.pd)
		parts.pd->users++;
	if (parts.xrcd)
		parts.xrcd->users++;
	*out = qp;
	return 0;
}

/* What create_qp_ex can be asked for and this device does not do. */
static int check_extras(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct sim_profile *profile = context->device->engine->profile;
	const uint32_t possible = profile->create_flags;
	const uint32_t flags =
		attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? (uint32_t)attr->create_flags : 0;
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~known)
		return say(EOPNOTSUPP, "create_qp_ex: comp_mask 0x%x", attr->comp_mask);
	if (flags & ~possible)
		return say(EOPNOTSUPP, "create_qp_ex: create_flags 0x%x", flags);
	if (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB && attr->qp_type != IBV_QPT_UD)
		return say(EINVAL, "create_qp_ex: type %d is in no multicast group",
			   (int)attr->qp_type);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && attr->max_tso_header)
		return say(EOPNOTSUPP, "create_qp_ex: no segmentation offload");
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	if (is_target(attr))
		return say(EINVAL, "create_qp_ex: a target QP sends nothing");
	if (!wr_api_supports(context->device->engine, attr->qp_type, attr->send_ops_flags))
		return say(EOPNOTSUPP, "create_qp_ex: send_ops_flags 0x%llx on type %d",
			   (unsigned long long)attr->send_ops_flags, (int)attr->qp_type);
	return 0;
}

struct ibv_qp *control_create_qp_ex(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct qp *qp = NULL;
	int err = check_extras(context, attr);

	if (!err)
		err = new_qp(context, attr, &qp);
	world_unlock(context->world, locked);
	if (err)
		errno = err;
	return err ? NULL : &qp->ibv;
}

struct ibv_qp *control_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = control_create_qp_ex(pd->context, &all);

	if (qp)
		attr->cap = all.cap;
	return qp;
}

struct ibv_qp_ex *control_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	bool extended = qp && qp->extended;

	world_unlock(world, locked);
	return extended ? &qp->ex : NULL;
}

int control_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	int err = EINVAL;

	if (!qp) {
		say(err, "modify_qp: no such QP");
	} else {
		enum ibv_qp_state from = sim_qp_state(qp->engine);

		driver_catch_up(world);
		err = sim_qp_modify(qp->engine, attr, attr_mask);
		if (err)
			say(err, "modify_qp: QP 0x%x in %s to %s with mask 0x%x: refused",
			    ibv->qp_num, sim_qp_state_str(from),
			    attr_mask & IBV_QP_STATE ? sim_qp_state_str(attr->qp_state)
						     : "the same",
			    (unsigned int)attr_mask);
		else if (attr_mask & IBV_QP_STATE)
			ibv->state = attr->qp_state;
		qp->answer.given = false;
		driver_catch_up(world);
	}
	world_unlock(world, locked);
	return err;
}

/* --- query --- */

/* What a QP does of itself: its state, and the end of draining. */
static uint64_t digest_of(const struct qp *qp)
{
	return (uint64_t)sim_qp_state(qp->engine) << 1 | sim_qp_is_draining(qp->engine);
}

static bool answer_differs(const void *arg)
{
	const struct qp *qp = arg;

	return digest_of(qp) != qp->answer.digest;
}

static void fill_init_attr(const struct qp *qp, const struct ibv_qp_attr *attr,
			   struct ibv_qp_init_attr *init_attr)
{
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->ibv.qp_context,
		.send_cq = qp->ibv.send_cq,
		.recv_cq = qp->ibv.recv_cq,
		.srq = qp->ibv.srq,
		.cap = attr->cap,
		.qp_type = qp->ibv.qp_type,
		.sq_sig_all = sim_qp_signals_all(qp->engine),
	};
}

int control_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr)
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);

	if (qp) {
		driver_catch_up(world);
		if (qp->answer.given && !answer_differs(qp))
			driver_step(world, answer_differs, qp);
		qp->answer = (struct answer){.digest = digest_of(qp), .given = true};
		memset(attr, 0, sizeof(*attr));
		sim_qp_query(qp->engine, attr);
		fill_init_attr(qp, attr, init_attr);
		ibv->state = attr->qp_state;
	}
	world_unlock(world, locked);
	return qp ? 0 : say(EINVAL, "query_qp: no such QP");
}

/* --- destroy --- */

void control_end_qp(struct context *context, struct qp *qp)
{
	event_queue_forget(&context->async, qp);
	control_leave_groups(qp);
	if (control_leave_ring(qp))
		sim_qp_destroy(qp->engine);
	if (qp->ibv.pd)
		((struct pd *)qp->ibv.pd)->users--;
	if (qp->xrcd)
		qp->xrcd->users--;
	wr_api_end(qp);
	object_end(context, KIND_QP, qp->ibv.handle, qp);
}

static bool all_acknowledged(const void *arg)
{
	const struct qp *qp = arg;

	return qp->async_events_read == qp->ibv.events_completed;
}

/* ibv_get_async_event(3): destroying waits for the acknowledgement of every event that was read. */
static int wait_for_acks(struct vb_sim *world, const struct qp *qp)
{
	if (!driver_wait_for_others(world, all_acknowledged, qp))
		return 0;
	return say(EDEADLK, "destroy_qp: QP 0x%x: %u events are read and not acknowledged",
		   qp->ibv.qp_num, qp->async_events_read - qp->ibv.events_completed);
}

int control_destroy_qp(struct ibv_qp *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct qp *qp = qp_of(ibv);
	int err;

	if (!qp)
		err = say(EINVAL, "destroy_qp: no such QP");
	else if (qp->groups)
		err = say(EBUSY, "destroy_qp: QP 0x%x is in a multicast group", ibv->qp_num);
	else
		err = wait_for_acks(context->world, qp);
	if (!err)
		control_end_qp(context, qp);
	world_unlock(context->world, locked);
	return err;
}
