/* SPDX-License-Identifier: MIT */
/*
 * memory-ended-in-flight and qp-ended-in-flight. A work request uses its MRs, its address handle and its
 * memory until its completion has been polled; that of a QP that is in no state to carry it out does not.
 */
#include "src/check/check.h"
#include "src/check/look.h"
#include "src/check/poison.h"
#include "src/guard/guard.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- QPs that carry out their works --- */

/* Returns true if the QP carries out sends, or receives, in the state. */
static bool is_live_state(enum ibv_qp_state state, bool send)
{
	switch (state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		return true;
	case IBV_QPS_RTR:
	case IBV_QPS_SQE:
		return !send;
	default:
		return false;
	}
}

/* A QP enters an error state by itself, too, or by rdma_disconnect(). So the device is asked, but only
 * if the state that the program has set is a live one. */
static bool is_live(const struct check_qp *qp, bool send)
{
	enum ibv_qp_state state;

	if (qp->failed || (qp->attr_mask & IBV_QP_STATE && !is_live_state(qp->state, send)))
		return false;
	return look_state((struct ibv_qp *)qp->object.handle, &state) && is_live_state(state, send);
}

/* Returns a QP that takes receives of the SRQ; NULL: none. */
static const struct check_qp *live_qp_of(const struct check_srq *srq)
{
	for (const struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;

		if (qp->srq == srq && is_live(qp, false))
			return qp;
	}
	return NULL;
}

/*
 * Returns true if the work is to have a completion, of its own or of a later work. The program may know from
 * its peer when the last sends are done if they are not signalled; so with datagrams, which the peer
 * acknowledges by messages only.
 */
static bool is_awaited(const struct work_queue *queue, const struct work *work)
{
	if (work->signalled || work->ah)
		return work->signalled;
	for (uint64_t i = work_count(queue); i && work_at(queue, i - 1)->number > work->number; i--)
		if (work_at(queue, i - 1)->signalled)
			return true;
	return false;
}

/* --- the end of objects under works --- */

/* What ends, and which works use it. */
struct ending {
	const void *handle;
	uint64_t mr_number; /* of an MR */
	const char *what;   /* such as "the MR of a buffer of" */
	const char *how;    /* such as "deregistered" */
	bool (*is_used)(const struct ending *ending, const struct work *work);
};

static bool uses_mr(const struct ending *ending, const struct work *work)
{
	for (uint32_t i = 0; !work->inlined && i < work->sge_count; i++)
		if (work->sges[i].mr_number == ending->mr_number && work->sges[i].sge.length)
			return true;
	return false;
}

static bool uses_handle(const struct ending *ending, const struct work *work)
{
	return work->ending && (work->ah == ending->handle || work->mw == ending->handle);
}

static struct work *find_use(const struct ending *ending, const struct work_queue *queue)
{
	for (uint64_t i = 0; i < work_count(queue); i++) {
		struct work *work = work_at(queue, i);

		if (!work->done && ending->is_used(ending, work) && is_awaited(queue, work))
			return work;
	}
	return NULL;
}

/* owner: the QP or SRQ of the work. */
static void report_use(const struct check_call *check, const struct ending *ending,
		       const void *owner, const struct work *work)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work->posted},
		{.label = ending->how, .spot = check->spot},
	};
	char object[64], name[64];

	offence_report(VB_RULE_MEMORY_ENDED, places, "%s: %s %s was %s before its completion",
		       check_name(owner, object, sizeof(object)), ending->what,
		       check_work_name(work, name, sizeof(name)), ending->how);
}

static void look_for_uses(const struct check_call *check, const struct ending *ending)
{
	struct object *object;
	struct work *work;

	for (object = object_first(OBJECT_QP); object; object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;

		work = find_use(ending, &qp->sends);
		if (work && is_live(qp, true))
			report_use(check, ending, object->handle, work);
		work = find_use(ending, &qp->receives);
		if (work && is_live(qp, false))
			report_use(check, ending, object->handle, work);
	}
	for (object = object_first(OBJECT_SRQ); object; object = object->next_of_kind) {
		const struct check_srq *srq = (const struct check_srq *)object;

		work = find_use(ending, &srq->receives);
		if (work && live_qp_of(srq))
			report_use(check, ending, object->handle, work);
	}
}

