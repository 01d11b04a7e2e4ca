/* SPDX-License-Identifier: MIT */
/*
 * armed-without-poll and event-acknowledgement.
 *
 * A completion that is in a CQ before ibv_req_notify_cq() raises no event: ibv_get_cq_event(3). The program
 * waits in vain if it waits before it has polled the CQ until it was empty. A completion may be there if a
 * signalled send was in flight when the CQ was armed. A receive counts only if the QP has had messages
 * before, and if no send was posted since the arming: else the message may be an answer to that send.
 */
#include "src/base/async_event.h"
#include "src/check/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <verbena/cm.h>

static uint64_t last_number;	  /* of the last post */
static uint64_t last_send_number; /* of the last post of a send */
static uint64_t last_tick;	  /* orders arming, and what happens to QPs */

/* --- what QPs do --- */

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	last_number = work->number;
	if (work->send)
		last_send_number = work->number;
	else if (qp && !qp->received_tick)
		qp->awaits_message = true;
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (!wc)
		return;
	if (wc->status != IBV_WC_SUCCESS && !qp->broken_tick)
		qp->broken_tick = ++last_tick;
	if (wc->status == IBV_WC_SUCCESS && !work->send && !qp->received_tick) {
		qp->received_tick = ++last_tick;
		qp->awaits_message = false;
	}
}

static void after_modify(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);

	if (check->call->err || !check->qp || !((int)check->call->arguments[2] & IBV_QP_STATE))
		return;
	if (attr->qp_state == IBV_QPS_RESET)
		check->qp->received_tick = check->qp->broken_tick = 0;
	if (attr->qp_state == IBV_QPS_ERR && !check->qp->broken_tick)
		check->qp->broken_tick = ++last_tick;
}

/* --- arming and polling --- */

static void after_arm(struct check_call *check)
{
	const bool solicited_only = check->call->arguments[1];
	struct check_cq *cq = check->cq;

	if (check->call->err || !cq)
		return;
	/* A completion since the first arming raises an event. */
	if (cq->armed.sure && (!cq->armed.solicited_only || solicited_only))
		return;
	cq->armed.tick = ++last_tick;
	cq->armed.number = last_number;
	cq->armed.spot = check->spot;
	cq->armed.thread = pthread_self();
	cq->armed.solicited_only = solicited_only;
	cq->armed.sure = false;
}

static void note_poll(struct check_cq *cq, bool empty)
{
	const pthread_t self = pthread_self();

	if (!cq->polled) {
		cq->polled = true;
		cq->polled_by = self;
	} else if (!pthread_equal(cq->polled_by, self)) {
		cq->polled_by_several = true;
	}
	cq->event_unpolled = false;
	if (empty && cq->armed.tick) {
		cq->armed.tick = 0;
		cq->armed.sure = true;
	}
}

static void after_poll(struct check_call *check)
{
	const int64_t count = (int64_t)check->call->result;

	if (check->cq && count >= 0)
		note_poll(check->cq, count < (int)check->call->arguments[1]);
}

static void after_step(struct check_call *check)
{
	if (check->cq && !check->call->err)
		note_poll(check->cq, check->call->result == ENOENT);
}

/* --- waiting --- */

/* A work whose completion may have been in the CQ when it was armed. */
struct risk {
	const struct check_qp *qp;
	const struct work *work;
};

static const struct work *oldest(const struct work_queue *queue, bool any, uint64_t number)
{
	for (uint64_t i = 0; i < work_count(queue); i++) {
		const struct work *work = work_at(queue, i);

		if (work->number > number)
			return NULL;
		if (!work->done && (work->signalled || any))
			return work;
	}
	return NULL;
}

static bool was_before(uint64_t tick, const struct check_cq *cq)
{
	return tick && tick < cq->armed.tick;
}

static bool find_send(const struct check_cq *cq, const struct check_qp *qp, struct risk *risk)
{
	const bool broken = was_before(qp->broken_tick, cq);

	if (qp->send_cq != cq || (cq->armed.solicited_only && !broken))
		return false;
	*risk = (struct risk){qp, oldest(&qp->sends, broken, cq->armed.number)};
	return risk->work;
}

static bool find_receive(const struct check_cq *cq, const struct check_qp *qp, struct risk *risk)
{
	const bool awaits_answer = last_send_number > cq->armed.number;
	const bool broken = !qp->srq && was_before(qp->broken_tick, cq);

	if (qp->recv_cq != cq || (!broken && (awaits_answer || !was_before(qp->received_tick, cq))))
		return false;
	*risk = (struct risk){
		qp, oldest(qp->srq ? &qp->srq->receives : &qp->receives, false, cq->armed.number)};
	return risk->work;
}

/* Returns true if another CQ of the channel will raise an event for its next completion. */
static bool other_is_sure(const struct check_cq *cq)
{
	for (struct object *object = object_first(OBJECT_CQ); object;
	     object = object->next_of_kind) {
		const struct check_cq *other = (const struct check_cq *)object;

		if (other != cq && other->channel == cq->channel &&
		    (other->armed.sure || other->armed.tick))
			return true;
	}
	return false;
}

