/* SPDX-License-Identifier: MIT */
#include "sim/object/queue.h"

#include "sim/object/device.h"

#include <errno.h>
#include <stdlib.h>

#define SLOT_ALIGN 16u

/* With the quirk sizes_are_odd a queue is larger by this, and by 1 more if that makes it odd. */
#define ODD_MORE 2

static uint32_t round_up(uint32_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

uint32_t sim_queue_rounded(uint32_t max_wr)
{
	return sim_queue_capacity(max_wr + 1) - 1;
}

uint32_t sim_queue_size(const struct sim_device *device, uint32_t asked, int limit)
{
	const uint32_t odd = (asked + ODD_MORE) | 1;

	if (device->quirks.queue_sizes_round_up)
		return sim_queue_rounded(asked);
	if (!device->quirks.sizes_are_odd || !asked)
		return asked;
	return odd < (uint32_t)limit ? odd : (uint32_t)limit;
}

uint32_t sim_queue_capacity(uint32_t count)
{
	uint32_t capacity = 1;

	while (capacity < count)
		capacity *= 2;
	return capacity;
}

int sim_queue_init(struct sim_queue *queue, uint32_t header_bytes, uint32_t room_bytes,
		   uint32_t max_wr, uint32_t max_sge)
{
	const uint32_t capacity = sim_queue_capacity(max_wr);

	if (room_bytes < max_sge * sizeof(struct ibv_sge))
		room_bytes = (uint32_t)(max_sge * sizeof(struct ibv_sge));
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
