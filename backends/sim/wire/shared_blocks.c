/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_blocks.h"

#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_short.h"

/*
 * Successive claims of a block have generations this far apart, modulo 65536 or modulo the fewer generations
 * of a table. So a number of the last owner does not come again soon, even if that owner has counted
 * generations up by removing numbers.
 */
#define GENERATION_STEP 0x9e37u

/* --- entries --- */

struct blocks {
	_Atomic uint64_t *entries;
	uint32_t count;
};

static struct blocks blocks_of(const struct segment *segment, uint32_t device,
			       enum sim_numbers numbers)
{
	struct segment_row *row = segment_row_at(segment, device);

	switch (numbers) {
	case SIM_NUMBERS_QP:
		return (struct blocks){row->qp, SEGMENT_QP_BLOCKS};
	case SIM_NUMBERS_SRQ:
		return (struct blocks){row->srq, SEGMENT_SRQ_BLOCKS};
	case SIM_NUMBERS_KEY:
		return (struct blocks){row->key, SEGMENT_KEY_BLOCKS};
	case SIM_NUMBERS_COMMUNICATION:
		return (struct blocks){row->communication, SEGMENT_COMMUNICATION_BLOCKS};
	case SIM_NUMBERS:
	default:
		return (struct blocks){NULL, 0};
	}
}

static segment_id entry_owner(uint64_t entry)
{
	const uint32_t place = entry & 0xffff;

	return place ? segment_id_make(place - 1, (uint32_t)(entry >> 32)) : 0;
}

static uint64_t entry_make(segment_id owner, uint16_t claims)
{
	const uint64_t counted = (uint64_t)claims << 16;

	if (!owner)
		return counted;
	return (uint64_t)segment_id_generation(owner) << 32 | counted |
	       (segment_id_place(owner) + 1);
}

static uint16_t entry_claims(uint64_t entry)
{
	return (uint16_t)(entry >> 16);
}

/* --- rows --- */

/* Returns true if the pages of a row are allocated: only then may they be touched. */
static bool has_row(const struct segment *segment, uint32_t device)
{
	return device < SEGMENT_DEVICES &&
	       atomic_load_explicit(&segment->header->rows, memory_order_acquire) >> device & 1;
}

/* Allocates the pages of a row. The caller holds the lock. */
static bool make_row(struct segment *segment, uint32_t device)
{
	const uint64_t at = SEGMENT_ROWS_AT + device * sizeof(struct segment_row);
	struct vb_why why;
	int err;

	if (device >= SEGMENT_DEVICES)
		return false;
	if (has_row(segment, device))
		return true;
	err = segment_allocate(segment, at, sizeof(struct segment_row));
	if (err) {
		why = segment_why(segment, err, at + sizeof(struct segment_row),
				  sizeof(struct segment_row));
		segment_tell(segment, SEGMENT_NEED_NUMBERS, &why);
		return false;
	}
	atomic_fetch_or_explicit(&segment->header->rows, UINT64_C(1) << device,
				 memory_order_release);
	return true;
}

/* --- claims --- */

/* Claims the next free block in turn, so that a freed block is used again as late as possible. One store
 * makes the claim: a process that is killed either has the block or does not. */
static bool claim(struct segment *segment, uint32_t device, enum sim_numbers numbers,
		  uint32_t *block, uint16_t *generation)
{
	const struct blocks blocks = blocks_of(segment, device, numbers);
	_Atomic uint32_t *next = &segment->header->next_block[device][numbers];
	const uint32_t first = atomic_load_explicit(next, memory_order_relaxed);

	for (uint32_t i = 0; i < blocks.count; i++) {
		const uint32_t at = (first + i) % blocks.count;
		const uint64_t entry =
			atomic_load_explicit(&blocks.entries[at], memory_order_relaxed);

		if (blocks_owner(segment, device, numbers, at))
			continue;
		atomic_store_explicit(&blocks.entries[at],
				      entry_make(segment->id, entry_claims(entry) + 1),
				      memory_order_release);
		atomic_store_explicit(next, at + 1, memory_order_relaxed);
		*block = at;
		*generation = (uint16_t)(entry_claims(entry) * GENERATION_STEP);
		return true;
	}
	return false;
}

bool blocks_claim(struct segment *segment, uint32_t device, enum sim_numbers numbers,
		  uint32_t *block, uint16_t *generation)
{
	bool claimed;

	if (numbers >= SIM_NUMBERS || !segment_lock(segment, SEGMENT_PATIENCE_NS))
		return false;
	claimed = make_row(segment, device) && claim(segment, device, numbers, block, generation);
	if (!claimed && has_row(segment, device)) {
		places_bury_dead(segment);
		claimed = claim(segment, device, numbers, block, generation);
	}
	segment_unlock(segment);
	return claimed;
}

segment_id blocks_owner_at(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			   uint32_t block, const _Atomic uint64_t **entry, uint64_t *value)
{
	struct blocks blocks;
	segment_id owner;

	if (!has_row(segment, device))
		return 0;
	blocks = blocks_of(segment, device, numbers);
	if (block >= blocks.count)
		return 0;
	*entry = &blocks.entries[block];
	*value = atomic_load_explicit(*entry, memory_order_acquire);
	owner = entry_owner(*value);
	return owner && places_id(segment, segment_id_place(owner)) == owner ? owner : 0;
}

segment_id blocks_owner(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			uint32_t block)
{
	const _Atomic uint64_t *entry;
	uint64_t value;

	return blocks_owner_at(segment, device, numbers, block, &entry, &value);
}

void blocks_free(struct segment *segment, segment_id owner)
{
	for (uint32_t device = 0; device < SEGMENT_DEVICES; device++) {
		for (unsigned int numbers = 0; numbers < SIM_NUMBERS && has_row(segment, device);
		     numbers++) {
			const struct blocks blocks = blocks_of(segment, device, numbers);

			for (uint32_t i = 0; i < blocks.count; i++) {
				const uint64_t entry = atomic_load_explicit(&blocks.entries[i],
									    memory_order_relaxed);

				if (entry_owner(entry) == owner)
					atomic_store_explicit(&blocks.entries[i],
							      entry_make(0, entry_claims(entry)),
							      memory_order_release);
			}
		}
	}
}
