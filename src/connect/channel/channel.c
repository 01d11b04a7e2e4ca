/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/channel.h"

#include "src/base/failure.h"
#include "src/connect/config.h"
#include "src/connect/region.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

/* A QP in ERR flushes at once; a device that does not within this time is dead. */
#define FLUSH_NS 1000000000ull

/* --- slots --- */

struct slot *slot_take(struct vb_channel *channel)
{
	struct slot *slot;

	if (channel->first_free == NO_SLOT)
		return NULL;
	slot = &channel->slots[channel->first_free];
	channel->first_free = slot->next_free;
	slot->generation++;
	slot->slice_count = 0;
	return slot;
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
	struct vb_channel *channel = slot->channel;

	if (slot->scope)
		scope_remove(slot);
	slot->state = SLOT_FREE;
	slot->next_free = channel->first_free;
	channel->first_free = (uint32_t)(slot - channel->slots);
}

struct slot *slot_of(struct vb_work work)
{
	struct slot *slot;

	if (!work.channel || work.slot >= work.channel->slot_count)
		return NULL;
	slot = &work.channel->slots[work.slot];
	return slot->state != SLOT_FREE && slot->generation == work.generation ? slot : NULL;
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

	slot->state = SLOT_DONE;
	channel->pending--;
	channel->group->pending--;
	for (unsigned int i = 0; i < slot->slice_count; i++)
		region_release(slot->slices[i].region, slot->slices[i].offset_bytes,
			       slot->slices[i].length_bytes, slot->exclusive);
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

/* --- making --- */

static int check_config(const struct vb_qp_config *config)
{
	if (config->type != IBV_QPT_RC && config->type != IBV_QPT_UC)
		return fail(EINVAL, "channel: type %s; it is RC or UC",
			    vb_qp_type_str((enum ibv_qp_type)config->type));
	if (config->srq)
		return fail(EINVAL, "channel: it has no SRQ");
	if (!config->max_send_wr && !config->max_recv_wr)
		return fail(EINVAL, "channel: no work fits into it");
	return 0;
}

static int make_slots(struct vb_channel *channel)
{
	uint32_t send = channel->max_send_sge, recv = channel->max_recv_sge;
	uint32_t most = send > recv ? send : recv;

	channel->slots = calloc(channel->slot_count, sizeof(*channel->slots));
	channel->slices = calloc((size_t)channel->slot_count * most + 1, sizeof(*channel->slices));
	channel->sges = calloc(most + 1, sizeof(*channel->sges));
	if (!channel->slots || !channel->slices || !channel->sges)
		return fail(ENOMEM, "channel: no memory for %u works", channel->slot_count);
	channel->first_free = NO_SLOT;
	for (uint32_t i = channel->slot_count; i-- > 0;) {
		channel->slots[i].channel = channel;
		channel->slots[i].slices = channel->slices + (size_t)i * most;
		channel->slots[i].next_free = channel->first_free;
		channel->first_free = i;
	}
	return 0;
}

static void free_memory(struct vb_channel *channel)
{
	free(channel->slots);
	free(channel->slices);
	free(channel->sges);
	free(channel);
}

static int make_qp(struct vb_channel *channel, const struct vb_qp_config *config)
{
	struct vb_group *group = channel->group;
	struct ibv_cq *cq = group->cq->cq;
	int err;

	err = group_reserve(group, channel->slot_count);
	if (err)
		return err;
	channel->prepared = vb_qp_prepare(group->device, group->pd, cq, cq, config);
	if (channel->prepared) {
		channel->endpoint = *vb_prepared_endpoint(channel->prepared);
		err = group_enter(group, channel);
		if (!err)
			return 0;
		vb_prepared_drop(channel->prepared);
	} else {
		err = errno;
	}
	group_unreserve(group, channel->slot_count);
	return err;
}

struct vb_channel *vb_channel_prepare(struct vb_group *group, const struct vb_qp_config *config)
{
	struct vb_channel *channel = calloc(1, sizeof(*channel));
	struct vb_qp_config defaults;
	int err;

	if (!channel) {
		fail(ENOMEM, "channel: no memory");
		return NULL;
	}
	vb_qp_config_init(&defaults);
	if (!config)
		config = &defaults;
	channel->group = group;
	channel->slot_count = config->max_send_wr + config->max_recv_wr;
	channel->max_send_sge = config->max_send_sge;
	channel->max_recv_sge = config->max_recv_sge;
	channel->max_inline_bytes = config->max_inline_data;
	err = check_config(config);
	if (!err)
		err = qp_config_check(config);
	if (!err)
		err = make_slots(channel);
	if (!err)
		err = make_qp(channel, config);
	if (!err)
		return channel;
	free_memory(channel);
	errno = err;
	return NULL;
}

const struct vb_endpoint *vb_channel_endpoint(const struct vb_channel *channel)
{
	return &channel->endpoint;
}

struct ibv_qp *vb_channel_qp(const struct vb_channel *channel)
{
	return channel->prepared ? vb_prepared_qp(channel->prepared) : channel->qp;
}

int vb_channel_connect(struct vb_channel *channel, const struct vb_endpoint *remote)
{
	struct ibv_qp *qp;

	if (!channel->prepared)
		return fail(EISCONN, "channel: QP 0x%x is connected, or was",
			    channel->endpoint.qpn);
	qp = vb_handshake(channel->prepared, remote);
	if (!qp)
		return errno;
	channel->prepared = NULL;
	channel->qp = qp;
	return 0;
}

int vb_channel_connect_pair(struct vb_channel *a, struct vb_channel *b)
{
	int err = vb_channel_connect(a, &b->endpoint);

	return err ? err : vb_channel_connect(b, &a->endpoint);
}

/* --- ending --- */

static bool is_idle(const void *arg)
{
	return ((const struct vb_channel *)arg)->pending == 0;
}

void channel_break(struct vb_channel *channel)
{
	const struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	channel->broken = true;
	if (!channel->qp || is_idle(channel))
		return;
	if (!vb_modify_qp(channel->qp, &attr, IBV_QP_STATE) &&
	    !group_wait(channel->group, is_idle, channel, FLUSH_NS))
		return;
	/* Without its QP, no work can touch memory any more. */
	if (!vb_destroy_qp(channel->qp))
		channel->qp = NULL;
	for (uint32_t i = 0; i < channel->slot_count; i++)
		if (channel->slots[i].state == SLOT_POSTED)
			slot_complete(&channel->slots[i], &flushed);
}

int vb_channel_close(struct vb_channel *channel)
{
	int err = 0;

	if (!channel)
		return 0;
	if (channel->scoped)
		return fail(EBUSY, "channel: QP 0x%x: a scope holds %u works of it",
			    channel->endpoint.qpn, channel->scoped);
	channel_break(channel);
	if (channel->prepared)
		err = vb_prepared_drop(channel->prepared);
	else if (channel->qp)
		err = vb_destroy_qp(channel->qp);
	if (err)
		fail_because(err, "channel: QP 0x%x", channel->endpoint.qpn);
	group_leave(channel->group, channel);
	group_unreserve(channel->group, channel->slot_count);
	free_memory(channel);
	return err;
}

int vb_channel_wait_idle(struct vb_channel *channel, uint64_t timeout_ns)
{
	return group_wait(channel->group, is_idle, channel, timeout_ns);
}

unsigned int vb_channel_pending(const struct vb_channel *channel)
{
	return channel->pending;
}

uint64_t vb_channel_failures(const struct vb_channel *channel)
{
	return channel->failures;
}
