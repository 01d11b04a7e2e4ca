/* SPDX-License-Identifier: MIT */
/*
 * queue-full-unsignalled and cq-too-small.
 *
 * A slot of a send queue becomes free when the completion of its send, or of a later send, is polled. So a
 * queue is full for ever when all of its sends are unsignalled. A QP in ERR is left alone: there
 * unsignalled sends complete as well.
 *
 * A CQ may get a completion for each signalled send and each receive that is in flight. The receives
 * of an SRQ count if all QPs of the SRQ have the same CQ. Unsignalled sends do not count.
 */
#include "src/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <verbena/cm.h>

static bool is_known(const struct object *object)
{
	return object->made.frames[0];
}

/* --- queue-full-unsignalled --- */

/* Counts the unsignalled sends behind the last signalled one. */
static uint64_t count_unsignalled(const struct work_queue *sends)
{
	uint64_t count = 0;

	while (count < work_count(sends) &&
	       !work_at(sends, work_count(sends) - 1 - count)->signalled)
		count++;
	return count;
}

static void report_full(const struct check_call *check, const struct check_qp *qp)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work_at(&qp->sends, 0)->posted},
		{.label = check->call->err ? "refused" : "exceeded", .spot = check->spot},
	};
	char name[64];

	offence_report(VB_RULE_UNSIGNALLED, places,
		       "%s: the send queue has %" PRIu32 " slots, and none of the %" PRIu64
		       " sends in flight is signalled, so that no completion can free a slot",
		       check_name(qp->object.handle, name, sizeof(name)), qp->cap.max_send_wr,
		       work_count(&qp->sends));
}

/* Returns true if the queue was full before the call, or would be on an adapter. */
static bool is_full(const struct check_call *check, const struct check_qp *qp)
{
	const uint64_t count = work_count(&qp->sends);

	return check->call->err ? count >= qp->cap.max_send_wr : count > qp->cap.max_send_wr;
}

/* Runs if the call was refused with ENOMEM, or the queue may hold more than its slots. */
static void look_at_queue(const struct check_call *check, struct check_qp *qp)
{
	const uint64_t count = count_unsignalled(&qp->sends);

	qp->unsignalled = (uint32_t)count;
	if (qp->full_reported || qp->failed || qp->state == IBV_QPS_ERR ||
	    count < work_count(&qp->sends) || !is_full(check, qp) || !is_known(&qp->object))
		return;
	qp->full_reported = true;
	report_full(check, qp);
}

/* --- cq-too-small --- */

static uint64_t count_live(const struct work_queue *queue, bool signalled_only)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < work_count(queue); i++)
		count += !work_at(queue, i)->done &&
			 (!signalled_only || work_at(queue, i)->signalled);
	return count;
}

/* Returns true if a QP of the SRQ exists. */
static bool is_used(const struct check_srq *srq)
{
	for (struct object *object = object_first(OBJECT_QP); object; object = object->next_of_kind)
		if (((const struct check_qp *)object)->srq == srq)
			return true;
	return false;
}

/* Recounts cq->in_flight and cq->shared, without the SRQs that no QP uses. */
static uint64_t count_into(const struct check_cq *cq)
{
	uint64_t count = 0;

	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;

		if (qp->send_cq == cq)
			count += count_live(&qp->sends, true);
		if (qp->recv_cq == cq && !qp->srq)
			count += count_live(&qp->receives, false);
	}
	for (struct object *object = object_first(OBJECT_SRQ); object;
	     object = object->next_of_kind) {
		const struct check_srq *srq = (const struct check_srq *)object;

		if (srq->cq == cq && is_used(srq))
			count += count_live(&srq->receives, false);
	}
	return count;
}

static void report_small(const struct check_call *check, const struct check_cq *cq, uint64_t count)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "created", .spot = cq->object.made},
		{.label = "exceeded", .spot = check->spot},
	};
	char name[64];

	offence_report(VB_RULE_CQ_SMALL, places,
		       "%s has %" PRIu32 " entr%s, and %" PRIu64
		       " work requests that complete into it are in flight",
		       check_name(cq->object.handle, name, sizeof(name)), cq->cqe,
		       cq->cqe == 1 ? "y" : "ies", count);
}

static bool is_exceeded(const struct check_cq *cq)
{
	return cq && cq->in_flight + cq->shared > cq->cqe && cq->cqe && !cq->overrun_reported &&
	       !cq->ignores_overrun && is_known(&cq->object);
}

/* A CQ whose counters are wrong is not looked at any more. */
static void look_at_cq(const struct check_call *check, struct check_cq *cq)
{
	uint64_t count;

	if (!is_exceeded(cq))
		return;
	cq->overrun_reported = true;
	count = count_into(cq);
	if (count > cq->cqe)
		report_small(check, cq, count);
}

/* --- posts and completions --- */

static void posted_send(struct check_call *check, struct check_qp *qp, const struct work *work)
{
	qp->unsignalled = work->signalled ? 0 : qp->unsignalled + 1;
	if (qp->knows_caps && qp->unsignalled > qp->cap.max_send_wr)
		check->wants_after = true;
}

static CHECK_RARE struct check_cq *count_shared(const struct check_srq *srq)
{
	if (srq && srq->cq)
		srq->cq->shared++;
	return srq ? srq->cq : NULL;
}

