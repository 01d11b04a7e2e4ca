/* SPDX-License-Identifier: MIT */
/*
 * Results of works, scopes, and works on many channels.
 */
#include "src/connect/channel/channel.h"

#include "src/base/failure.h"
#include "src/connect/cq.h"

#include <errno.h>
#include <pthread.h>

/* --- results --- */

static int stale(struct vb_work work)
{
	if (!work.channel)
		return fail(ESTALE, "work: the handle is empty: nothing was posted with it");
	return fail(ESTALE, "work %u.%u of QP 0x%x: its result was taken", work.slot,
		    work.generation, work.channel->endpoint.qpn);
}

int vb_work_poll(struct vb_work work, struct vb_result *result)
{
	struct slot *slot = slot_of(work);
	int err = 0;

	if (!slot)
		return stale(work);
	if (slot->posted)
		err = group_poll(work.channel->group);
	return err ? err : slot_result(slot, result);
}

static bool is_done(const void *arg)
{
	return !((const struct slot *)arg)->posted;
}

int vb_work_wait(struct vb_work work, uint64_t timeout_ns, struct vb_result *result)
{
	struct slot *slot = slot_of(work);
	int err;

	if (!slot)
		return stale(work);
	err = group_wait(work.channel->group, is_done, slot, timeout_ns);
	return err ? err : slot_result(slot, result);
}

/* Waits until all works have ended. */
static int wait_for_each(const struct vb_work *works, unsigned int count, uint64_t timeout_ns)
{
	uint64_t deadline_ns = 0;
	int err = 0;

	for (unsigned int i = 0; i < count; i++)
		if (!slot_of(works[i]))
			return stale(works[i]);
	if (count)
		deadline_ns = cq_deadline_ns(works[0].channel->group->cq, timeout_ns);
	for (unsigned int i = 0; i < count && !err; i++) {
		struct vb_group *group = works[i].channel->group;

		err = group_wait(group, is_done, slot_of(works[i]),
				 cq_left_ns(group->cq, deadline_ns));
	}
	return err;
}

int vb_work_wait_all(const struct vb_work *works, unsigned int count, uint64_t timeout_ns,
		     struct vb_result *results)
{
	int err = wait_for_each(works, count, timeout_ns);
	struct vb_result one, bad;
	uint32_t bad_qpn = 0;

	if (err)
		return err;
	for (unsigned int i = 0; i < count; i++) {
		struct slot *slot = slot_of(works[i]);

		/* works may have the same handle twice. */
		if (!slot)
			return stale(works[i]);
		if (slot_result(slot, &one) && !bad_qpn) {
			bad = one;
			bad_qpn = works[i].channel->endpoint.qpn;
		}
		if (results)
			results[i] = one;
	}
	return bad_qpn ? work_failed(&bad, bad_qpn) : 0;
}

/* --- scopes --- */

void vb_scope_begin(struct vb_scope *scope, struct vb_group *group)
{
	*scope = (struct vb_scope){.group = group};
}

static bool is_over(const void *arg)
{
	return ((const struct vb_scope *)arg)->pending == 0;
}

static void break_channels(struct vb_scope *scope)
{
	struct slot *slot = scope->works;

	/* channel_break() may remove any slot from the list. */
	while (slot) {
		if (slot->posted) {
			channel_break(slot->channel);
			slot = scope->works;
		} else {
			slot = slot->scope_next;
		}
	}
}

static void drop_works(struct vb_scope *scope)
{
	while (scope->works)
		slot_free(scope->works);
	scope->group = NULL;
}

/* The scope may be on the stack of the thread that is cancelled. */
static void end_cancelled(void *scope)
{
	break_channels(scope);
	drop_works(scope);
}

static int wait_for_scope(struct vb_scope *scope, uint64_t timeout_ns)
{
	int err;

	pthread_cleanup_push(end_cancelled, scope);
	err = group_wait(scope->group, is_over, scope, timeout_ns);
	pthread_cleanup_pop(false);
	return err;
}

int vb_scope_end(struct vb_scope *scope, uint64_t timeout_ns)
{
	unsigned int left = 0;
	int err;

	if (!scope->group)
		return 0;
	err = wait_for_scope(scope, timeout_ns);
	if (err) {
		left = scope->pending;
		break_channels(scope);
	}
	drop_works(scope);
	if (err)
		return fail(err, "scope: %u works did not end in time; their channels are broken",
			    left);
	return scope->failed ? work_failed(&scope->first_failure, scope->failed_qpn) : 0;
}

void vb_scope_cleanup(struct vb_scope *scope)
{
	vb_scope_end(scope, VB_FOREVER);
}

/* --- many peers --- */

int vb_post_each(struct vb_channel *const *channels, const struct vb_request *requests,
		 unsigned int count, struct vb_work *works, unsigned int *posted)
{
	unsigned int done = 0;
	int err = 0;

	while (done < count && !err) {
		err = vb_channel_post(channels[done], &requests[done], works ? &works[done] : NULL);
		done += !err;
	}
	if (posted)
		*posted = done;
	return err;
}

/* Posts piece i of the slice on channel i; if pieces is 1, the whole slice on each channel. */
static int post_pieces(struct vb_channel *const *channels, unsigned int count,
		       enum vb_operation operation, const struct vb_slice *slice,
		       unsigned int pieces, struct vb_scope *scope)
{
	struct vb_slice piece = *slice;
	const struct vb_request request = {
		.operation = operation, .slices = &piece, .slice_count = 1, .scope = scope};
	int err = 0;

	if (!pieces || slice->length_bytes % pieces)
		return fail(EINVAL, "%s: %u bytes cannot be cut into %u equal pieces",
			    operation_name(operation), slice->length_bytes, pieces);
	piece.length_bytes = slice->length_bytes / pieces;
	for (unsigned int i = 0; i < count && !err; i++) {
		err = vb_channel_post(channels[i], &request, NULL);
		if (pieces > 1)
			piece.offset_bytes += piece.length_bytes;
	}
	return err;
}

int vb_scatter(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	       struct vb_scope *scope)
{
	return post_pieces(channels, count, VB_SEND, slice, count, scope);
}

int vb_gather(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	      struct vb_scope *scope)
{
	return post_pieces(channels, count, VB_RECEIVE, slice, count, scope);
}

int vb_multicast(struct vb_channel *const *channels, unsigned int count,
		 const struct vb_slice *slice, struct vb_scope *scope)
{
	return post_pieces(channels, count, VB_SEND, slice, 1, scope);
}
