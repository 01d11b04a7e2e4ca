/* SPDX-License-Identifier: MIT */
#include "sim/object/srq.h"

#include "sim/base/refuse.h"
#include "sim/object/cq.h"
#include "sim/object/device.h"
#include "sim/object/rules.h"
#include "sim/object/xrcd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void free_arrays(struct sim_srq *srq)
{
	free(srq->queue.slots);
	free(srq->posted);
	free(srq->spare);
}

/* Makes room for max_wr slots. The slots keep their numbers, which QPs and completions hold. */
static int grow(struct sim_srq *srq, uint32_t max_wr)
{
	struct sim_srq fresh = *srq;
	uint32_t capacity;

	if (sim_queue_init(&fresh.queue, sizeof(struct sim_recv_wqe), 0, max_wr,
			   srq->queue.max_sge))
		return sim_refuse_memory(srq->device->engine);
	capacity = fresh.queue.mask + 1;
	fresh.posted = malloc(capacity * sizeof(*fresh.posted));
	fresh.spare = malloc(capacity * sizeof(*fresh.spare));
	if (!fresh.posted || !fresh.spare) {
		free_arrays(&fresh);
		return sim_refuse_memory(srq->device->engine);
	}
	fresh.queue.shared = true;
	if (srq->made)
		memcpy(fresh.queue.slots, srq->queue.slots, (size_t)srq->made * fresh.queue.stride);
	while (srq->queue.tail + fresh.queue.head != srq->queue.head) {
		uint32_t at = srq->queue.tail + fresh.queue.head;

		fresh.posted[fresh.queue.head++] = srq->posted[at & srq->queue.mask];
	}
	fresh.spare_count = 0;
	for (fresh.made = max_wr; fresh.spare_count < max_wr - srq->made; fresh.spare_count++)
		fresh.spare[fresh.spare_count] = max_wr - 1 - fresh.spare_count;
	for (uint32_t i = 0; i < srq->spare_count; i++)
		fresh.spare[fresh.spare_count++] = srq->spare[i];
	free_arrays(srq);
	*srq = fresh;
	return 0;
}

static int refuse(const struct sim_device *device, enum vb_reason reason, uint64_t value,
		  uint64_t limit)
{
	return sim_refuse(device->engine, (struct vb_why){reason, {value, limit}});
}

static int check_max_wr(const struct sim_device *device, uint32_t max_wr)
{
	const uint32_t limit = (uint32_t)device->profile->limits.max_srq_wr;

	return max_wr >= 1 && max_wr <= limit ? 0
					      : refuse(device, VB_WHY_SRQ_MAX_WR, max_wr, limit);
}

static int check_attr(const struct sim_device *device, const struct ibv_srq_attr *attr)
{
	const uint32_t limit = (uint32_t)device->profile->limits.max_srq_sge;

	if (attr->max_sge > limit)
		return refuse(device, VB_WHY_SRQ_MAX_SGE, attr->max_sge, limit);
	return check_max_wr(device, attr->max_wr);
}

int sim_srq_create(struct sim_device *device, struct sim_srq_init *init, struct sim_srq **out)
{
	struct sim_srq *srq;
	uint32_t max_wr;
	int err = check_attr(device, &init->attr);

	if (err)
		return err;
	if (init->attr.max_sge == 0)
		init->attr.max_sge = 1;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return sim_refuse_memory(device->engine);
	srq->device = device;
	srq->queue.max_sge = init->attr.max_sge;
	max_wr = sim_queue_size(device, init->attr.max_wr, device->profile->limits.max_srq_wr);
	err = grow(srq, max_wr);
	if (err) {
		free(srq);
		return err;
	}
	if (sim_device_obeys(device, SIM_RULE_REAL_SIZES))
		init->attr.max_wr = max_wr;
	err = sim_table_insert(&device->srqs, srq, &srq->number);
	if (err) {
		free_arrays(srq);
		free(srq);
		if (err == ENOSPC)
			return sim_refuse_numbers(device->engine, "SRQ numbers");
		if (!sim_table_is_full(&device->srqs))
			return sim_refuse_memory(device->engine);
		return sim_refuse_limit(device->engine, "max_srq", device->profile->limits.max_srq);
	}
	srq->user = init->user;
	srq->pd = init->pd;
	srq->reach = (struct sim_reach){.device = device, .pd = init->pd};
	srq->xrcd = init->xrcd;
	srq->cq = init->cq;
	if (srq->cq)
		srq->cq->users++;
	if (srq->xrcd)
		srq->xrcd->users++;
	*out = srq;
	return 0;
}

