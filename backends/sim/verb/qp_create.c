/* SPDX-License-Identifier: MIT */
/* Creating a QP, and opening a shared one. */
#include "backends/sim/verb/verbs.h"

#include "sim/object/rules.h"

/* The objects that a new QP uses. */
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

/* Fills the public fields of a QP whose engine's QP is made. */
static void fill_qp(struct qp *qp, void *qp_context, enum ibv_qp_type type)
{
	qp->ibv.qp_context = qp_context;
	qp->ibv.qp_num = sim_qp_number(qp->engine);
	qp->ibv.state = sim_qp_state(qp->engine);
	qp->ibv.qp_type = type;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
}

static int find_domain(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		       struct parts *parts)
{
	struct ibv_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	struct ibv_xrcd *xrcd = attr->comp_mask & IBV_QP_INIT_ATTR_XRCD ? attr->xrcd : NULL;

	if (is_target(attr)) {
		parts->xrcd = xrcd_in(context, xrcd);
		return parts->xrcd ? 0 : refuse_missing("create_qp", KIND_XRCD, context, xrcd);
	}
	parts->pd = pd_in(context, pd);
	return parts->pd ? 0 : refuse_missing("create_qp", KIND_PD, context, pd);
}

static int refuse_srq(enum ibv_qp_type type)
{
	return refuse_why("create_qp", (struct vb_why){VB_WHY_QP_TYPE_SRQ, {type}});
}

static int find_srq(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		    struct parts *parts)
{
	/* ibv_create_qp(3), Notes: RC and UD. */
	if (attr->qp_type == IBV_QPT_UC &&
	    sim_device_obeys(context_of(context)->device->engine, SIM_RULE_SRQ_OF_TYPE))
		return refuse_srq(attr->qp_type);
	parts->srq = srq_in(context, attr->srq);
	if (!parts->srq)
		return refuse_missing("create_qp", KIND_SRQ, context, attr->srq);
	return parts->srq->xrcd ? refuse_plainly("create_qp", VB_WHY_QP_SRQ_IS_XRC) : 0;
}

/* A target QP has no CQs; an XRC send QP has one, and no receive queue. */
static int find_parts(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		      struct parts *parts)
{
	int err;

	*parts = (struct parts){0};
	err = find_domain(context, attr, parts);
	if (err || is_target(attr))
		return err;
	parts->send_cq = cq_in(context, attr->send_cq);
	if (!parts->send_cq)
		return refuse_missing("create_qp", KIND_CQ, context, attr->send_cq);
	if (attr->qp_type == IBV_QPT_XRC_SEND)
		return attr->srq ? refuse_srq(attr->qp_type) : 0;
	parts->recv_cq = cq_in(context, attr->recv_cq);
	if (!parts->recv_cq)
		return refuse_missing("create_qp", KIND_CQ, context, attr->recv_cq);
	return attr->srq ? find_srq(context, attr, parts) : 0;
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
	/* ibv_wr_set_inline_data() gives its data to the engine as one SGE. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS && !init.cap.max_send_sge)
		init.cap.max_send_sge = 1;
	err = sim_qp_create(context->device->engine, &init, &qp->engine);
	if (err)
		return say_refused(context->world, "create_qp", err);
	attr->cap = init.cap;
	return 0;
}

static int extend(struct qp *qp, const struct parts *parts, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	/* With a thread domain, the program uses the QP in one thread (ibv_wr_post(3)). */
	if (verb_wr_fill(qp, attr->send_ops_flags, !(parts->pd && parts->pd->td)))
		return refuse_plainly("create_qp_ex", VB_WHY_NO_MEMORY);
	qp->extended = QP_IS_EXTENDED;
	return 0;
}

/* Enters the new QP into the objects that it uses. */
static void join(struct qp *qp, const struct parts *parts)
{
	qp->ibv.pd = parts->pd ? &parts->pd->ibv : NULL;
	qp->ibv.send_cq = parts->send_cq ? &parts->send_cq->ibv : NULL;
	qp->ibv.recv_cq = parts->recv_cq ? &parts->recv_cq->ibv : NULL;
	qp->ibv.srq = parts->srq ? &parts->srq->ibv : NULL;
	qp->pd = parts->pd;
	qp->xrcd = parts->xrcd;
	if (parts->pd)
		parts->pd->users++;
	if (parts->xrcd)
		parts->xrcd->users++;
}

/* Returns NULL with errno and a sentence. */
static struct qp *new_qp(struct context *context, const struct parts *parts,
			 struct ibv_qp_init_attr_ex *attr)
{
	struct qp *qp = object_new(context, KIND_QP, "create_qp");
	int err;

	if (!qp)
		return NULL;
	qp->next_handle = qp;
	err = create_engine(context, parts, attr, qp);
	if (!err) {
		fill_qp(qp, attr->qp_context, attr->qp_type);
		err = extend(qp, parts, attr);
		if (err)
			sim_qp_destroy(qp->engine);
	}
	if (err) {
		object_end(KIND_QP, qp);
		return null_errno(err);
	}
	join(qp, parts);
	return qp;
}

static int refuse_extra(enum vb_reason reason, uint64_t value, uint64_t second)
{
	return refuse_why("create_qp_ex", (struct vb_why){reason, {value, second}});
}

