/* SPDX-License-Identifier: MIT */
/*
 * Data races between the program and the adapter, in programs with ThreadSanitizer. race.c tells ThreadSanitizer
 * what the adapter does with the buffers of work requests, as a thread that begins to read or write them with the
 * post. The post orders the program before the adapter, and the poll of the completion the adapter before the
 * program. ThreadSanitizer itself reports a program that touches a buffer in between.
 *
 * Each queue is a thread ("fiber") of its own: its work requests complete in order, so a completion orders the
 * works before it, and no others.
 */
#include "src/base/count.h"
#include "src/check/share.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define WITHOUT_ORDER 1	   /* a change of the fiber orders nothing */
#define SYNCS	      4096 /* two works with one place among them may hide a race */

/* The functions of ThreadSanitizer's run-time library, which is part of the program. */
static struct {
	void (*acquire)(void *place);
	void (*release)(void *place);
	void (*read)(void *memory, unsigned long length_bytes, void *caller);
	void (*write)(void *memory, unsigned long length_bytes, void *caller);
	void (*enter)(void *caller);
	void (*leave)(void);
	void *(*create_fiber)(unsigned int flags);
	void (*destroy_fiber)(void *fiber);
	void *(*current_fiber)(void);
	void (*switch_to_fiber)(void *fiber, unsigned int flags);
	void (*name_fiber)(void *fiber, const char *name);
} tsan;

static char syncs[SYNCS]; /* only their addresses count */
static bool active;	  /* the program is linked with ThreadSanitizer */

static bool find_tsan(void)
{
	const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"__tsan_acquire", &tsan.acquire},
		{"__tsan_release", &tsan.release},
		{"__tsan_read_range_pc", &tsan.read},
		{"__tsan_write_range_pc", &tsan.write},
		{"__tsan_func_entry", &tsan.enter},
		{"__tsan_func_exit", &tsan.leave},
		{"__tsan_create_fiber", &tsan.create_fiber},
		{"__tsan_destroy_fiber", &tsan.destroy_fiber},
		{"__tsan_get_current_fiber", &tsan.current_fiber},
		{"__tsan_switch_to_fiber", &tsan.switch_to_fiber},
		{"__tsan_set_fiber_name", &tsan.name_fiber},
	};

	for (size_t i = 0; i < COUNT(functions); i++) {
		void *found = dlsym(RTLD_DEFAULT, functions[i].name);

		if (!found)
			return false;
		memcpy(functions[i].place, &found, sizeof(found));
	}
	return true;
}

static bool wanted(const struct vb_check_options *options)
{
	(void)options;
	return find_tsan();
}

/* Returns the address by which ThreadSanitizer orders the end of a work before its poll. */
static void *sync_of(const struct work *work)
{
	return &syncs[work->number % SYNCS];
}

static void *fiber_of(struct check_qp *qp, bool send)
{
	void **fiber = send ? &qp->send_fiber : &qp->receive_fiber;
	char name[64];

	if (*fiber)
		return *fiber;
	*fiber = tsan.create_fiber(0);
	snprintf(name, sizeof(name), "%s queue of QP 0x%x", send ? "send" : "receive", qp->qpn);
	if (*fiber)
		tsan.name_fiber(*fiber, name);
	return *fiber;
}

/* Tells ThreadSanitizer of the adapter's accesses to the buffers. The stack in its report is that of the
 * post. */
static void access_buffers(const struct work *work)
{
	void *const *frames = (void *const *)work->posted.frames;
	unsigned int callers = 0;

	for (unsigned int i = COUNT(work->posted.frames); i-- > 1;)
		if (frames[i]) {
			tsan.enter(frames[i]);
			callers++;
		}
	for (uint32_t i = 0; i < work->sge_count; i++) {
		const struct work_sge *sge = &work->sges[i];

		/* A buffer may be given to two adapters at once: that is for the program to decide. */
		if (sge->memory && sge->sge.length &&
		    !share_found(work, sge->memory, sge->sge.length))
			(work->target ? tsan.write : tsan.read)((void *)sge->memory,
								sge->sge.length, frames[0]);
	}
	while (callers--)
		tsan.leave();
}