/* track_mr.c keeps the MR in the state of the call. */
static void after_dereg_mr(struct check_call *check)
{
	const struct check_mr *mr = (const struct check_mr *)(uintptr_t)*check->state;

	if (mr && !check->call->err)
		look_for_uses(check, &(struct ending){
					     .mr_number = mr->number,
					     .what = "the MR of a buffer of",
					     .how = "deregistered",
					     .is_used = uses_mr,
				     });
}

static void after_rereg_mr(struct check_call *check)
{
	const struct check_mr *mr = (const struct check_mr *)(uintptr_t)*check->state;
	const uint64_t moves = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD;

	if (mr && !check->call->err && check->call->arguments[1] & moves)
		look_for_uses(check, &(struct ending){
					     .mr_number = mr->number,
					     .what = "the MR of a buffer of",
					     .how = "registered anew",
					     .is_used = uses_mr,
				     });
}

/* Another thread may get the same address for a new handle before after(): the works are marked. */
static void mark(struct check_qp *qp, struct work *work, void *arg)
{
	if (work->send && arg && (work->ah == arg || work->mw == arg))
		work->ending = true;
}

static void unmark(struct check_qp *qp, struct work *work, void *arg)
{
	if (work->ah == arg || work->mw == arg)
		work->ending = false;
}

static void before_end(struct check_call *check)
{
	check_each_work(mark, check_pointer(check, 0));
}

static void after_end(struct check_call *check, const char *what, const char *how)
{
	if (!check->call->err)
		look_for_uses(check, &(struct ending){
					     .handle = check_pointer(check, 0),
					     .what = what,
					     .how = how,
					     .is_used = uses_handle,
				     });
	check_each_work(unmark, check_pointer(check, 0));
}

static void after_destroy_ah(struct check_call *check)
{
	after_end(check, "the address handle of", "destroyed");
}

static void after_dealloc_mw(struct check_call *check)
{
	after_end(check, "the memory window of", "deallocated");
}

/* --- memory that is unmapped or freed under works --- */

static bool is_unmapped(const struct work_sge *sge)
{
	uintptr_t hole;
	size_t hole_bytes;
	const char *what;

	if (guard_probe(sge->memory, sge->sge.length, false) != EFAULT)
		return false;
	what = guard_find_hole(sge->memory, sge->sge.length, false, &hole, &hole_bytes);
	return what && !strcmp(what, "not mapped");
}

static bool is_freed(const struct work_sge *sge)
{
	return poison_is_freed(sge->memory, sge->sge.length);
}

/* seen: the last verb at which the memory was there; NULL: it was not when the work was posted. owner: the QP
 * or SRQ. */
static void report_gone(const struct check_call *check, const void *owner, const struct work *work,
			const struct work_sge *sge, const char *how, const struct spot *seen)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work->posted},
		{.label = seen ? how : NULL,
		 .spot = seen ? *seen : work->posted,
		 .until = &check->spot},
	};
	char object[64], name[64];

	offence_report(VB_RULE_MEMORY_ENDED, places,
		       "%s: memory of the buffer 0x%llx of %s was %s before %s",
		       check_name(owner, object, sizeof(object)), (unsigned long long)sge->sge.addr,
		       check_work_name(work, name, sizeof(name)), how,
		       seen ? "its completion" : "it was posted");
}

static bool has_gone(const struct work *work, bool (*is_gone)(const struct work_sge *sge))
{
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->sges[i].memory && work->sges[i].sge.length && is_gone(&work->sges[i]))
			return true;
	return false;
}

static CHECK_RARE void look_for_gone(const struct check_call *check, const void *owner,
				     struct work *work, bool (*is_gone)(const struct work_sge *sge),
				     const char *how, const struct spot *seen)
{
	/* Unknown: that of the post. */
	if (seen && !seen->frames[0])
		seen = &work->posted;
	for (uint32_t i = 0; !work->missing && i < work->sge_count; i++) {
		const struct work_sge *sge = &work->sges[i];

		if (!sge->memory || !sge->sge.length || !is_gone(sge))
			continue;
		work->missing = true;
		report_gone(check, owner, work, sge, how, seen);
	}
}

