/* SPDX-License-Identifier: MIT */
/*
 * send-buffer-changed. The buffers of a send are summed when it is posted and when its completion is polled. Each verb
 * between looks at one send, so that the report says between which two verbs the change was: the two next ones if a
 * send is alone in flight. A difference that an adapter may have made is no finding: the buffer is the target of
 * another work, or of the peer's RDMA WRITEs.
 */
#include "src/base/count.h"
#include "src/check/check.h"
#include "src/check/poison.h"
#include "src/check/sum.h"

#include <inttypes.h>

#define BYTES_DEFAULT 65536
#define QPS_LOOKED    4	  /* QPs that a verb looks at, until it has found one with sends */
#define SENDS_FEW     4	  /* with more in flight, only each fourth verb looks */
#define PAST_MAX      256 /* a power of two */

static uint32_t bytes = BYTES_DEFAULT;

/* --- what adapters may have written --- */

/* Targets of works that have completed, the last ones. */
static struct past {
	const char *memory;
	size_t length_bytes;
	uint64_t number; /* of the last post before the completion */
	uint64_t work;	 /* its number */
} past[PAST_MAX];
static uint64_t past_count;

static uint64_t last_number; /* of the last post */

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* A range that is looked for, and whether it was found. */
struct range {
	const char *memory;
	size_t length_bytes;
	uint64_t number; /* of the work whose range it is */
	bool found;
};

static void look_at_target(struct check_qp *qp, struct work *work, void *arg)
{
	struct range *range = arg;

	if (!work->target || work->number == range->number)
		return;
	for (uint32_t i = 0; i < work->sge_count; i++)
		range->found |= work->sges[i].memory &&
				overlap(range->memory, range->length_bytes, work->sges[i].memory,
					work->sges[i].sge.length);
}

static bool was_target(const struct range *range)
{
	const uint64_t first = past_count > PAST_MAX ? past_count - PAST_MAX : 0;

	for (uint64_t i = first; i < past_count; i++)
		if (past[i % PAST_MAX].number >= range->number &&
		    past[i % PAST_MAX].work != range->number &&
		    overlap(range->memory, range->length_bytes, past[i % PAST_MAX].memory,
			    past[i % PAST_MAX].length_bytes))
			return true;
	/* Older ones are forgotten. */
	return first && past[first % PAST_MAX].number >= range->number;
}

static bool takes_remote_writes(const struct ibv_pd *pd)
{
	const int writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;

		if (qp->pd == pd && (!(qp->attr_mask & IBV_QP_ACCESS_FLAGS) ||
				     (int)qp->attr.qp_access_flags & writes))
			return true;
	}
	return false;
}

static bool is_remote_target(const struct range *range)
{
	for (struct object *object = object_first(OBJECT_MR); object;
	     object = object->next_of_kind) {
		const struct check_mr *mr = (const struct check_mr *)object;
		const int writes =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

		if (mr->access & writes && mr->memory &&
		    overlap(range->memory, range->length_bytes, mr->memory, mr->length_bytes) &&
		    takes_remote_writes(mr->pd))
			return true;
	}
	return false;
}

bool buffer_may_be_written(const struct work *work)
{
	for (uint32_t i = 0; i < work->sge_count; i++) {
		struct range range = {
			.memory = work->sges[i].memory,
			.length_bytes = work->sges[i].sge.length,
			.number = work->number,
		};

		if (!range.memory)
			continue;
		check_each_work(look_at_target, &range);
		if (range.found || was_target(&range) || is_remote_target(&range))
			return true;
	}
	return false;
}

/* --- the rule --- */

static bool is_watched(const struct work *work)
{
	return work->send && !work->target && !work->inlined && work->sge_count;
}

static void report(const struct check_call *check, const struct check_qp *qp,
		   const struct work *work)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work->posted},
		{.label = "changed", .spot = work->seen, .until = &check->spot},
	};
	char object[64], name[64];

	offence_report(VB_RULE_SEND_CHANGED, places,
		       "%s: the buffers of %s (%" PRIu64
		       " bytes) have changed before its completion",
		       check_name(qp->object.handle, object, sizeof(object)),
		       check_work_name(work, name, sizeof(name)), work->length_bytes);
}

static void compare(const struct check_call *check, const struct check_qp *qp, struct work *work)
{
	const void *missing;
	uint64_t sum;

	if (!work->summed)
		return;
	work->summed = sum_work(work, bytes, &sum, &missing);
	if (!work->summed) {
		memory_missing(check, qp, work, &work->seen);
		return;
	}
	if (poison_active && memory_freed(check, qp, work, &work->seen)) {
		work->summed = false;
		return;
	}
	if (sum != work->sum && !buffer_may_be_written(work)) {
		work->summed = false;
		report(check, qp, work);
	}
	work->sum = sum;
	work->seen = check->spot;
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	const void *missing;

	last_number = work->number;
	if (!is_watched(work))
		return;
	work->summed = sum_work(work, bytes, &work->sum, &missing);
	work->seen = check->spot;
	if (!work->summed)
		memory_missing(check, qp, work, NULL);
}

static void keep_past(const struct work *work)
{
	for (uint32_t i = 0; i < work->sge_count; i++) {
		struct past *entry = &past[past_count % PAST_MAX];

		if (!work->sges[i].memory)
			continue;
		past_count++;
		entry->memory = work->sges[i].memory;
		entry->length_bytes = work->sges[i].sge.length;
		entry->work = work->number;
		entry->number = last_number;
	}
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (work->send)
		compare(check, qp, work);
	if (work->target)
		keep_past(work);
}

/* --- between post and completion --- */

static struct {
	uint64_t changes; /* object_changes() when the cursor was set */
	struct check_qp *qp;
	uint64_t index;
	unsigned int
		skipped; /* counts the verbs that could have looked, with many sends in flight */
} cursor;

/* Returns false if the QP has no more sends. */
static inline bool look_at_qp(struct check_call *check)
{
	const uint64_t count = work_count(&cursor.qp->sends);

	if (cursor.index >= count)
		return false;
	if (count <= SENDS_FEW || ++cursor.skipped % 4 == 0)
		compare(check, cursor.qp, work_at(&cursor.qp->sends, cursor.index++));
	return true;
}

static __attribute__((noinline)) void look_at_others(struct check_call *check)
{
	for (unsigned int looked = 1; looked <= QPS_LOOKED; looked++) {
		cursor.qp = (struct check_qp *)cursor.qp->object.next_of_kind;
		cursor.index = 0;
		if (!cursor.qp || looked == QPS_LOOKED || look_at_qp(check))
			return;
	}
}

static void look(struct check_call *check)
{
	if (cursor.changes != object_changes() || !cursor.qp) {
		cursor.changes = object_changes();
		cursor.qp = (struct check_qp *)object_first(OBJECT_QP);
		cursor.index = 0;
	}
	if (cursor.qp && !look_at_qp(check))
		look_at_others(check);
}

static void begin(const struct vb_check_options *options)
{
	bytes = options->buffer_bytes ? options->buffer_bytes : BYTES_DEFAULT;
}

static void end(void)
{
	past_count = 0;
}

const struct check_rule rule_buffer = {
	.posted = posted, .done = done, .look = look, .begin = begin, .end = end};
