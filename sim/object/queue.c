/* SPDX-License-Identifier: MIT */
#include "sim/object/queue.h"

#include <errno.h>
#include <stdlib.h>

#define SLOT_ALIGN 16u

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

uint32_t sim_queue_rounded(uint32_t max_wr)
{
	uint32_t slots = 1;

	while (slots <= max_wr)
		slots *= 2;
	return slots - 1;
}

int sim_queue_init(struct sim_queue *queue, uint32_t header_bytes, uint32_t room_bytes,
		   uint32_t max_wr, uint32_t max_sge)
{
	uint32_t capacity = 1;

	if (room_bytes < max_sge * sizeof(struct ibv_sge))
		room_bytes = (uint32_t)(max_sge * sizeof(struct ibv_sge));
	while (capacity < max_wr)
		capacity *= 2;
	*queue = (struct sim_queue){
		.stride = round_up(header_bytes + room_bytes, SLOT_ALIGN),
		.mask = capacity - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
	};
	if (max_wr == 0)
		return 0;
	queue->slots = malloc((size_t)capacity * queue->stride);
	return queue->slots ? 0 : ENOMEM;
}