void memory_missing(const struct check_call *check, const struct check_qp *qp, struct work *work,
		    const struct spot *seen)
{
	if (is_awaited(work->send ? &qp->sends : &qp->receives, work) && is_live(qp, work->send))
		look_for_gone(check, qp->object.handle, work, is_unmapped, "unmapped", seen);
}

bool memory_freed(const struct check_call *check, const struct check_qp *qp, struct work *work,
		  const struct spot *seen)
{
	if (has_gone(work, is_freed) && is_awaited(work->send ? &qp->sends : &qp->receives, work) &&
	    is_live(qp, work->send))
		look_for_gone(check, qp->object.handle, work, is_freed, "freed", seen);
	return work->missing;
}

/* An adapter has written to each target of a work that has succeeded, if the message was not empty. */
static bool is_readable(const struct work *work)
{
	char byte;

	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->sges[i].memory && work->sges[i].sge.length &&
		    guard_copy(&byte, work->sges[i].memory, 1))
			return false;
	return true;
}

static CHECK_RARE void look_since_seen(const struct check_call *check, const struct check_qp *qp,
				       struct work *work,
				       bool (*is_gone)(const struct work_sge *sge), const char *how)
{
	look_for_gone(check, qp->object.handle, work, is_gone, how, &work->seen);
}

static __attribute__((noinline)) void look_at_target(const struct check_call *check,
						     const struct check_qp *qp, struct work *work)
{
	if (!is_readable(work))
		look_since_seen(check, qp, work, is_unmapped, "unmapped");
}

static CHECK_RARE void look_at_failed(const struct check_call *check, const struct check_qp *qp,
				      struct work *work, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_LOC_PROT_ERR || wc->status == IBV_WC_REM_ACCESS_ERR)
		look_since_seen(check, qp, work, is_unmapped, "unmapped");
}

static CHECK_RARE void look_with_tool(const struct check_call *check, const struct check_qp *qp,
				      struct work *work)
{
	if (work->target)
		look_at_target(check, qp, work);
	look_since_seen(check, qp, work, is_freed, "freed");
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (work->inlined)
		return;
	if (wc && wc->status != IBV_WC_SUCCESS)
		look_at_failed(check, qp, work, wc);
	else if (poison_active)
		look_with_tool(check, qp, work);
	else if (work->target)
		look_at_target(check, qp, work);
}

/* --- QPs that end with sends in flight --- */

#define LOST_MAX 64 /* a power of two */

/* A buffer of a send that was in flight when its QP ended. */
struct lost {
	const struct ibv_context *context;
	uint32_t qpn;
	uint64_t wr_id, number; /* of the work */
	uint64_t mr_number;
	uint64_t addr; /* as work requests name it */
	uint32_t length_bytes;
	bool reset; /* the QP was reset, and not destroyed */
	char work[64], qp[64];
	struct spot posted, ended;
};

static struct lost lost[LOST_MAX]; /* a ring; those without an mr_number are free */
static uint64_t lost_count;	   /* counts the buffers that were put into the ring */

static void note_live(struct check_qp *qp)
{
	if (qp)
		qp->ended_live = work_count(&qp->sends) && is_live(qp, true);
}

static void before_destroy_qp(struct check_call *check)
{
	note_live(check->qp);
}

static void before_cm_destroy_qp(struct check_call *check)
{
	note_live(check_qp_of_id(check));
}

static void before_modify_qp(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);
	const int mask = (int)check->call->arguments[2];

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		note_live(check->qp);
}

static void keep_lost(const struct check_call *check, const struct check_qp *qp,
		      const struct work *work, const struct work_sge *sge)
{
	struct lost *entry = &lost[lost_count++ % LOST_MAX];

	check_alerts |= CHECK_ALERT_LOST;
	*entry = (struct lost){
		.context = qp->object.context,
		.qpn = qp->qpn,
		.wr_id = work->wr_id,
		.number = work->number,
		.mr_number = sge->mr_number,
		.addr = sge->sge.addr,
		.length_bytes = sge->sge.length,
		.reset = check->call->verb == LAYER_modify_qp,
		.posted = work->posted,
		.ended = check->spot,
	};
	snprintf(entry->qp, sizeof(entry->qp), "QP 0x%x of %s", qp->qpn,
		 check->call->device ? check->call->device : "a device");
	check_work_name(work, entry->work, sizeof(entry->work));
}