/* Completions of XRC do not name the SRQ of the receive: receives of an SRQ are left alone. */
static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	void *own, *fiber;

	if (!active || !qp || work->inlined)
		return;
	fiber = fiber_of(qp, work->send);
	if (!fiber)
		return;
	own = tsan.current_fiber();
	tsan.release(sync_of(work));
	tsan.switch_to_fiber(fiber, WITHOUT_ORDER);
	tsan.acquire(sync_of(work));
	access_buffers(work);
	tsan.release(sync_of(work));
	tsan.switch_to_fiber(own, WITHOUT_ORDER);
}

/* The program may use the buffers again. */
static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (active && qp)
		tsan.acquire(sync_of(work));
}

static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (active && qp)
		tsan.acquire(sync_of(work));
}

static void end_queue(const struct work_queue *queue)
{
	for (uint64_t i = 0; i < work_count(queue); i++)
		tsan.acquire(sync_of(work_at(queue, i)));
}

/* Ends all works of a QP that has failed: adapters no longer use their buffers. */
static void end_works(struct check_qp *qp)
{
	if (!qp)
		return;
	end_queue(&qp->sends);
	end_queue(&qp->receives);
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	if (active && wc->status != IBV_WC_SUCCESS)
		end_works(qp);
}

static void after_modify(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);

	if (!check->call->err && check->call->arguments[2] & IBV_QP_STATE &&
	    attr->qp_state == IBV_QPS_ERR)
		end_works(check->qp);
}

static void after_disconnect(struct check_call *check)
{
	end_works(check_qp_of_id(check));
}

static void end_work_of_mr(struct check_qp *qp, struct work *work, void *arg)
{
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->sges[i].mr_number == *(const uint64_t *)arg)
			tsan.acquire(sync_of(work));
}

/* track_mr.c keeps the MR in the state of the call. */
static void after_dereg(struct check_call *check)
{
	const struct check_mr *mr = (const struct check_mr *)(uintptr_t)*check->state;
	uint64_t number;

	if (!mr || check->call->err)
		return;
	number = mr->number;
	check_each_work(end_work_of_mr, &number);
}

static void end_fiber(void **fiber)
{
	if (*fiber)
		tsan.destroy_fiber(*fiber);
	*fiber = NULL;
}

static void end_fibers(struct check_qp *qp)
{
	end_fiber(&qp->send_fiber);
	end_fiber(&qp->receive_fiber);
}

static void before_destroy(struct check_call *check)
{
	if (check->qp)
		end_fibers(check->qp);
}

static void begin(const struct vb_check_options *options)
{
	(void)options;
	active = find_tsan();
	if (active)
		check_alerts |= CHECK_ALERT_RACE;
}

static void end(void)
{
	check_alerts &= ~(unsigned int)CHECK_ALERT_RACE;
	active = false;
	for (struct object *object = object_first(OBJECT_QP); object; object = object->next_of_kind)
		end_fibers((struct check_qp *)object);
}

static const struct check_hook hooks[] = {
	{LAYER_destroy_qp, before_destroy, NULL},      {LAYER_modify_qp, NULL, after_modify},
	{LAYER_cm_disconnect, NULL, after_disconnect}, {LAYER_dereg_mr, NULL, after_dereg},
	{LAYER_rereg_mr, NULL, after_dereg},	       {0},
};

const struct check_rule rule_race = {
	.hooks = hooks,
	.wanted = wanted,
	.posted = posted,
	.posted_rarely = true,
	.done = done,
	.done_rarely = true,
	.polled = polled,
	.dropped = dropped,
	.refused = dropped,
	.begin = begin,
	.end = end,
};
