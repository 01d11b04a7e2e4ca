/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/channel.h"

#include "src/base/failure.h"
#include "src/connect/cq.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_CQE 64

/* A wr_id is slot, index and uses of the index, from the low bits up. */
#define SLOT_BITS  24
#define INDEX_BITS 24

static uint32_t index_of(uint64_t wr_id)
{
	return (uint32_t)(wr_id >> SLOT_BITS) & ((1u << INDEX_BITS) - 1);
}

uint64_t slot_wr_id(const struct slot *slot)
{
	return slot->channel->key << SLOT_BITS | (uint64_t)(slot - slot->channel->slots);
}

/* --- making and ending --- */

static int open_parts(struct vb_group *group, struct vb_device *device, struct ibv_pd *pd)
{
	group->device = device;
	group->owns_pd = !pd;
	group->pd = pd ? pd : vb_alloc_pd(device->context);
	if (!group->pd)
		return fail_because(errno, "group");
	group->cq = vb_cq_open(device, FIRST_CQE, group);
	if (group->cq)
		return 0;
	if (group->owns_pd)
		vb_dealloc_pd(group->pd);
	return errno;
}

struct vb_group *vb_group_open(struct vb_device *device, struct ibv_pd *pd)
{
	struct vb_group *group = calloc(1, sizeof(*group));
	int err;

	if (!group) {
		fail(ENOMEM, "group: no memory");
		return NULL;
	}
	err = open_parts(group, device, pd);
	if (!err)
		return group;
	free(group);
	errno = err;
	return NULL;
}

int vb_group_close(struct vb_group *group)
{
	int err;

	if (!group)
		return 0;
	if (group->channel_count)
		return fail(EBUSY, "group: %u channels are in it", group->channel_count);
	if (group->cq) {
		err = vb_cq_close(group->cq);
		if (err)
			return err;
		group->cq = NULL;
	}
	err = group->owns_pd ? vb_dealloc_pd(group->pd) : 0;
	if (err)
		return fail_because(err, "group: its protection domain");
	free(group->channels);
	free(group->uses);
	free(group);
	return 0;
}

struct ibv_pd *vb_group_pd(const struct vb_group *group)
{
	return group->pd;
}

struct vb_cq *vb_group_cq(const struct vb_group *group)
{
	return group->cq;
}

struct vb_device *vb_group_device(const struct vb_group *group)
{
	return group->device;
}

struct vb_region *vb_group_alloc(struct vb_group *group, size_t length_bytes)
{
	return vb_region_alloc(group->device, group->pd, length_bytes, VB_ACCESS_DEFAULT);
}

struct vb_region *vb_group_register(struct vb_group *group, void *addr, size_t length_bytes)
{
	return vb_region_register(group->device, group->pd, addr, length_bytes, VB_ACCESS_DEFAULT);
}

/* --- room for channels and their completions --- */

int group_reserve(struct vb_group *group, uint32_t works)
{
	uint64_t wanted = group->reserved + works;
	uint64_t have = (uint64_t)group->cq->cq->cqe;
	uint64_t max = (uint64_t)group->device->attr.max_cqe;
	uint64_t grown = have * 2 > wanted ? have * 2 : wanted;
	int err;

	if (wanted > max)
		return fail(ENOSPC, "group: a CQ for %llu works; the device allows %llu",
			    (unsigned long long)wanted, (unsigned long long)max);
	if (wanted > have) {
		err = vb_resize_cq(group->cq->cq, (int)(grown > max ? max : grown));
		if (err)
			return fail_because(err, "group: a CQ for %llu works",
					    (unsigned long long)wanted);
	}
	group->reserved = wanted;
	return 0;
}

void group_unreserve(struct vb_group *group, uint32_t works)
{
	group->reserved -= works;
}

static int grow(struct vb_group *group)
{
	uint32_t capacity = group->channel_capacity ? group->channel_capacity * 2 : 16;
	struct vb_channel **channels;
	uint16_t *uses;

	if (capacity > 1u << INDEX_BITS)
		return fail(ENOSPC, "group: %u channels", group->channel_count);
	channels = realloc(group->channels, capacity * sizeof(struct vb_channel *));
	if (channels)
		group->channels = channels;
	uses = realloc(group->uses, capacity * sizeof(*uses));
	if (uses)
		group->uses = uses;
	if (!channels || !uses)
		return fail(ENOMEM, "group: no memory for %u channels", capacity);
	for (uint32_t i = group->channel_capacity; i < capacity; i++) {
		channels[i] = NULL;
		uses[i] = 0;
	}
	group->channel_capacity = capacity;
	return 0;
}

int group_enter(struct vb_group *group, struct vb_channel *channel)
{
	uint32_t index = 0;
	int err;

	if (group->channel_count == group->channel_capacity) {
		index = group->channel_capacity;
		err = grow(group);
		if (err)
			return err;
	}
	while (group->channels[index])
		index++;
	group->channels[index] = channel;
	group->channel_count++;
	channel->key = (uint64_t)++group->uses[index] << INDEX_BITS | index;
	return 0;
}

void group_leave(struct vb_group *group, struct vb_channel *channel)
{
	group->channels[index_of(channel->key << SLOT_BITS)] = NULL;
	group->channel_count--;
}

/* --- completions --- */

static void deliver(struct vb_group *group, const struct ibv_wc *wc)
{
	uint32_t number = (uint32_t)wc->wr_id & ((1u << SLOT_BITS) - 1);
	uint32_t index = index_of(wc->wr_id);
	struct vb_channel *channel =
		index < group->channel_capacity ? group->channels[index] : NULL;

	/* Some adapters leave completions of a destroyed QP in its CQ. */
	if (!channel || channel->key != wc->wr_id >> SLOT_BITS || number >= channel->slot_count ||
	    channel->slots[number].state != SLOT_POSTED)
		return;
	slot_complete(&channel->slots[number], wc);
}

/* Hands on what was taken; a negative number is an errno. */
static int deliver_all(struct vb_group *group, int taken)
{
	for (int i = 0; i < taken; i++)
		deliver(group, &group->wc[i]);
	return taken < 0 ? -taken : 0;
}

int group_poll(struct vb_group *group)
{
	return deliver_all(group, vb_cq_poll(group->cq, group->wc, POLL_MAX));
}

int vb_group_progress(struct vb_group *group, uint64_t timeout_ns)
{
	return deliver_all(group, vb_cq_wait(group->cq, group->wc, POLL_MAX, timeout_ns));
}

int group_wait(struct vb_group *group, group_over *over, const void *arg, uint64_t timeout_ns)
{
	uint64_t deadline_ns;
	int err = 0;

	if (over(arg))
		return 0;
	deadline_ns = cq_deadline_ns(group->cq, timeout_ns);
	while (!err && !over(arg))
		err = vb_group_progress(group, cq_left_ns(group->cq, deadline_ns));
	return err;
}

unsigned int vb_group_pending(const struct vb_group *group)
{
	return group->pending;
}
