/* SPDX-License-Identifier: MIT */
/*
 * work-never-completed. A thread that has polled a failed completion of a connected QP, or has moved a
 * QP to ERR, knows that the QP has stopped. Work that this thread posts then is flushed at once. A
 * finding is such work whose completion is not polled until the QP is reset or destroyed, or the
 * process ends: the program waits for it for ever, or leaks what belongs to it.
 *
 * Work that was posted earlier is left alone: programs may destroy a QP with receives in flight, and exit
 * with sends in flight. So are posts by other threads, which need not know of the failure, and unsignalled
 * sends.
 */
#include "src/check/check.h"

#include <inttypes.h>
#include <stdio.h>

static unsigned int unseen; /* counts the QPs in QP_FAILED_UNSEEN; may be too high */

static void know(const struct check_call *check, struct check_qp *qp, bool seen)
{
	if (qp->failure != QP_WORKS)
		return;
	qp->failure = seen ? QP_FAILED : QP_FAILED_UNSEEN;
	unseen += !seen;
	qp->failure_thread = pthread_self();
	qp->failed_at = check->spot;
}

/* Other types go on to receive after a failed send. */
static bool is_connected(const struct check_qp *qp)
{
	return qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_SEND;
}

/* A program that polls several completions may post between the first one and the failed one. */
static bool is_first(const struct check_call *check, const struct ibv_wc *wc)
{
	return check->call->verb != LAYER_poll_cq || wc == check_pointer(check, 2);
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS && qp && is_connected(qp))
		know(check, qp, is_first(check, wc));
}

/* The thread polls again, and has seen all completions of its last poll. */
static void before_poll(struct check_call *check)
{
	if (!unseen)
		return;
	unseen = 0;
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		if (qp->failure != QP_FAILED_UNSEEN)
			continue;
		if (pthread_equal(qp->failure_thread, pthread_self()))
			qp->failure = QP_FAILED;
		else
			unseen++;
	}
}

static void after_modify(struct check_call *check)
{
	struct check_qp *qp = check->qp;

	if (check->call->err || !qp || !((int)check->call->arguments[2] & IBV_QP_STATE))
		return;
	if (qp->state == IBV_QPS_ERR)
		know(check, qp, true);
	else
		qp->failure = QP_WORKS;
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (qp && qp->failure == QP_FAILED && work->signalled)
		work->after_failure = pthread_equal(qp->failure_thread, pthread_self());
}

/* ended: where the QP was reset or destroyed; NULL: the process ends. */
static void report(const struct check_qp *qp, const struct work *work, const struct spot *ended)
{
	struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "failed", .spot = qp->failed_at},
		{.label = "posted", .spot = work->posted},
	};
	char object[64], name[64];

	/* At the end, the names of the objects are gone. */
	snprintf(object, sizeof(object), "QP 0x%" PRIx32, qp->qpn);
	if (ended) {
		places[2] = (struct offence_place){.label = "dropped", .spot = *ended};
		check_name(qp->object.handle, object, sizeof(object));
	}
	offence_report(VB_RULE_WORK_LOST, places,
		       "%s: %s was posted after the QP had failed, and its completion was never "
		       "polled",
		       object, check_work_name(work, name, sizeof(name)));
}

static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (work->after_failure)
		report(qp, work, &check->spot);
}

static void look_at_end(struct check_qp *qp, struct work *work, void *arg)
{
	if (work->after_failure)
		report(qp, work, NULL);
}

static void end(void)
{
	check_each_work(look_at_end, NULL);
	unseen = 0;
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{LAYER_poll_cq, before_poll, NULL},
	{LAYER_start_poll, before_poll, NULL},
	{0},
};

const struct check_rule rule_lost = {
	.hooks = hooks,
	.posted = posted,
	.posted_rarely = true,
	.polled = polled,
	.dropped = dropped,
	.end = end,
};