/* after() of the verb looks closer at queues that may be too small: then it is known if it was refused. */
static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	const struct check_cq *cq;

	if (work->send)
		posted_send(check, qp, work);
	if (qp)
		cq = work->send ? qp->send_cq : qp->recv_cq;
	else
		cq = count_shared(object_find_srq(check_pointer(check, 0)));
	if (is_exceeded(cq))
		check->wants_after = true;
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (!work->send && qp->srq && qp->srq->cq && qp->srq->cq->shared)
		qp->srq->cq->shared--;
}

static void after_send(struct check_call *check)
{
	struct check_qp *qp = check->qp;

	if (!qp)
		return;
	look_at_cq(check, qp->send_cq);
	if (qp->knows_caps && (check->call->err == ENOMEM ||
			       (!check->call->err && qp->unsignalled > qp->cap.max_send_wr)))
		look_at_queue(check, qp);
}

static void after_receive(struct check_call *check)
{
	if (check->qp)
		look_at_cq(check, check->qp->recv_cq);
}

/* --- SRQs and their CQs --- */

/* Sets the CQ of an SRQ, or NULL, and counts its receives there. */
static void set_cq(struct check_srq *srq, struct check_cq *cq)
{
	const uint64_t count = count_live(&srq->receives, false);

	if (srq->cq)
		srq->cq->shared -= count < srq->cq->shared ? count : srq->cq->shared;
	srq->cq = cq;
	if (cq)
		cq->shared += count;
}

/* Returns how many WRs of the call were counted in posted() and then refused. */
static uint64_t count_refused(const struct check_call *check)
{
	struct ibv_recv_wr *const *bad = check_pointer(check, 2);
	uint64_t count = *check->state;

	for (const struct ibv_recv_wr *wr = check_pointer(check, 1);
	     bad && wr && wr != *bad && count; wr = wr->next)
		count--;
	return count;
}

static void after_srq_receive(struct check_call *check)
{
	const struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (!srq || !srq->cq)
		return;
	if (check->call->err) {
		const uint64_t count = count_refused(check);

		srq->cq->shared -= count < srq->cq->shared ? count : srq->cq->shared;
	}
	look_at_cq(check, srq->cq);
}

static void join(const struct ibv_qp *handle)
{
	const struct check_qp *qp = object_find_qp(handle);
	struct check_srq *srq = qp ? qp->srq : NULL;

	if (!srq || srq->cq == qp->recv_cq || srq->several_cqs)
		return;
	srq->several_cqs = srq->cq;
	set_cq(srq, srq->several_cqs ? NULL : qp->recv_cq);
}

static void after_create_qp(struct check_call *check)
{
	if (!check->call->err)
		join((const struct ibv_qp *)(uintptr_t)check->call->result);
}

static void after_cm_create_qp(struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);

	if (!check->call->err)
		join(id->qp);
}

/* An SRQ of XRC has a CQ of its own, which the sanitizer does not follow. */
static void after_create_srq(struct check_call *check)
{
	const struct ibv_srq_init_attr_ex *attr = check_pointer(check, 1);
	struct check_srq *srq;

	if (check->call->err || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) ||
	    attr->srq_type == IBV_SRQT_BASIC)
		return;
	srq = object_find_srq((struct ibv_srq *)(uintptr_t)check->call->result);
	if (srq)
		srq->several_cqs = true;
}

static void before_destroy_srq(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (srq)
		set_cq(srq, NULL);
}

static void after_create_cq(struct check_call *check)
{
	const struct ibv_cq_init_attr_ex *attr = check_pointer(check, 1);
	struct check_cq *cq;

	if (check->call->err)
		return;
	cq = object_find_cq((const struct ibv_cq *)(uintptr_t)check->call->result);
	if (cq)
		cq->ignores_overrun = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
				      attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
}

static void before_destroy_cq(struct check_call *check)
{
	for (struct object *object = object_first(OBJECT_SRQ); object;
	     object = object->next_of_kind) {
		struct check_srq *srq = (struct check_srq *)object;

		if (check->cq && srq->cq == check->cq)
			set_cq(srq, NULL);
	}
}

static const struct check_hook hooks[] = {
	{LAYER_post_send, NULL, after_send, .after_failure_only = true},
	{LAYER_wr_complete, NULL, after_send, .after_failure_only = true},
	{LAYER_post_recv, NULL, after_receive, .after_failure_only = true},
	{LAYER_post_srq_recv, NULL, after_srq_receive, .after_failure_only = true},
	{LAYER_create_qp, NULL, after_create_qp},
	{LAYER_create_qp_ex, NULL, after_create_qp},
	{LAYER_cm_create_qp, NULL, after_cm_create_qp},
	{LAYER_cm_create_qp_ex, NULL, after_cm_create_qp},
	{LAYER_create_srq_ex, NULL, after_create_srq},
	{LAYER_destroy_srq, before_destroy_srq, NULL},
	{LAYER_create_cq_ex, NULL, after_create_cq},
	{LAYER_destroy_cq, before_destroy_cq, NULL},
	{0},
};

const struct check_rule rule_queue = {
	.hooks = hooks, .posted = posted, .done = done, .done_rarely = true};
