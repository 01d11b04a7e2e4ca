/* SPDX-License-Identifier: MIT */
/* Follows QPs, CQs and SRQs: their creation, their changes, and their end, which drops their works. */
#include "src/check/tell.h"
#include "src/check/track.h"

#include <verbena/cm.h>

/* --- works that get no completion --- */

static void drop(struct check_call *check, struct check_qp *qp, struct work_queue *queue,
		 struct check_cq *cq)
{
	for (uint64_t i = 0; i < work_count(queue); i++) {
		struct work *work = work_at(queue, i);

		if (work->done)
			continue;
		track_leave_cq(cq, work);
		tell_dropped(check, qp, work);
	}
	work_leave(queue, work_count(queue));
}

static void drop_all(struct check_call *check, struct check_qp *qp)
{
	drop(check, qp, &qp->sends, qp->send_cq);
	drop(check, qp, &qp->receives, qp->recv_cq);
}

/* --- objects that functions out of sight have ended --- */

/* QPs that ended without a verb may still name the CQ. */
static void forget_cq(const struct check_cq *cq)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		if (qp->send_cq == cq)
			qp->send_cq = NULL;
		if (qp->recv_cq == cq)
			qp->recv_cq = NULL;
	}
}

static void forget_srq(const struct check_srq *srq)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		if (qp->srq == srq)
			qp->srq = NULL;
	}
}

/* Forgets an old object at the address of a new one. NULL: there is none. */
static void end_stale(struct object *object)
{
	if (!object)
		return;
	if (object->kind == OBJECT_CQ)
		forget_cq((struct check_cq *)object);
	else if (object->kind == OBJECT_SRQ)
		forget_srq((struct check_srq *)object);
	object_hide(object);
	object_free(object);
}

/* --- QPs --- */

static void enter_qp(struct check_call *check, struct ibv_qp *qp, const struct ibv_qp_cap *cap,
		     bool signals_all)
{
	struct check_qp *known;

	end_stale((struct object *)object_find_qp(qp));
	known = object_enter_qp(qp, cap, signals_all);
	if (known)
		known->object.made = check->spot;
	check_watch_forks();
}

static void after_create_qp(struct check_call *check)
{
	const struct ibv_qp_init_attr *attr = check_pointer(check, 1);

	if (!track_failed(check))
		enter_qp(check, (struct ibv_qp *)(uintptr_t)check->call->result, &attr->cap,
			 attr->sq_sig_all);
}

static void after_create_qp_ex(struct check_call *check)
{
	const struct ibv_qp_init_attr_ex *attr = check_pointer(check, 1);

	if (!track_failed(check))
		enter_qp(check, (struct ibv_qp *)(uintptr_t)check->call->result, &attr->cap,
			 attr->sq_sig_all);
}

static void after_cm_create_qp(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	const struct ibv_qp_init_attr *attr = check_pointer(check, 2);

	if (!track_failed(check) && id->qp)
		enter_qp(check, id->qp, &attr->cap, attr->sq_sig_all);
}

static void after_cm_create_qp_ex(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	const struct ibv_qp_init_attr_ex *attr = check_pointer(check, 1);

	if (!track_failed(check) && id->qp)
		enter_qp(check, id->qp, &attr->cap, attr->sq_sig_all);
}

static void before_destroy_qp(struct check_call *check)
{
	track_hide(check, check->qp ? &check->qp->object : NULL);
}

static void before_cm_destroy_qp(struct check_call *check)
{
	struct check_qp *qp = check_qp_of_id(check);

	track_hide(check, qp ? &qp->object : NULL);
}

static void after_destroy_qp(struct check_call *check)
{
	struct check_qp *qp = (struct check_qp *)(uintptr_t)*check->state;

	if (!qp)
		return;
	if (track_failed(check)) {
		object_show(&qp->object);
		return;
	}
	drop_all(check, qp);
	object_free(&qp->object);
}

