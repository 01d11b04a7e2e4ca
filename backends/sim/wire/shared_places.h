/* SPDX-License-Identifier: MIT */
/*
 * Who is attached to a shared world. A process has a place, whose byte of the file it locks as long as it
 * lives. Who finds that a process has died buries it: its blocks, memberships and ends of rings are free
 * then. Each step of a burial may be done twice, since who buries may be killed, too.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_PLACES_H
#define BACKENDS_SIM_WIRE_SHARED_PLACES_H

#include "backends/sim/wire/shared_file.h"

/* Takes a place. The caller holds the lock. 0, or an errno value with a sentence. */
int places_attach(struct segment *segment);

/* Leaves; the last process removes the file. The caller does not hold the lock. */
void places_leave(struct segment *segment);

/* Returns the id of a place that is used, by a living process or a dead one; else 0. */
segment_id places_id(const struct segment *segment, uint32_t place);

/* Returns true if the id's process lives: a system call. */
bool places_live(const struct segment *segment, segment_id id);

/* Buries a process that has died, if the lock is free within patience_ns. */
void places_bury(struct segment *segment, segment_id id, uint64_t patience_ns);

/* Buries all processes that have died. The caller holds the lock. */
void places_bury_dead(struct segment *segment);

/* Counts the places that were ever used: no place from here on is used. */
static inline uint32_t places_used(const struct segment *segment)
{
	uint32_t used = atomic_load_explicit(&segment->header->places_used, memory_order_acquire);

	return used < SHARED_PROCESSES_MAX ? used : SHARED_PROCESSES_MAX;
}

/* Lets a process look at its rings: it may have a new one, or the other end of one is gone. */
void places_tell(const struct segment *segment, segment_id id);

#endif