static bool find_risk(const struct check_cq *cq, struct risk *risk)
{
	const bool others = other_is_sure(cq);

	/* The program collects the events of several CQs before it polls them. */
	if (others && cq->event_unpolled)
		return false;
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;

		/* The program may wait for the event of another CQ, and poll both then. */
		if ((!others && find_send(cq, qp, risk)) || find_receive(cq, qp, risk))
			return true;
	}
	return false;
}

/* Another thread may poll the CQ, or arms it for this one. */
static bool is_used_by_one_thread(const struct check_cq *cq)
{
	const pthread_t self = pthread_self();

	return pthread_equal(cq->armed.thread, self) && !cq->polled_by_several &&
	       (!cq->polled || pthread_equal(cq->polled_by, self));
}

static void check_wait(const struct check_call *check, struct check_cq *cq)
{
	char object[64], qp[64], name[64];
	struct risk risk;

	if (!cq->armed.tick || !is_used_by_one_thread(cq) || !find_risk(cq, &risk))
		return;
	offence_report(
		VB_RULE_ARMED_UNPOLLED,
		(const struct offence_place[OFFENCE_PLACES_MAX]){
			{.label = "posted", .spot = risk.work->posted},
			{.label = "armed", .spot = cq->armed.spot},
			{.label = "waited", .spot = check->spot},
		},
		"%s: the program armed the CQ while %s of %s was in flight, and waits for an "
		"event before it has polled the CQ until it was empty",
		check_name(cq->object.handle, object, sizeof(object)),
		check_work_name(risk.work, name, sizeof(name)),
		check_name(risk.qp->object.handle, qp, sizeof(qp)));
	cq->armed.tick = 0;
}

/* Returns true if ibv_get_cq_event() will not return at once. */
static bool waits(const struct ibv_comp_channel *channel)
{
	struct pollfd descriptor = {.fd = channel->fd, .events = POLLIN};
	const int flags = fcntl(channel->fd, F_GETFL);
	struct timespec now = {0};

	/* poll(2) itself could be a wait that moves time: src/wait/wait.h. */
	return flags >= 0 && !(flags & O_NONBLOCK) &&
	       !syscall(SYS_ppoll, &descriptor, 1, &now, NULL, 0);
}

static void before_get(struct check_call *check)
{
	const struct ibv_comp_channel *channel = check_pointer(check, 0);
	const int err = errno;
	struct layer_object found;

	if (!layer_object_find(channel, &found) || !waits(channel))
		return;
	for (struct object *object = object_first(OBJECT_CQ); object;
	     object = object->next_of_kind) {
		struct check_cq *cq = (struct check_cq *)object;

		if (cq->channel == channel)
			check_wait(check, cq);
	}
	errno = err;
}

/* --- getting and acknowledging --- */

static void note_thread(struct event_count *count)
{
	const pthread_t self = pthread_self();

	if (!count->got && !count->acked)
		count->thread = self;
	else if (!pthread_equal(count->thread, self))
		count->several_threads = true;
}

static void note_got(const struct check_call *check, struct event_count *count)
{
	note_thread(count);
	count->got++;
	count->last_got = check->spot;
}

static bool is_known(const struct object *object)
{
	return object->made.frames[0];
}

static void after_get(struct check_call *check)
{
	struct ibv_cq *const *found = check_pointer(check, 1);
	struct check_cq *cq = check->call->err ? NULL : object_find_cq(*found);

	if (!cq)
		return;
	note_got(check, &cq->events);
	cq->armed.tick = 0;
	cq->armed.sure = false;
	cq->event_unpolled = true;
}

/* Returns a CQ of the same channel with events that are not acknowledged; NULL: none. */
static const struct check_cq *find_unacknowledged(const struct check_cq *cq)
{
	for (struct object *object = object_first(OBJECT_CQ); object;
	     object = object->next_of_kind) {
		const struct check_cq *other = (const struct check_cq *)object;

		if (other != cq && other->channel == cq->channel &&
		    other->events.got > other->events.acked)
			return other;
	}
	return NULL;
}

static void report_surplus(const struct check_call *check, const struct object *object,
			   const struct event_count *count, uint64_t surplus,
			   const struct check_cq *right)
{
	char name[64], other[64];

	offence_report(
		VB_RULE_NOT_ACKNOWLEDGED,
		(const struct offence_place[OFFENCE_PLACES_MAX]){
			{.label = "acknowledged", .spot = check->spot},
			{.label = count->got ? "got"
				  : right    ? "got from the other CQ"
					     : NULL,
			 .spot = count->got || !right ? count->last_got : right->events.last_got},
		},
		"%s: the program has acknowledged %" PRIu64 " more event%s than it has got%s%s%s",
		check_name(object->handle, name, sizeof(name)), surplus, surplus == 1 ? "" : "s",
		right ? ", and an event of " : "",
		right ? check_name(right->object.handle, other, sizeof(other)) : "",
		right ? " is not acknowledged" : "");
}

