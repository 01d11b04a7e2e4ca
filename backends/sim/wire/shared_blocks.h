/* SPDX-License-Identifier: MIT */
/* Which process has which numbers of a device: blocks of SIM_BLOCK_PLACES places. */
#ifndef BACKENDS_SIM_WIRE_SHARED_BLOCKS_H
#define BACKENDS_SIM_WIRE_SHARED_BLOCKS_H

#include "backends/sim/wire/shared_file.h"

/* Takes a block that nobody has, as sim_claim_fn. */
bool blocks_claim(struct segment *segment, uint32_t device, enum sim_numbers numbers,
		  uint32_t *block, uint16_t *generation);

/* Returns who has a block; 0: nobody. Needs no lock. */
segment_id blocks_owner(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			uint32_t block);

/* The same, and sets *entry to where the table says so, and *value to what the table says. 0: may leave both as
 * they are. */
segment_id blocks_owner_at(const struct segment *segment, uint32_t device, enum sim_numbers numbers,
			   uint32_t block, const _Atomic uint64_t **entry, uint64_t *value);

/* Takes all blocks away from a process. The caller holds the lock. */
void blocks_free(struct segment *segment, segment_id owner);

#endif
