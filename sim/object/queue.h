/* SPDX-License-Identifier: MIT */
/*
 * Work queues: rings of slots of one size. The counts run on and wrap at 2^32.
 */
#ifndef SIM_OBJECT_QUEUE_H
#define SIM_OBJECT_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /* of all SGEs, at most UINT32_MAX */
	struct ibv_sge sge[];
};

struct sim_queue {
	uint8_t *slots;
	uint32_t stride;
	uint32_t mask;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t head;	/* posted */
	uint32_t tail;	/* oldest that has not ended (send), next to be taken (receive) */
	uint32_t freed; /* what the program has polled: slots before it may be used again */
	bool shared;	/* an SRQ's */
};

/* What a queue of so many WRs holds where sizes round up: 2^n - 1. */
uint32_t sim_queue_rounded(uint32_t max_wr);

/* Slots with room for a header and SGEs or room_bytes of other data. ENOMEM. */
int sim_queue_init(struct sim_queue *queue, uint32_t header_bytes, uint32_t room_bytes,
		   uint32_t max_wr, uint32_t max_sge);

static inline void *sim_queue_slot(const struct sim_queue *queue, uint32_t count)
{
	return queue->slots + (size_t)(count & queue->mask) * queue->stride;
}

static inline bool sim_queue_full(const struct sim_queue *queue)
{
	return queue->head - queue->freed >= queue->max_wr;
}

/* Keeps SGEs, if `to` is given; their lengths added up. */
static inline uint64_t sim_take_sges(struct ibv_sge *to, const struct ibv_sge *sge, int num_sge)
{
	uint64_t length;

	if (num_sge == 0)
		return 0;
	/* Mostly there is one. */
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
