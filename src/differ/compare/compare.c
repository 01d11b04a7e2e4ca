/* SPDX-License-Identifier: MIT */
#include "src/differ/compare/compare.h"

#include "src/differ/compare/open.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <verbena/verbs.h>

/* The completions or events of one step, sorted by their queue or object: the order between
 * queues is open. */
struct view {
	unsigned int count;
	unsigned int at[VD_COMPLETIONS_MAX];
	int keys[VD_COMPLETIONS_MAX];
};

/* Notes a difference. Returns false. */
__attribute__((format(printf, 3, 4))) static bool differ(const struct vd_sides *sides,
							 enum vd_about about, const char *fmt, ...)
{
	struct vd_difference *difference = sides->difference;
	va_list args;

	difference->step = sides->step;
	difference->about = about;
	va_start(args, fmt);
	vsnprintf(difference->text, sizeof(difference->text), fmt, args);
	va_end(args);
	return false;
}

/* Inserts behind all that have the same key or a smaller one. */
static void insert(struct view *view, unsigned int index, int key)
{
	unsigned int at = view->count++;

	for (; at && view->keys[at - 1] > key; at--) {
		view->keys[at] = view->keys[at - 1];
		view->at[at] = view->at[at - 1];
	}
	view->keys[at] = key;
	view->at[at] = index;
}

/* --- answers --- */

static bool same_answers(const struct vd_sides *sides)
{
	const struct vd_outcome *left = &sides->left->outcomes[sides->step];
	const struct vd_outcome *right = &sides->right->outcomes[sides->step];
	const char *name = vd_verbs[sides->program->steps[sides->step].verb].name;
	char a[16], b[16];

	if (left->answer != right->answer)
		return differ(sides, VD_ANSWER, "%s: left %s; right %s", name,
			      vd_answer_name(left->answer, a), vd_answer_name(right->answer, b));
	if (left->bad != right->bad)
		return differ(sides, VD_BAD_WR, "%s: bad_wr: left %d; right %d", name, left->bad,
			      right->bad);
	for (unsigned int i = 0; i < left->value_count; i++)
		if (left->values[i] != right->values[i])
			return differ(sides, VD_VALUE, "%s: value %u: left %#x; right %#x", name, i,
				      left->values[i], right->values[i]);
	return true;
}

/* --- completions --- */

static void view_completions(const struct vd_record *record, unsigned int step, struct view *view)
{
	view->count = 0;
	for (unsigned int i = 0; i < record->completion_count; i++)
		if (record->completions[i].step == step)
			insert(view, i, vd_queue_of(&record->completions[i]));
}

static const char *describe(const struct vd_completion *completion, char *buffer, size_t size_bytes)
{
	int length;

	if (!completion)
		return "none";
	length = snprintf(buffer, size_bytes, "%s %u of step %u on qp%d %s",
			  vd_wr_id_receives(completion->wr_id) ? "receive" : "send",
			  vd_wr_id_wr(completion->wr_id), vd_wr_id_step(completion->wr_id),
			  completion->qp, vd_status_name(completion->status));
	if (completion->status == IBV_WC_SUCCESS && length > 0 && (size_t)length < size_bytes)
		snprintf(buffer + length, size_bytes - (size_t)length,
			 ", opcode %d, byte_len %u, flags %#x, imm %#x, src_qp %d, invalidated %d",
			 completion->opcode, completion->byte_len, completion->flags,
			 completion->imm, completion->src_qp, completion->invalidated);
	return buffer;
}

/* Fields without a meaning are zero on both sides: see observe.c. */
static bool same_completion(const struct vd_completion *a, const struct vd_completion *b)
{
	return a->wr_id == b->wr_id && a->qp == b->qp && a->status == b->status &&
	       a->opcode == b->opcode && a->byte_len == b->byte_len && a->flags == b->flags &&
	       a->imm == b->imm && a->invalidated == b->invalidated && a->src_qp == b->src_qp;
}

static bool same_completions(struct vd_sides *sides)
{
	const struct vd_record *left = sides->left, *right = sides->right;
	struct view a, b;
	char of_a[160], of_b[160];

	view_completions(left, sides->step, &a);
	view_completions(right, sides->step, &b);
	for (unsigned int i = 0; i < a.count || i < b.count; i++) {
		const struct vd_completion *l = i < a.count ? &left->completions[a.at[i]] : NULL;
		const struct vd_completion *r = i < b.count ? &right->completions[b.at[i]] : NULL;

		if (l && r && same_completion(l, r))
			continue;
		sides->completions[0] = l;
		sides->completions[1] = r;
		return differ(sides, VD_COMPLETION, "completion %u: left %s; right %s", i,
			      describe(l, of_a, sizeof(of_a)), describe(r, of_b, sizeof(of_b)));
	}
	return true;
}

