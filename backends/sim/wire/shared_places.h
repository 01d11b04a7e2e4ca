/* SPDX-License-Identifier: MIT */
/*
 * The processes that are attached to a shared world. A process has a place, and locks the byte of its place
 * in the file as long as it lives. A process that finds another one dead buries it: the dead process's
 * blocks, memberships and ends of rings become free. Each step of a burial may be repeated, since the
 * burying process may be killed, too.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_PLACES_H
#define BACKENDS_SIM_WIRE_SHARED_PLACES_H

#include "backends/sim/wire/shared_file.h"

/* Takes a place for this process. The caller holds the lock. Returns 0, or an errno value with a sentence. */
int places_attach(struct segment *segment);

/* Leaves the world; the last process removes the file. The caller does not hold the lock. */
void places_leave(struct segment *segment);

/* As places_leave(), but keeps the file open and mapped: other threads may look at it. The thread may have been
 * interrupted anywhere, even while it has the lock: as after its death in the middle of a change. */
void places_abandon(struct segment *segment);

/* Returns the id of the process at a place, which may be alive or dead; 0: the place is free. */
segment_id places_id(const struct segment *segment, uint32_t place);

/* Returns true if the process of an id is alive. Makes a system call. */
bool places_live(const struct segment *segment, segment_id id);

/* Buries a dead process, if the lock is free within patience_ns. */
void places_bury(struct segment *segment, segment_id id, uint64_t patience_ns);

/* Buries all dead processes. The caller holds the lock. */
void places_bury_dead(struct segment *segment);

/* Returns the count of places that were ever used: a place from this number on is free. */
static inline uint32_t places_used(const struct segment *segment)
{
	uint32_t used = atomic_load_explicit(&segment->header->places_used, memory_order_acquire);

	return used < SHARED_PROCESSES_MAX ? used : SHARED_PROCESSES_MAX;
}

/* Makes a process look at its rings: it may have a new ring, or the other end of a ring is gone. */
void places_tell(const struct segment *segment, segment_id id);

#endif
