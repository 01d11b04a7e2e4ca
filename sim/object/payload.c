/* SPDX-License-Identifier: MIT */
#include "sim/object/payload.h"

#include <assert.h>

int sim_gather_pieces(struct sim_reach *reach, const struct ibv_sge *sge, unsigned int n,
		      uint32_t offset, uint32_t bytes, int access, struct sim_span *spans)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < n && bytes; i++) {
		uint32_t length = sge[i].length;
		void *base;

		if (offset >= length) {
			offset -= length;
			continue;
		}
		length -= offset;
		if (length > bytes)
			length = bytes;
		base = sim_memory_at(reach, SIM_KEY_LOCAL, sge[i].lkey, sge[i].addr + offset,
				     length, access);
		if (!base)
			return -1;
		spans[count++] = (struct sim_span){base, length};
		bytes -= length;
		offset = 0;
	}
	return (int)count;
}

int sim_copy_pieces(const struct sim_engine *engine, const struct sim_span *from,
		    unsigned int from_count, const struct sim_span *to, unsigned int to_count)
{
	uint32_t from_offset = 0;
	uint32_t to_offset = 0;

	while (from_count) {
		uint32_t length = from->length_bytes - from_offset;

		assert(to_count);
		if (length > to->length_bytes - to_offset)
			length = to->length_bytes - to_offset;
		if (engine->host.memory.copy((uint8_t *)to->base + to_offset,
					     (const uint8_t *)from->base + from_offset, length))
			return -1;
		from_offset += length;
		to_offset += length;
		if (from_offset == from->length_bytes) {
			from++;
			from_count--;
			from_offset = 0;
		}
		if (to_offset == to->length_bytes && to_count > 1) {
			to++;
			to_count--;
			to_offset = 0;
		}
	}
	return 0;
}
