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

__attribute__((noinline, cold)) bool work_queue_grow(struct work_queue *queue, uint32_t sge_count)
{
	const bool full = work_count(queue) == queue->capacity;

	return grow(queue, full ? 2 * queue->capacity : queue->capacity,
		    sge_count > queue->sges_each ? sge_count : queue->sges_each);
}

void work_take_back(struct work_queue *queue, uint64_t count)
{
	queue->tail -= count < work_count(queue) ? count : work_count(queue);
}

uint64_t work_find(const struct work_queue *queue, uint64_t wr_id, bool failed)
{
	for (uint64_t i = 0; i < work_count(queue); i++)
		if (work_ends(work_at(queue, i), wr_id, failed))
			return i;
	return UINT64_MAX;
}
