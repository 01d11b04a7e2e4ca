/* SPDX-License-Identifier: MIT */
#include "src/check/work.h"

#include <stdlib.h>
#include <string.h>

#define WORKS_MIN 16

bool work_queue_init(struct work_queue *queue, uint32_t works, uint32_t sges_each)
{
	*queue = (struct work_queue){.capacity = WORKS_MIN, .sges_each = sges_each ? sges_each : 1};
	while (queue->capacity < works)
		queue->capacity *= 2;
	queue->works = calloc(queue->capacity, sizeof(*queue->works));
	queue->sges = calloc((size_t)queue->capacity * queue->sges_each, sizeof(*queue->sges));
	if (queue->works && queue->sges)
		return true;
	work_queue_free(queue);
	return false;
}

void work_queue_free(struct work_queue *queue)
{
	free(queue->works);
	free(queue->sges);
	*queue = (struct work_queue){0};
}

static struct work_sge *sges_of(const struct work_queue *queue, uint64_t number)
{
	return &queue->sges[(number & (queue->capacity - 1)) * queue->sges_each];
}

/* Moves the works to a larger ring. */
static bool grow(struct work_queue *queue, uint32_t works, uint32_t sges_each)
{
	struct work_queue smaller = *queue, larger;

	if (!work_queue_init(&larger, works, sges_each))
		return false;
	for (uint64_t i = queue->head; i < queue->tail; i++) {
		const struct work *from = work_of(queue, i);
		struct work *to = work_of(&larger, i);

		*to = *from;
		to->sges = sges_of(&larger, i);
		memcpy(to->sges, from->sges, from->sge_count * sizeof(*to->sges));
	}
	larger.head = queue->head;
	larger.tail = queue->tail;
	larger.chain = queue->chain;
	*queue = larger;
	work_queue_free(&smaller);
	return true;
}

struct work *work_add(struct work_queue *queue, uint32_t sge_count)
{
	const bool full = work_count(queue) == queue->capacity;
	struct work *work;

	if ((full || sge_count > queue->sges_each) &&
	    !grow(queue, full ? 2 * queue->capacity : queue->capacity,
		  sge_count > queue->sges_each ? sge_count : queue->sges_each))
		return NULL;
	work = work_of(queue, queue->tail);
	*work = (struct work){
		.sge_count = sge_count,
		.sges = sges_of(queue, queue->tail),
	};
	queue->tail++;
	return work;
}

void work_take_back(struct work_queue *queue, uint64_t count)
{
	queue->tail -= count < work_count(queue) ? count : work_count(queue);
}

uint64_t work_find(const struct work_queue *queue, uint64_t wr_id, bool failed)
{
	for (uint64_t i = 0; i < work_count(queue); i++) {
		const struct work *work = work_at(queue, i);

		if (work->wr_id == wr_id && !work->done && (work->signalled || failed))
			return i;
	}
	return UINT64_MAX;
}

uint64_t work_length_bytes(const struct work *work)
{
	uint64_t length_bytes = 0;

	for (uint32_t i = 0; i < work->sge_count; i++)
		length_bytes += work->sges[i].sge.length;
	return length_bytes;
}
