/* SPDX-License-Identifier: MIT */
/*
 * poll-order. ibv_start_poll() that returns 0 opens a poll, which ibv_end_poll() closes; a start that
 * fails, also with ENOENT, opens none: ibv_create_cq_ex(3). A provider locks the CQ in between, so that
 * another thread's start waits for the end. CQs that were made out of sight are not watched.
 */
#include "src/check/check.h"

static bool is_watched(const struct check_cq *cq)
{
	return cq && cq->object.made.frames[0];
}

static bool is_open_here(const struct check_cq *cq)
{
	return cq->polling == CQ_POLLING && pthread_equal(cq->poll_thread, pthread_self());
}

static void report(const struct check_call *check, const struct check_cq *cq, const char *label,
		   const char *sentence)
{
	const struct offence_place called = {.label = label, .spot = check->spot};
	const struct offence_place started = {.label = "started", .spot = cq->poll_started};
	const bool was_started = cq->poll_started.frames[0] && !cq->poll_ended;
	char name[64];

	offence_report(VB_RULE_POLL_ORDER,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       was_started ? started : called,
			       was_started ? called : (struct offence_place){0},
		       },
		       "%s: %s", check_name(cq->object.handle, name, sizeof(name)), sentence);
}

static void before_start(struct check_call *check)
{
	if (is_watched(check->cq) && is_open_here(check->cq))
		report(check, check->cq, "started again",
		       "the program calls ibv_start_poll() twice without ibv_end_poll()");
}

/* A failed start changes nothing: another thread may have opened a poll before this function runs. */
static void after_start(struct check_call *check)
{
	struct check_cq *cq = check->cq;

	if (!is_watched(cq) || (check->call->result && cq->polling == CQ_POLLING))
		return;
	cq->polling = check->call->result ? CQ_IDLE : CQ_POLLING;
	cq->poll_started = check->spot;
	cq->poll_thread = pthread_self();
	cq->poll_ended = false;
}

/* Returns true if the calling thread has called ibv_start_poll() last, and it has failed. */
static bool has_failed_here(const struct check_cq *cq)
{
	return cq->poll_started.frames[0] && !cq->poll_ended &&
	       pthread_equal(cq->poll_thread, pthread_self());
}

static void before_next(struct check_call *check)
{
	const struct check_cq *cq = check->cq;

	if (is_watched(cq) && cq->polling == CQ_IDLE)
		report(check, cq, "continued",
		       has_failed_here(cq)
			       ? "the program calls ibv_next_poll() after ibv_start_poll() has "
				 "failed"
			       : "the program calls ibv_next_poll() without ibv_start_poll()");
}

static void before_end(struct check_call *check)
{
	struct check_cq *cq = check->cq;

	if (!is_watched(cq))
		return;
	if (cq->polling == CQ_IDLE)
		report(check, cq, "ended",
		       has_failed_here(cq)
			       ? "the program calls ibv_end_poll() after ibv_start_poll() has "
				 "failed"
			       : "the program calls ibv_end_poll() without ibv_start_poll()");
	cq->polling = CQ_IDLE;
	cq->poll_ended = true;
}

static void before_destroy(struct check_call *check)
{
	if (is_watched(check->cq) && check->cq->polling == CQ_POLLING)
		report(check, check->cq, "destroyed",
		       "the program destroys the CQ before ibv_end_poll()");
}

static const struct check_hook hooks[] = {
	{LAYER_start_poll, before_start, after_start},
	{LAYER_next_poll, before_next, NULL},
	{LAYER_end_poll, before_end, NULL},
	{LAYER_destroy_cq, before_destroy, NULL},
	{0},
};

const struct check_rule rule_poll = {.hooks = hooks};
