/* SPDX-License-Identifier: MIT */
/*
 * Payloads: from SGEs to checked pieces of memory, and from pieces to pieces.
 */
#ifndef SIM_OBJECT_PAYLOAD_H
#define SIM_OBJECT_PAYLOAD_H

#include "sim/base/core.h"
#include "sim/object/device.h"
#include "sim/object/memory.h"
#include "sim/wire/packet.h"

/*
 * Host memory behind a local or remote range, checked: key, PD, rights (all of access), bounds.
 * NULL where it may not be touched. A range of 0 bytes is not to be asked for.
 */
static inline void *sim_memory_at(struct sim_reach *reach, enum sim_key_kind kind, uint32_t key,
				  uint64_t addr, uint64_t length, int access)
{
	if ((reach->key != key || reach->epoch != reach->device->memory_epoch) &&
	    !sim_reach_find(reach, kind, key))
		return NULL;
	return sim_mr_at(reach->mr, addr, length, access);
}

/* sim_gather() in its general form. */
int sim_gather_pieces(struct sim_reach *reach, const struct ibv_sge *sge, unsigned int n,
		      uint32_t offset, uint32_t bytes, int access, struct sim_span *spans);

/*
 * Checks SGEs [0, n) of a work request for its local access (0: read) and fills spans for
 * [offset, offset + bytes) of the message. Returns the number of spans; -1 for a protection error.
 */
__attribute__((always_inline)) static inline int sim_gather(struct sim_reach *reach,
							    const struct ibv_sge *sge,
							    unsigned int n, uint32_t offset,
							    uint32_t bytes, int access,
							    struct sim_span *spans)
{
	/* Mostly one SGE has it all. */
	if (n == 1 && bytes && (uint64_t)offset + bytes <= sge->length) {
		spans->base = sim_memory_at(reach, SIM_KEY_LOCAL, sge->lkey, sge->addr + offset,
					    bytes, access);
		spans->length_bytes = bytes;
		return spans->base ? 1 : -1;
	}
	return sim_gather_pieces(reach, sge, n, offset, bytes, access, spans);
}

/* sim_copy_spans() in its general form. */
int sim_copy_pieces(struct sim_device *device, const struct sim_span *from, unsigned int from_count,
		    const struct sim_span *to, unsigned int to_count);

/*
 * Copies pieces to pieces, as many bytes as `from` has; nonzero for a fault. Mostly there is one
 * of each.
 */
static inline int sim_copy_spans(struct sim_device *device, const struct sim_span *from,
				 unsigned int from_count, const struct sim_span *to,
				 unsigned int to_count)
{
	if (from_count != 1 || to_count != 1)
		return sim_copy_pieces(device, from, from_count, to, to_count);
	if (device->engine->host.memory.copy((void *)to->base, from->base, from->length_bytes) == 0)
		return 0;
	device->counters.guarded_faults++;
	return -1;
}

#endif