/* right: where the acknowledgement may belong; NULL: unknown. */
static void note_acked(const struct check_call *check, const struct object *object,
		       struct event_count *count, uint64_t acked, const struct check_cq *right)
{
	note_thread(count);
	count->acked += acked;
	if (count->acked <= count->got || !is_known(object))
		return;
	report_surplus(check, object, count, count->acked - count->got, right);
	count->acked = count->got;
}

static void before_ack(struct check_call *check)
{
	struct check_cq *cq = check->cq;

	if (cq)
		note_acked(check, &cq->object, &cq->events, (unsigned int)check->call->arguments[1],
			   find_unacknowledged(cq));
}

/* --- asynchronous events --- */

/* Returns the object that an event names; NULL: it names none, or an unknown one. */
static struct object *object_of(const struct ibv_async_event *event)
{
	switch (async_event_of(event->event_type)) {
	case EVENT_OF_CQ:
		return (struct object *)object_find_cq(event->element.cq);
	case EVENT_OF_QP:
		return (struct object *)object_find_qp(event->element.qp);
	case EVENT_OF_SRQ:
		return (struct object *)object_find_srq(event->element.srq);
	default:
		return NULL;
	}
}

static void after_get_async(struct check_call *check)
{
	struct object *object = check->call->err ? NULL : object_of(check_pointer(check, 1));

	if (object)
		note_got(check, &object->async);
}

static void before_ack_async(struct check_call *check)
{
	const struct ibv_async_event *event = check_pointer(check, 0);
	struct object *object = event ? object_of(event) : NULL;

	if (object)
		note_acked(check, object, &object->async, 1, NULL);
}

/* --- destroying --- */

static void report_missing(const struct check_call *check, const struct object *object,
			   struct event_count *count, const char *kind)
{
	const uint64_t missing = count->got - count->acked;
	char name[64];

	if (count->reported || !missing || !is_known(object))
		return;
	count->reported = true;
	offence_report(VB_RULE_NOT_ACKNOWLEDGED,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "got", .spot = count->last_got},
			       {.label = "destroyed", .spot = check->spot},
		       },
		       "%s: the program has not acknowledged %" PRIu64
		       " %s%s, for which the verb that destroys the object waits for ever",
		       check_name(object->handle, name, sizeof(name)), missing, kind,
		       missing == 1 ? "" : "s");
}

/* sure: the backend has found that nothing will be acknowledged. Else another thread may acknowledge. */
static void check_end(const struct check_call *check, struct object *object,
		      struct event_count *count, const char *kind, bool sure)
{
	if (sure || (!count->several_threads && pthread_equal(count->thread, pthread_self())))
		report_missing(check, object, count, kind);
}

static void check_object(const struct check_call *check, struct object *object, bool sure)
{
	struct check_cq *cq = (struct check_cq *)object;

	if (!object)
		return;
	check_end(check, object, &object->async, "asynchronous event", sure);
	if (object->kind == OBJECT_CQ)
		check_end(check, object, &cq->events, "event", sure);
}

static struct object *ended_object(const struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	struct layer_object known;

	switch (check->call->verb) {
	case LAYER_destroy_cq:
		return (struct object *)object_find_cq(check_pointer(check, 0));
	case LAYER_destroy_qp:
		return (struct object *)object_find_qp(check_pointer(check, 0));
	case LAYER_destroy_srq:
		return (struct object *)object_find_srq(check_pointer(check, 0));
	default:
		/* An identifier that is unknown may be any pointer. */
		return layer_object_find(id, &known) ? (struct object *)object_find_qp(id->qp)
						     : NULL;
	}
}

static void before_destroy(struct check_call *check)
{
	check_object(check, ended_object(check), false);
}

/* On the virtual clock the verb fails if it would wait for ever. */
static void after_destroy(struct check_call *check)
{
	if (check->call->err == EDEADLK)
		check_object(check, ended_object(check), true);
}

static void end(void)
{
	last_number = last_send_number = last_tick = 0;
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{LAYER_req_notify_cq, NULL, after_arm},
	{LAYER_poll_cq, NULL, after_poll},
	{LAYER_start_poll, NULL, after_step},
	{LAYER_next_poll, NULL, after_step},
	{LAYER_get_cq_event, before_get, after_get},
	{LAYER_ack_cq_events, before_ack, NULL},
	{LAYER_get_async_event, NULL, after_get_async},
	{LAYER_ack_async_event, before_ack_async, NULL},
	{LAYER_destroy_cq, before_destroy, after_destroy, .after_failure_only = true},
	{LAYER_destroy_qp, before_destroy, after_destroy, .after_failure_only = true},
	{LAYER_destroy_srq, before_destroy, after_destroy, .after_failure_only = true},
	{LAYER_cm_destroy_qp, before_destroy, NULL},
	{0},
};

const struct check_rule rule_event = {
	.hooks = hooks, .posted = posted, .done = done, .done_rarely = true, .end = end};
