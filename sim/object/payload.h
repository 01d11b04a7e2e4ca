/* SPDX-License-Identifier: MIT */
/*
 * Payloads: checks SGEs, turns them into spans of memory, and copies spans to spans.
 */
#ifndef SIM_OBJECT_PAYLOAD_H
#define SIM_OBJECT_PAYLOAD_H

#include "sim/base/core.h"
#include "sim/object/device.h"
#include "sim/object/memory.h"
#include "sim/wire/packet.h"

/*
 * Returns the memory of a local or remote range after checking key, PD, QP, rights (all of
 * `access`) and bounds; NULL if a check fails. length is not 0.
 */
static inline void *sim_memory_at(struct sim_reach *reach, enum sim_key_kind kind, uint32_t key,
				  uint64_t addr, uint64_t length, int access)
{
	if ((reach->key != key || reach->epoch != reach->device->memory_epoch) &&
	    !sim_reach_find(reach, kind, key))
		return NULL;
	return sim_mr_at(reach->mr, addr, length, access);
}

/* The general case of sim_gather(). */
int sim_gather_pieces(struct sim_reach *reach, const struct ibv_sge *sge, unsigned int n,
		      uint32_t offset, uint32_t bytes, int access, struct sim_span *spans);

/*
 * Fills spans for [offset, offset + bytes) of the message in SGEs [0, n), and checks them for
 * `access` (0: read). Returns the number of spans; -1 for a protection error.
 */
__attribute__((always_inline)) static inline int sim_gather(struct sim_reach *reach,
							    const struct ibv_sge *sge,
							    unsigned int n, uint32_t offset,
							    uint32_t bytes, int access,
							    struct sim_span *spans)
{
	/* Most messages are in one SGE. */
	if (n == 1 && bytes && (uint64_t)offset + bytes <= sge->length) {
		spans->base = sim_memory_at(reach, SIM_KEY_LOCAL, sge->lkey, sge->addr + offset,
					    bytes, access);
		spans->length_bytes = bytes;
		return spans->base ? 1 : -1;
	}
	return sim_gather_pieces(reach, sge, n, offset, bytes, access, spans);
}

/* The general case of sim_copy_spans(). */
int sim_copy_pieces(const struct sim_engine *engine, const struct sim_span *from,
		    unsigned int from_count, const struct sim_span *to, unsigned int to_count);

/*
 * Copies the bytes of the spans `from` to the spans `to`, which are as long or longer. Nonzero for
 * a fault of memory, which the caller counts.
 */
static inline int sim_copy_spans(const struct sim_engine *engine, const struct sim_span *from,
				 unsigned int from_count, const struct sim_span *to,
				 unsigned int to_count)
{
	if (from_count != 1 || to_count != 1)
		return sim_copy_pieces(engine, from, from_count, to, to_count);
	return engine->host.memory.copy((void *)to->base, from->base, from->length_bytes);
}

#endif
