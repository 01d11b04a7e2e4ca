/* SPDX-License-Identifier: MIT */
/* The rings to other processes, and the owners of QPNs. */
#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_private.h"

#include <stdlib.h>

void shared_out_close(struct shared *shared, struct outward *out)
{
	shared->relieved |= out->waiting;
	shared_stop_waiting(shared, out);
	if (!areas_release(&shared->segment, &out->area, AREA_PRODUCER, SEGMENT_SEND_PATIENCE_NS))
		areas_unmap(&out->area);
	free(out->routes);
	*out = (struct outward){.touched = out->touched};
}

/* The caller holds the lock. */
static bool make_out(struct shared *shared, struct outward *out, segment_id id)
{
	struct routes *routes = calloc(1, sizeof(*routes));

	out->barred = false;
	if (!routes || !areas_take(&shared->segment, id, &out->area)) {
		free(routes);
		out->retry_ns = segment_now_ns() + SHARED_RETRY_NS;
		return false;
	}
	*out = (struct outward){
		.id = id,
		.routes = routes,
		.touched = out->touched,
		.waiting = out->waiting,
		.area = out->area,
		.ring = {.memory = out->area.memory, .capacity = out->area.capacity}};
	return true;
}

static bool open_out(struct shared *shared, struct outward *out, segment_id id,
		     uint64_t patience_ns)
{
	bool made;

	if (out->retry_ns && segment_now_ns() < out->retry_ns)
		return false;
	out->barred = !segment_lock(&shared->segment, patience_ns);
	if (out->barred) {
		if (out->stalled)
			out->retry_ns = segment_now_ns() + SHARED_RETRY_NS;
		return false;
	}
	made = make_out(shared, out, id);
	segment_unlock(&shared->segment);
	return made;
}

static struct outward *reopen_out(struct shared *shared, struct outward *out, segment_id id,
				  uint64_t patience_ns)
{
	if (out->id)
		shared_out_close(shared, out);
	return open_out(shared, out, id, patience_ns) ? out : NULL;
}

struct outward *shared_out_to(struct shared *shared, segment_id id)
{
	struct outward *out = shared_out_at(shared, id);

	return out->id == id ? out : reopen_out(shared, out, id, SEGMENT_SEND_PATIENCE_NS);
}

struct outward *shared_out_soon(struct shared *shared, segment_id id)
{
	struct outward *out = shared_out_at(shared, id);

	return out->id == id ? out : reopen_out(shared, out, id, SHARED_BARRED_PATIENCE_NS);
}

void shared_out_open_barred(struct shared *shared)
{
	if (!segment_lock(&shared->segment, SHARED_BARRED_PATIENCE_NS))
		return;
	for (uint32_t i = 0; i < shared->waiting; i++) {
		struct outward *out = &shared->out[shared->waited[i]];

		if (out->barred)
			make_out(shared, out, places_id(&shared->segment, shared->waited[i]));
	}
	segment_unlock(&shared->segment);
}

static segment_id look_up_owner(struct shared *shared, struct known_owner *known, uint32_t device,
				uint32_t block)
{
	const segment_id id = blocks_owner_at(&shared->segment, device, SIM_NUMBERS_QP, block,
					      &known->entry, &known->value);

	known->id = id;
	known->device = device;
	known->block = block;
	return id == shared->segment.id ? 0 : id;
}

static uint32_t block_of(const struct sim_device *device, uint32_t qpn)
{
	return sim_table_place(&device->qps, qpn) / SIM_BLOCK_PLACES;
}

/* A remembered owner of a block is valid while the block's entry is the same and the owner has not been
 * buried. */
segment_id shared_qpn_owner(struct shared *shared, const struct sim_device *device, uint32_t qpn)
{
	const uint32_t block = block_of(device, qpn);
	struct known_owner *known = &shared->owners[block % SHARED_OWNERS_KNOWN];

	if (known->id && known->block == block && known->device == device->index &&
	    atomic_load_explicit(known->entry, memory_order_acquire) == known->value &&
	    places_id(&shared->segment, segment_id_place(known->id)) == known->id)
		return known->id == shared->segment.id ? 0 : known->id;
	return look_up_owner(shared, known, device->index, block);
}

const struct known_owner *shared_known_owner(const struct shared *shared,
					     const struct sim_device *device, uint32_t qpn)
{
	return &shared->owners[block_of(device, qpn) % SHARED_OWNERS_KNOWN];
}