/* --- events --- */

static int object_of(const struct vd_event *event)
{
	return (int)event->kind * VD_SLOTS_MAX + event->slot;
}

/* True if the event repeats one that may come any number of times: an overrun in one step, or a
 * QP's last WQE. Source: ibv_get_async_event(3). */
static bool is_repeated(const struct vd_record *record, unsigned int at)
{
	const struct vd_event *event = &record->events[at];

	if (event->type != IBV_EVENT_CQ_ERR && event->type != IBV_EVENT_QP_LAST_WQE_REACHED)
		return false;
	for (unsigned int i = 0; i < at; i++)
		if ((record->events[i].step == event->step || event->type != IBV_EVENT_CQ_ERR) &&
		    record->events[i].type == event->type &&
		    object_of(&record->events[i]) == object_of(event))
			return true;
	return false;
}

static void view_events(const struct vd_record *record, unsigned int step, struct view *view)
{
	view->count = 0;
	for (unsigned int i = 0; i < record->event_count; i++)
		if (record->events[i].step == step && !is_repeated(record, i))
			insert(view, i, object_of(&record->events[i]));
}

static const char *describe_event(const struct vd_event *event, char *buffer, size_t size_bytes)
{
	if (!event)
		return "none";
	snprintf(buffer, size_bytes, "%s of %s%d", vd_event_name(event->type),
		 vd_kinds[event->kind].name, event->slot);
	return buffer;
}

static bool same_events(struct vd_sides *sides)
{
	const struct vd_record *left = sides->left, *right = sides->right;
	struct view a, b;
	char of_a[64], of_b[64];

	view_events(left, sides->step, &a);
	view_events(right, sides->step, &b);
	for (unsigned int i = 0; i < a.count || i < b.count; i++) {
		const struct vd_event *l = i < a.count ? &left->events[a.at[i]] : NULL;
		const struct vd_event *r = i < b.count ? &right->events[b.at[i]] : NULL;

		if (l && r && l->type == r->type && object_of(l) == object_of(r))
			continue;
		sides->events[0] = l;
		sides->events[1] = r;
		return differ(sides, VD_EVENT, "event: left %s; right %s",
			      describe_event(l, of_a, sizeof(of_a)),
			      describe_event(r, of_b, sizeof(of_b)));
	}
	return true;
}

/* --- states and memory --- */

static bool same_states(const struct vd_sides *sides)
{
	const uint8_t *left = sides->left->outcomes[sides->step].states;
	const uint8_t *right = sides->right->outcomes[sides->step].states;

	for (unsigned int i = 0; i < VD_SLOTS_MAX; i++)
		if (left[i] != right[i])
			return differ(sides, VD_STATE, "state of qp%u: left %s; right %s", i,
				      vb_qp_state_str(left[i]), vb_qp_state_str(right[i]));
	return true;
}

static bool same_memory(const struct vd_sides *sides)
{
	const uint64_t *left = sides->left->outcomes[sides->step].memory;
	const uint64_t *right = sides->right->outcomes[sides->step].memory;

	for (unsigned int i = 0; i < VD_REGIONS; i++)
		if (left[i] != right[i])
			return differ(sides, VD_MEMORY,
				      "memory of region %u: left and right differ", i);
	return true;
}

enum vd_verdict vd_compare_step(const struct vd_program *program, unsigned int step,
				const struct vd_record *left, const struct vd_record *right,
				struct vd_difference *difference)
{
	struct vd_difference unused;
	struct vd_sides sides = {program, step, left, right, difference ? difference : &unused};

	if (same_answers(&sides) && same_completions(&sides) && same_events(&sides) &&
	    same_states(&sides) && same_memory(&sides))
		return VD_SAME;
	return vd_is_open(&sides) ? VD_OPEN : VD_DIFFERENT;
}

enum vd_verdict vd_compare(const struct vd_program *program, const struct vd_record *left,
			   const struct vd_record *right, struct vd_difference *difference)
{
	unsigned int both =
		left->step_count < right->step_count ? left->step_count : right->step_count;

	for (unsigned int i = 0; i < both; i++) {
		enum vd_verdict verdict = vd_compare_step(program, i, left, right, difference);

		if (verdict != VD_SAME)
			return verdict;
	}
	return VD_SAME;
}
