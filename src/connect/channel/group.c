/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/channel.h"

#include "src/connect/cq.h"
#include "src/connect/object.h"

#define FIRST_CQE      64
#define FIRST_CHANNELS 16

/* --- making and ending --- */

struct vb_group *vb_group_open(struct vb_device *device, struct ibv_pd *pd)
{
	struct vb_group *group = object_new(sizeof(*group), "group");
	int err;

	if (!group)
		return NULL;
	group->device = device;
	group->owns_pd = !pd;
	group->pd = pd ? pd : vb_alloc_pd(device->context);
	if (!group->pd)
		return object_drop(group, fail_because(errno, "group"));
	group->cq = vb_cq_open(device, FIRST_CQE, group);
	if (group->cq)
		return group;
	err = errno;
	if (group->owns_pd)
		vb_dealloc_pd(group->pd);
	return object_drop(group, err);
}

int vb_group_close(struct vb_group *group)
{
	int err;

	if (!group)
		return 0;
	if (group->channels.taken)
		return fail(EBUSY, "group: %u channels are in it; close them first",
			    group->channels.taken);
	if (group->cq) {
		err = vb_cq_close(group->cq);
		if (err)
			return err;
		group->cq = NULL;
	}
	err = group->owns_pd ? vb_dealloc_pd(group->pd) : 0;
	if (err)
		return fail_because(err, "group: its protection domain");
	free(group->channels.rows);
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

int group_enter(struct vb_group *group, struct vb_channel *channel)
{
	struct handle_table *channels = &group->channels;
	uint32_t grown = channels->count ? channels->count * 2 : FIRST_CHANNELS;

	if (channels->taken == channels->count) {
		if (grown > 1u << OWNER_BITS)
			return fail(ENOSPC, "group: it has %u channels", channels->count);
		if (handle_table_resize(channels, grown, sizeof(struct handle_owner)))
			return fail(ENOMEM, "group: no memory for %u channels", grown);
	}
	channel->key = handle_own(channels, channel);
	return 0;
}

/* --- completions --- */

static void deliver(struct vb_group *group, const struct ibv_wc *wc)
{
	const struct vb_channel *channel = handle_owner_of(&group->channels, wc->wr_id);
	uint32_t number = handle_work_of(wc->wr_id);

	/* Some adapters leave completions of a destroyed QP in its CQ. */
	if (channel && number < channel->slots.count && slot_at(channel, number)->posted)
		slot_complete(slot_at(channel, number), wc);
}

/* Delivers the completions that were taken; a negative number is a negative errno. */
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
