/* SPDX-License-Identifier: MIT */
/*
 * Work queues: rings of slots of one size. Slots are numbered from 0 on; the numbers wrap at 2^32.
 */
#ifndef SIM_OBJECT_QUEUE_H
#define SIM_OBJECT_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;

struct sim_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /* bytes of all SGEs; UINT32_MAX if they are more */
	struct ibv_sge sge[];
};

struct sim_queue {
	uint8_t *slots;
	uint32_t stride;
	uint32_t mask;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t head;	/* the next slot to post */
	uint32_t tail;	/* the oldest send that has not completed, or the next receive to take */
	uint32_t freed; /* slots before this one may be posted again */
	bool shared;	/* true in an SRQ */
};

/* Returns the smallest 2^n - 1 that is at least max_wr: the size of a queue on devices that round
 * up. */
uint32_t sim_queue_rounded(uint32_t max_wr);

/* Returns the size that a queue of a device has if a program asks for a size up to `limit`. */
uint32_t sim_queue_size(const struct sim_device *device, uint32_t asked, int limit);

/* Returns the smallest power of two that is at least count. */
uint32_t sim_queue_capacity(uint32_t count);

/* Makes max_wr slots, each with header_bytes and room for max_sge SGEs or room_bytes of other data.
 * The owner frees queue->slots. ENOMEM. */
int sim_queue_init(struct sim_queue *queue, uint32_t header_bytes, uint32_t room_bytes,
		   uint32_t max_wr, uint32_t max_sge);

/* Returns the slot of a number. */
static inline void *sim_queue_slot(const struct sim_queue *queue, uint32_t count)
{
	return queue->slots + (size_t)(count & queue->mask) * queue->stride;
}

static inline bool sim_queue_full(const struct sim_queue *queue)
{
	return queue->head - queue->freed >= queue->max_wr;
}

/* Copies SGEs to `to` unless it is NULL, and returns the sum of their lengths. */
static inline uint64_t sim_take_sges(struct ibv_sge *to, const struct ibv_sge *sge, int num_sge)
{
	uint64_t length;

	if (num_sge == 0)
		return 0;
	/* Most requests have one SGE. */
	if (to)
		to[0] = sge[0];
	length = sge[0].length;
	for (int i = 1; i < num_sge; i++) {
		if (to)
			to[i] = sge[i];
		length += sge[i].length;
	}
	return length;
}

/* Fills a receive WQE from a WR. */
static inline void sim_recv_wqe_fill(struct sim_recv_wqe *wqe, const struct ibv_recv_wr *wr)
{
	uint64_t length = sim_take_sges(wqe->sge, wr->sg_list, wr->num_sge);

	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length;
}

#endif
