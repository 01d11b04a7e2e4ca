/* SPDX-License-Identifier: MIT */
/*
 * The slots of a channel: the works that its QP holds and the results that wait to be taken.
 */
#include "src/connect/channel/channel.h"

#include "src/connect/object.h"

#include <arpa/inet.h>

const char *operation_name(enum vb_operation operation)
{
	static const char *const names[VB_OPERATIONS] = {
		[VB_SEND] = "send",
		[VB_RECEIVE] = "receive",
		[VB_WRITE] = "write",
		[VB_READ] = "read",
		[VB_COMPARE_SWAP] = "compare_swap",
		[VB_FETCH_ADD] = "fetch_add",
	};

	return (unsigned int)operation < VB_OPERATIONS ? names[operation] : "?";
}

int work_failed(const struct vb_result *result, uint32_t qpn)
{
	return fail(EIO, "%s on QP 0x%x: %s", operation_name(result->operation), qpn,
		    vb_wc_status_str(result->status));
}

static void scope_remove(struct slot *slot)
{
	struct vb_scope *scope = slot->scope;

	if (slot->scope_prev)
		slot->scope_prev->scope_next = slot->scope_next;
	else
		scope->works = slot->scope_next;
	if (slot->scope_next)
		slot->scope_next->scope_prev = slot->scope_prev;
	slot->channel->scoped--;
	slot->scope = NULL;
}

void scope_add(struct vb_scope *scope, struct slot *slot)
{
	slot->scope = scope;
	slot->scope_prev = NULL;
	slot->scope_next = scope->works;
	if (slot->scope_next)
		slot->scope_next->scope_prev = slot;
	scope->works = slot;
	scope->pending++;
	slot->channel->scoped++;
}

void slot_free(struct slot *slot)
{
	if (slot->scope)
		scope_remove(slot);
	handle_give_back(&slot->channel->slots, &slot->row);
}

struct slot *slot_of(struct vb_work work)
{
	return work.channel ? handle_find(&work.channel->slots, work.slot, work.generation) : NULL;
}

void slot_hold_buffers(struct slot *slot, enum hold change)
{
	for (unsigned int i = 0; i < slot->slice_count; i++)
		region_hold(slot->slices[i].region, slot->slices[i].offset_bytes,
			    slot->slices[i].length_bytes, slot->exclusive, change);
}

static void note_failure(struct slot *slot)
{
	struct vb_scope *scope = slot->scope;

	if (!scope) {
		slot->channel->failures += slot->detached;
		return;
	}
	if (!scope->failed++) {
		scope->first_failure = slot->result;
		scope->failed_qpn = slot->channel->endpoint.qpn;
	}
}

void slot_complete(struct slot *slot, const struct ibv_wc *wc)
{
	struct vb_channel *channel = slot->channel;
	bool good = wc->status == IBV_WC_SUCCESS;

	slot->posted = false;
	channel->pending--;
	channel->group->pending--;
	slot_hold_buffers(slot, REGION_RELEASE);
	slot->result.status = wc->status;
	if (good && slot->result.operation == VB_RECEIVE) {
		slot->result.length_bytes = wc->byte_len;
		slot->result.has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
		slot->result.imm = slot->result.has_imm ? ntohl(wc->imm_data) : 0;
	}
	if (slot->scope)
		slot->scope->pending--;
	if (!good)
		note_failure(slot);
	if (slot->detached)
		slot_free(slot);
}

int slot_result(struct slot *slot, struct vb_result *result)
{
	struct vb_result own = slot->result;

	if (slot->posted)
		return EAGAIN;
	slot_free(slot);
	if (result)
		*result = own;
	return own.status == IBV_WC_SUCCESS ? 0 : work_failed(&own, slot->channel->endpoint.qpn);
}