/* The program that signals no completion has another way to know when a send is done. */
static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (!qp || !qp->ended_live || !work->send || !work->signalled || work->inlined)
		return;
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (work->sges[i].mr_number && work->sges[i].sge.length)
			keep_lost(check, qp, work, &work->sges[i]);
}

static void report_lost(const struct work *work, const struct lost *entry)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = entry->posted},
		{.label = entry->reset ? "reset" : "destroyed", .spot = entry->ended},
		{.label = "used again", .spot = work->posted},
	};
	char name[64];

	offence_report(VB_RULE_QP_ENDED, places,
		       "%s: the QP was %s before the completion of %s was polled, and %s uses its "
		       "buffer again",
		       entry->qp, entry->reset ? "reset" : "destroyed", entry->work,
		       check_work_name(work, name, sizeof(name)));
}

static bool is_again(const struct lost *entry, const struct work_sge *sge)
{
	return entry->mr_number && entry->mr_number == sge->mr_number &&
	       sge->sge.addr < entry->addr + entry->length_bytes &&
	       entry->addr < sge->sge.addr + sge->sge.length;
}

static CHECK_RARE void look_for_lost(struct work *work)
{
	for (uint32_t i = 0; i < work->sge_count; i++)
		for (unsigned int k = 0; k < LOST_MAX; k++)
			if (is_again(&lost[k], &work->sges[i])) {
				report_lost(work, &lost[k]);
				lost[k].mr_number = 0;
			}
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (poison_active && !work->inlined)
		look_for_gone(check, check_pointer(check, 0), work, is_freed, "freed", NULL);
	if (lost_count)
		look_for_lost(work);
}

/* Some adapters keep the completions of a QP that has ended: one that is polled ends the sends up to
 * its own. */
static CHECK_RARE void forget_lost(const struct check_call *check, const struct ibv_wc *wc)
{
	uint64_t number = 0;

	for (unsigned int k = 0; k < LOST_MAX; k++)
		if (lost[k].context == check->call->context && lost[k].qpn == wc->qp_num &&
		    lost[k].wr_id == wc->wr_id)
			number = lost[k].number;
	for (unsigned int k = 0; k < LOST_MAX; k++)
		if (lost[k].context == check->call->context && lost[k].qpn == wc->qp_num &&
		    lost[k].number <= number)
			lost[k].mr_number = 0;
}

static void polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	if (lost_count)
		forget_lost(check, wc);
}

static void begin(const struct vb_check_options *options)
{
	if (poison_active)
		check_alerts |= CHECK_ALERT_POISON;
}

static void end(void)
{
	check_alerts &= ~(unsigned int)(CHECK_ALERT_LOST | CHECK_ALERT_POISON);
	memset(lost, 0, sizeof(lost));
	lost_count = 0;
}

static const struct check_hook hooks[] = {
	{LAYER_dereg_mr, NULL, after_dereg_mr},
	{LAYER_rereg_mr, NULL, after_rereg_mr},
	{LAYER_destroy_ah, before_end, after_destroy_ah},
	{LAYER_dealloc_mw, before_end, after_dealloc_mw},
	{LAYER_destroy_qp, before_destroy_qp, NULL},
	{LAYER_cm_destroy_qp, before_cm_destroy_qp, NULL},
	{LAYER_cm_destroy_ep, before_cm_destroy_qp, NULL},
	{LAYER_modify_qp, before_modify_qp, NULL},
	{0},
};

const struct check_rule rule_memory = {.hooks = hooks,
				       .posted = posted,
				       .posted_rarely = true,
				       .done = done,
				       .done_targets = true,
				       .polled = polled,
				       .dropped = dropped,
				       .begin = begin,
				       .end = end};