static void after_modify_qp(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);
	const int mask = (int)check->call->arguments[2];
	struct check_qp *qp = check->qp;

	if (track_failed(check) || !qp)
		return;
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		drop_all(check, qp);
		qp->attr_mask = 0;
		qp->failed = false;
	}
	object_set_attr(qp, attr, mask);
	if (mask & IBV_QP_STATE) {
		qp->state = attr->qp_state;
		qp->modified = check->spot;
	}
}

/* --- CQs and SRQs --- */

static struct check_cq *enter_cq(struct check_call *check, struct ibv_cq *cq)
{
	struct check_cq *known;

	end_stale((struct object *)object_find_cq(cq));
	known = object_cq(cq);
	if (known)
		known->object.made = check->spot;
	check_watch_forks();
	return known;
}

static void after_create_cq(struct check_call *check)
{
	if (!track_failed(check))
		enter_cq(check, (struct ibv_cq *)(uintptr_t)check->call->result);
}

static void after_create_cq_ex(struct check_call *check)
{
	const struct ibv_cq_init_attr_ex *attr = check_pointer(check, 1);
	struct check_cq *cq;

	if (track_failed(check))
		return;
	cq = enter_cq(check, (struct ibv_cq *)(uintptr_t)check->call->result);
	if (cq)
		cq->single_threaded = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
				      attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
}

static void after_resize_cq(struct check_call *check)
{
	const struct ibv_cq *cq = check_pointer(check, 0);

	if (!track_failed(check) && check->cq)
		check->cq->cqe = (uint32_t)cq->cqe;
}

static void before_destroy_cq(struct check_call *check)
{
	track_hide(check, check->cq ? &check->cq->object : NULL);
}

static void after_destroy_cq(struct check_call *check)
{
	struct object *object = (struct object *)(uintptr_t)*check->state;

	if (!object)
		return;
	if (track_failed(check)) {
		object_show(object);
		return;
	}
	forget_cq((struct check_cq *)object);
	object_free(object);
}

static bool is_xrc(const struct check_call *check)
{
	const struct ibv_srq_init_attr_ex *attr = check_pointer(check, 1);

	return check->call->verb == LAYER_create_srq_ex &&
	       attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
}

static void after_create_srq(struct check_call *check)
{
	struct ibv_srq *srq = (struct ibv_srq *)(uintptr_t)check->call->result;
	struct check_srq *known;

	if (track_failed(check))
		return;
	end_stale((struct object *)object_find_srq(srq));
	known = object_srq(srq);
	if (!known)
		return;
	known->object.made = check->spot;
	known->xrc = is_xrc(check);
}

static void before_destroy_srq(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	track_hide(check, srq ? &srq->object : NULL);
}

static void after_destroy_srq(struct check_call *check)
{
	struct check_srq *srq = (struct check_srq *)(uintptr_t)*check->state;

	if (!srq)
		return;
	if (track_failed(check)) {
		object_show(&srq->object);
		return;
	}
	drop(check, NULL, &srq->receives, NULL);
	forget_srq(srq);
	object_free(&srq->object);
}

const struct check_hook track_queue_hooks[] = {
	{LAYER_create_qp, NULL, after_create_qp},
	{LAYER_create_qp_ex, NULL, after_create_qp_ex},
	{LAYER_cm_create_qp, NULL, after_cm_create_qp},
	{LAYER_cm_create_qp_ex, NULL, after_cm_create_qp_ex},
	{LAYER_destroy_qp, before_destroy_qp, after_destroy_qp},
	{LAYER_cm_destroy_qp, before_cm_destroy_qp, after_destroy_qp},
	{LAYER_cm_destroy_ep, before_cm_destroy_qp, after_destroy_qp},
	{LAYER_modify_qp, NULL, after_modify_qp},
	{LAYER_create_cq, NULL, after_create_cq},
	{LAYER_create_cq_ex, NULL, after_create_cq_ex},
	{LAYER_resize_cq, NULL, after_resize_cq},
	{LAYER_destroy_cq, before_destroy_cq, after_destroy_cq},
	{LAYER_create_srq, NULL, after_create_srq},
	{LAYER_create_srq_ex, NULL, after_create_srq},
	{LAYER_destroy_srq, before_destroy_srq, after_destroy_srq},
	{0},
};
