/* SPDX-License-Identifier: MIT */
/*
 * target-touched. Under AddressSanitizer and memcheck the targets of receives, RDMA READs and atomics are
 * hidden from the program until the completion. Elsewhere bytes are summed that no message can have changed:
 * the buffers of a QP that is not ready to receive, and the bytes behind a message. Targets that two works
 * share are not watched.
 */
#include "src/check/check.h"
#include "src/check/order.h"
#include "src/check/sum.h"

#include <string.h>

#define BYTES_DEFAULT 65536

static uint32_t bytes = BYTES_DEFAULT;

/* --- hidden targets --- */

static uint64_t shared_count; /* counts the works in flight whose watch is TARGET_SHARED */

/* The adapter has written the first written_bytes of the buffers. */
static void show(struct work *work, uint64_t written_bytes)
{
	for (uint32_t i = 0; i < work->sge_count; i++) {
		const uint32_t length = work->sges[i].sge.length;
		const uint64_t part = written_bytes < length ? written_bytes : length;

		if (work->sges[i].memory)
			poison_show(work->sges[i].memory, length, (size_t)part);
		written_bytes -= part;
	}
	work->watch = TARGET_OPEN;
}

/* The work leaves its queue. */
static void leave(struct work *work, uint64_t written_bytes)
{
	if (work->watch == TARGET_HIDDEN)
		show(work, written_bytes);
	else if (work->watch == TARGET_SHARED)
		shared_count--;
	work->watch = TARGET_OPEN;
}

static bool overlap(const struct work_sge *a, const struct work_sge *b)
{
	return a->memory && b->memory &&
	       (const char *)a->memory < (const char *)b->memory + b->sge.length &&
	       (const char *)b->memory < (const char *)a->memory + a->sge.length;
}

static bool have_common(const struct work *a, const struct work *b)
{
	for (uint32_t i = 0; i < a->sge_count; i++)
		for (uint32_t k = 0; k < b->sge_count; k++)
			if (overlap(&a->sges[i], &b->sges[k]))
				return true;
	return false;
}

static void share(struct work *work)
{
	if (work->watch == TARGET_HIDDEN)
		show(work, 0);
	if (work->watch != TARGET_SHARED)
		shared_count++;
	work->watch = TARGET_SHARED;
}

static void share_with(struct check_qp *qp, struct work *other, void *arg)
{
	struct work *work = arg;

	if (!other->target || other->number == work->number || !have_common(work, other))
		return;
	share(other);
	share(work);
}

static bool may_share(const struct work *work)
{
	bool hidden = shared_count;

	for (uint32_t i = 0; !hidden && i < work->sge_count; i++)
		hidden = work->sges[i].memory &&
			 poison_is_hidden(work->sges[i].memory, work->sges[i].sge.length);
	return hidden;
}

static void hide(struct work *work)
{
	if (may_share(work))
		check_each_work(share_with, work);
	if (work->watch == TARGET_SHARED)
		return;
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->sges[i].memory &&
		    poison_hide(work->sges[i].memory, work->sges[i].sge.length))
			work->watch = TARGET_HIDDEN;
}

/* --- the report beside that of AddressSanitizer --- */

struct search {
	const struct poison_access *access;
	const struct check_qp *qp;
	const struct work *work; /* NULL: not found */
};

static void look_for_access(struct check_qp *qp, struct work *work, void *arg)
{
	struct search *search = arg;
	const struct work_sge access = {
		.memory = search->access->address,
		.sge.length = search->access->size_bytes ? (uint32_t)search->access->size_bytes : 1,
	};

	for (uint32_t i = 0; work->watch == TARGET_HIDDEN && i < work->sge_count; i++)
		if (overlap(&access, &work->sges[i])) {
			search->qp = qp;
			search->work = work;
		}
}

static void touched(const struct poison_access *access)
{
	struct search search = {.access = access};
	struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted"},
		{.label = access->writes ? "written" : "read",
		 .spot = {.frames = {access->caller}, .verb = SPOT_NO_VERB}},
	};
	char object[64] = "an SRQ", name[64];

	if (!check_try_hold())
		return;
	check_each_work(look_for_access, &search);
	if (!search.work)
		order_touched(access);
	else {
		places[0].spot = search.work->posted;
		check_work_name(search.work, name, sizeof(name));
		if (search.qp)
			check_name(search.qp->object.handle, object, sizeof(object));
	}
	check_release();
	if (search.work)
		offence_report(VB_RULE_TARGET_TOUCHED, places,
			       "%s: the program %s a buffer of %s before its completion", object,
			       access->writes ? "writes to" : "reads", name);
}

/* --- sums --- */

static void report(const struct check_call *check, const struct check_qp *qp,
		   const struct work *work, const char *what)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work->posted},
		{.label = "written", .spot = work->posted, .until = &check->spot},
	};
	char object[64], name[64];

	offence_report(VB_RULE_TARGET_TOUCHED, places,
		       "%s: %s of %s have changed before its completion",
		       check_name(qp->object.handle, object, sizeof(object)), what,
		       check_work_name(work, name, sizeof(name)));
}

static void watch_tail(struct work *work)
{
	work->watch = sum_tail(work, &work->target_sum) ? TARGET_TAIL : TARGET_OPEN;
}

