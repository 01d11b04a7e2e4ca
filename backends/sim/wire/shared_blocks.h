/* SPDX-License-Identifier: MIT */
/* Owners of the numbers of a device. A process owns blocks of SIM_BLOCK_PLACES numbers. */
#ifndef BACKENDS_SIM_WIRE_SHARED_BLOCKS_H
#define BACKENDS_SIM_WIRE_SHARED_BLOCKS_H

#include "backends/sim/wire/shared_file.h"

/* Claims a free block for this process, as sim_claim_fn does. */
bool blocks_claim(struct segment *segment, uint32_t device, enum sim_numbers numbers,
		  uint32_t *block, uint16_t *generation);

/* Returns the owner of a block; 0: nobody. Needs no lock. */
segment_id blocks_owner(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			uint32_t block);

/* As blocks_owner(), and sets *entry to the block's entry in the table and *value to its content. If it
 * returns 0, it may leave both unset. */
segment_id blocks_owner_at(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			   uint32_t block, const _Atomic uint64_t **entry, uint64_t *value);

/* Takes all blocks away from a process. The caller holds the lock. */
void blocks_free(struct segment *segment, segment_id owner);

#endif