/* Refuses the extensions of create_qp_ex that the device does not have. */
static int check_extras(const struct context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct sim_profile *profile = context->device->engine->profile;
	const uint32_t possible = profile->create_flags;
	const uint32_t flags =
		attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? (uint32_t)attr->create_flags : 0;
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t lacking;

	if (attr->comp_mask & ~known)
		return refuse_extra(VB_WHY_QP_COMP_MASK, attr->comp_mask & ~known, 0);
	if (flags & ~possible)
		return refuse_extra(VB_WHY_QP_CREATE_FLAGS, flags & ~possible, 0);
	if (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB && attr->qp_type != IBV_QPT_UD)
		return refuse_extra(VB_WHY_QP_LOOPBACK_TYPE, attr->qp_type, 0);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER && attr->max_tso_header)
		return refuse_extra(VB_WHY_QP_TSO, attr->max_tso_header, 0);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return 0;
	if (is_target(attr))
		return refuse_plainly("create_qp_ex", VB_WHY_QP_TARGET_OPS);
	lacking = verb_wr_lacks(context->device->engine, attr->qp_type, attr->send_ops_flags);
	return lacking ? refuse_extra(VB_WHY_QP_SEND_OPS, attr->qp_type, lacking) : 0;
}

struct ibv_qp *verb_create_qp_ex(struct ibv_context *ibv, struct ibv_qp_init_attr_ex *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct parts parts;
	struct qp *qp;
	int err = check_extras(context, attr);

	if (!err)
		err = find_parts(ibv, attr, &parts);
	if (err)
		return null_errno(err);
	qp = new_qp(context, &parts, attr);
	return qp ? &qp->ibv : NULL;
}

struct ibv_qp_init_attr_ex verb_extend_qp_attr(struct ibv_pd *pd,
					       const struct ibv_qp_init_attr *attr)
{
	return (struct ibv_qp_init_attr_ex){
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
}

struct ibv_qp *verb_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = verb_extend_qp_attr(pd, attr);
	struct ibv_qp *qp = verb_create_qp_ex(pd->context, &all);

	if (qp)
		attr->cap = all.cap;
	return qp;
}

struct ibv_qp_ex *verb_qp_to_qp_ex(struct ibv_qp *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);

	return qp && qp->extended ? &qp->ex : NULL;
}

/* --- ibv_open_qp(3) --- */

struct qp *verb_find_target(const struct device *device, const struct domain *domain,
			    uint32_t number)
{
	struct sim_qp *engine = sim_table_find(&device->engine->qps, number);
	struct qp *qp = engine ? sim_qp_user(engine) : NULL;

	return qp && sim_qp_xrcd(engine) == domain->engine ? qp : NULL;
}

/* Returns a new handle of the target QP. */
static struct qp *new_handle(struct context *context, struct qp *target, struct xrcd *xrcd,
			     void *qp_context)
{
	struct qp *qp = object_new(context, KIND_QP, "open_qp");

	if (!qp)
		return NULL;
	qp->engine = target->engine;
	fill_qp(qp, qp_context, IBV_QPT_XRC_RECV);
	qp->xrcd = xrcd;
	xrcd->users++;
	qp->next_handle = target->next_handle;
	target->next_handle = qp;
	return qp;
}

/* Returns a new handle of the target QP that another process has. */
static struct qp *new_far_handle(struct context *context, struct xrcd *xrcd, uint32_t number,
				 void *qp_context)
{
	struct qp *qp = object_new(context, KIND_QP, "open_qp");
	enum ibv_qp_state state;
	int err;

	if (!qp)
		return NULL;
	qp->next_handle = qp;
	qp->xrcd = xrcd;
	xrcd->users++;
	err = verb_open_far_target(context, qp, number, &state);
	if (err) {
		xrcd->users--;
		object_end(KIND_QP, qp);
		return null_errno(err);
	}
	fill_qp(qp, qp_context, IBV_QPT_XRC_RECV);
	qp->ibv.state = state;
	return qp;
}

static int check_open_mask(const struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	const uint32_t missing = needed & ~attr->comp_mask;
	const uint32_t unknown = attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT);

	if (missing)
		return refuse_why("open_qp", (struct vb_why){VB_WHY_QP_OPEN_MISSING, {missing}});
	if (unknown)
		return refuse_comp_mask("open_qp", unknown);
	return 0;
}

struct ibv_qp *verb_open_qp(struct ibv_context *ibv, struct ibv_qp_open_attr *attr)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct xrcd *xrcd;
	struct qp *target, *qp;
	void *qp_context;
	int err = check_open_mask(attr);

	if (err)
		return null_errno(err);
	xrcd = xrcd_in(ibv, attr->xrcd);
	if (!xrcd)
		return null_errno(refuse_missing("open_qp", KIND_XRCD, ibv, attr->xrcd));
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		return null_errno(refuse_why(
			"open_qp", (struct vb_why){VB_WHY_QP_OPEN_TYPE, {attr->qp_type}}));
	qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	target = verb_find_target(context->device, xrcd->domain, attr->qp_num);
	qp = target ? new_handle(context, target, xrcd, qp_context)
		    : new_far_handle(context, xrcd, attr->qp_num, qp_context);
	return qp ? &qp->ibv : NULL;
}