/* Messages reach no QP before it is ready to receive. */
static void watch_sums(const struct check_qp *qp, struct work *work)
{
	const void *missing;

	if (work->send)
		return;
	if (!qp || qp->state != IBV_QPS_INIT)
		watch_tail(work);
	else if (sum_work(work, bytes, &work->target_sum, &missing))
		work->watch = TARGET_WHOLE;
}

/* Returns how many bytes of the buffers the completion is of. */
static uint64_t written_bytes(const struct ibv_wc *wc)
{
	return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;
}

static CHECK_RARE void compare_tail(const struct check_call *check, const struct check_qp *qp,
				    const struct work *work, const struct ibv_wc *wc)
{
	uint64_t sum;
	const uint32_t tail_bytes = sum_tail(work, &sum);

	if (tail_bytes && sum != work->target_sum &&
	    written_bytes(wc) + tail_bytes <= work->length_bytes && !buffer_may_be_written(work))
		report(check, qp, work, "bytes behind the message in the buffers");
}

static void compare_whole(const struct check_call *check, const struct check_qp *qp,
			  const struct work *work)
{
	const void *missing;
	uint64_t sum;

	if (sum_work(work, bytes, &sum, &missing) && sum != work->target_sum &&
	    !buffer_may_be_written(work))
		report(check, qp, work, "the buffers");
}

/* --- the rule --- */

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (!work->target)
		return;
	if (poison_active)
		hide(work);
	else
		watch_sums(qp, work);
}

static CHECK_RARE void leave_done(struct work *work, const struct ibv_wc *wc)
{
	if (!wc || wc->status != IBV_WC_SUCCESS)
		leave(work, 0);
	else
		leave(work, work->send ? work->length_bytes : written_bytes(wc));
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (work->watch == TARGET_OPEN)
		return;
	if (work->watch != TARGET_TAIL) {
		leave_done(work, wc);
		return;
	}
	if (wc && wc->status == IBV_WC_SUCCESS && written_bytes(wc) < work->length_bytes)
		compare_tail(check, qp, work, wc);
	work->watch = TARGET_OPEN;
}

static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	leave(work, 0);
}

/* Adapters write to no buffers of a QP that has failed. */
static void show_all(struct check_qp *qp)
{
	for (uint64_t i = 0; i < work_count(&qp->sends); i++)
		if (work_at(&qp->sends, i)->watch == TARGET_HIDDEN)
			show(work_at(&qp->sends, i), 0);
	for (uint64_t i = 0; i < work_count(&qp->receives); i++)
		if (work_at(&qp->receives, i)->watch == TARGET_HIDDEN)
			show(work_at(&qp->receives, i), 0);
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	if (qp && wc->status != IBV_WC_SUCCESS && poison_active)
		show_all(qp);
}

static void after_disconnect(struct check_call *check)
{
	struct check_qp *qp = check_qp_of_id(check);

	if (qp)
		show_all(qp);
}

/* The connection manager modifies QPs out of sight. A query would take time of a virtual clock. */
static bool is_still_in_init(const struct check_qp *qp)
{
	return qp->attr_mask & IBV_QP_STATE && qp->state == IBV_QPS_INIT;
}

static void before_modify_qp(struct check_call *check)
{
	const int mask = (int)check->call->arguments[2];
	struct check_qp *qp = check->qp;

	if (!qp || !(mask & IBV_QP_STATE) || qp->state != IBV_QPS_INIT ||
	    !work_count(&qp->receives) || poison_active || !is_still_in_init(qp))
		return;
	for (uint64_t i = 0; i < work_count(&qp->receives); i++) {
		struct work *work = work_at(&qp->receives, i);

		if (work->watch != TARGET_WHOLE)
			continue;
		compare_whole(check, qp, work);
		watch_tail(work);
	}
}

static void after_modify_qp(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);

	if (check->qp && !check->call->err && check->call->arguments[2] & IBV_QP_STATE &&
	    attr->qp_state == IBV_QPS_ERR)
		show_all(check->qp);
}

static void show_of_mr(struct check_qp *qp, struct work *work, void *arg)
{
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->watch == TARGET_HIDDEN &&
		    work->sges[i].mr_number == *(const uint64_t *)arg)
			show(work, 0);
}

/* track_mr.c keeps the MR in the state of the call. */
static void after_dereg_mr(struct check_call *check)
{
	const struct check_mr *mr = (const struct check_mr *)(uintptr_t)*check->state;
	uint64_t number;

	if (!mr || check->call->err || !poison_active)
		return;
	number = mr->number;
	check_each_work(show_of_mr, &number);
}

static void begin(const struct vb_check_options *options)
{
	bytes = options->buffer_bytes ? options->buffer_bytes : BYTES_DEFAULT;
	poison_watch(touched);
}

static void show_at_end(struct check_qp *qp, struct work *work, void *arg)
{
	leave(work, 0);
}

static void end(void)
{
	check_each_work(show_at_end, NULL);
	poison_watch(NULL);
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, before_modify_qp, after_modify_qp},
	{LAYER_cm_disconnect, NULL, after_disconnect},
	{LAYER_dereg_mr, NULL, after_dereg_mr},
	{LAYER_rereg_mr, NULL, after_dereg_mr},
	{0},
};

const struct check_rule rule_target = {
	.hooks = hooks,
	.posted = posted,
	.done = done,
	.done_targets = true,
	.polled = polled,
	.dropped = dropped,
	.refused = dropped,
	.begin = begin,
	.end = end,
};