static void end_if_done(struct sim_srq *srq)
{
	if (!srq->gone || srq->unpolled)
		return;
	free_arrays(srq);
	free(srq);
}

int sim_srq_destroy(struct sim_srq *srq)
{
	if (srq->users)
		return refuse(srq->device, VB_WHY_SRQ_BUSY, srq->users, 0);
	sim_table_remove(&srq->device->srqs, srq->number);
	if (srq->cq)
		srq->cq->users--;
	if (srq->xrcd)
		srq->xrcd->users--;
	srq->gone = true;
	end_if_done(srq);
	return 0;
}

static int resize(struct sim_srq *srq, uint32_t max_wr)
{
	const struct ibv_device_attr *limits = &srq->device->profile->limits;
	int err;

	if (!(limits->device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		return refuse(srq->device, VB_WHY_SRQ_RESIZE_NONE, 0, 0);
	err = check_max_wr(srq->device, max_wr);
	if (err)
		return err;
	max_wr = sim_queue_size(srq->device, max_wr, limits->max_srq_wr);
	if (max_wr < sim_srq_count(srq))
		return refuse(srq->device, VB_WHY_SRQ_RESIZE_BELOW, sim_srq_count(srq), max_wr);
	if (max_wr > srq->made)
		err = grow(srq, max_wr);
	if (!err)
		srq->queue.max_wr = max_wr;
	return err;
}

int sim_srq_modify(struct sim_srq *srq, const struct ibv_srq_attr *attr, int attr_mask)
{
	uint32_t max_wr = attr_mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->queue.max_wr;
	uint32_t limit = attr_mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	int err;

	if (attr_mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) &&
	    sim_device_obeys(srq->device, SIM_RULE_SRQ_BITS_KNOWN))
		return refuse(srq->device, VB_WHY_SRQ_MASK, (unsigned int)attr_mask, 0);
	if (limit > max_wr)
		return refuse(srq->device, VB_WHY_SRQ_LIMIT, limit, max_wr);
	if (attr_mask & IBV_SRQ_MAX_WR) {
		err = resize(srq, attr->max_wr);
		if (err)
			return err;
	}
	srq->limit = limit;
	return 0;
}

void sim_srq_query(const struct sim_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = (struct ibv_srq_attr){
		.max_wr = srq->queue.max_wr,
		.max_sge = srq->queue.max_sge,
		.srq_limit = srq->limit,
	};
}

static int post_one(struct sim_srq *srq, const struct ibv_recv_wr *wr)
{
	uint32_t slot;

	if (srq->made - srq->spare_count >= srq->queue.max_wr)
		return refuse(srq->device, VB_WHY_SRQ_FULL, srq->queue.max_wr, 0);
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > srq->queue.max_sge)
		return refuse(srq->device, VB_WHY_SRQ_SGES, (uint64_t)wr->num_sge,
			      srq->queue.max_sge);
	slot = srq->spare[--srq->spare_count];
	sim_recv_wqe_fill(sim_queue_slot(&srq->queue, slot), wr);
	srq->posted[srq->queue.head++ & srq->queue.mask] = slot;
	return 0;
}

int sim_srq_post(struct sim_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		int err = post_one(srq, wr);

		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

struct sim_recv_wqe *sim_srq_peek(const struct sim_srq *srq)
{
	const struct sim_queue *queue = &srq->queue;

	if (queue->head == queue->tail)
		return NULL;
	return sim_queue_slot(queue, srq->posted[queue->tail & queue->mask]);
}

uint32_t sim_srq_take(struct sim_srq *srq)
{
	const struct sim_host *host = &srq->device->engine->host;
	uint32_t slot = srq->posted[srq->queue.tail++ & srq->queue.mask];
	const struct sim_event event = {.type = IBV_EVENT_SRQ_LIMIT_REACHED, .element = srq->user};

	if (sim_srq_count(srq) < srq->limit) {
		srq->limit = 0;
		host->async_event(host->arg, srq->device, &event);
	}
	return slot;
}

void sim_srq_release(struct sim_srq *srq, uint32_t slot)
{
	srq->spare[srq->spare_count++] = slot;
}

void sim_srq_retire(struct sim_srq *srq, uint32_t slot)
{
	sim_srq_release(srq, slot);
	srq->unpolled--;
	end_if_done(srq);
}
