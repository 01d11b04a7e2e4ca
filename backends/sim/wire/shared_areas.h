/* SPDX-License-Identifier: MIT */
/*
 * Areas of the file. An area holds the ring from one process, its producer, to another one, its consumer.
 * The producer takes the area, and then both ends hold it. The area is free when both ends have released it
 * or have died. A process that gets a dead process's place has another id, and so never gets the dead
 * process's rings.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_AREAS_H
#define BACKENDS_SIM_WIRE_SHARED_AREAS_H

#include "backends/sim/wire/shared_file.h"
#include "backends/sim/wire/shared_ring.h"

/* An area that this process has mapped. */
struct area {
	uint32_t index;
	uint32_t capacity; /* of its ring */
	struct ring_memory *memory;
};

/* Returns how many bytes of memory so many new rings have at least, and sets *end to where the last one ends in the
 * file. */
uint64_t areas_least(const struct segment *segment, unsigned int rings, uint64_t *end);

/* Takes an area for a ring from this process to another one, maps it, and tells the other process. Returns
 * false if there is no room in /dev/shm, which a line on stderr says, or if the other process has ended. The caller holds the lock. */
bool areas_take(struct segment *segment, segment_id consumer, struct area *area);

/* Finds the next area, at *cursor or behind it, that this process holds as `end` (AREA_PRODUCER or
 * AREA_CONSUMER), and advances *cursor. Start with *cursor = 0. Needs no lock. */
bool areas_next(const struct segment *segment, enum area_state end, uint32_t *cursor,
		uint32_t *index);

/* Maps an area that another process has made for this one. */
bool areas_map(const struct segment *segment, uint32_t index, struct area *area);

/* Returns true if both ends hold an area. */
bool areas_whole(const struct segment *segment, uint32_t index);

/* Returns the producer of the ring in an area. */
segment_id areas_producer(const struct segment *segment, uint32_t index);

/* Unmaps an area, releases one end of it, and raises the other end's `news`. Returns false if the lock is
 * not free within patience_ns; then nothing has changed. */
bool areas_release(struct segment *segment, struct area *area, enum area_state end,
		   uint64_t patience_ns);

/* Unmaps an area without releasing an end: the attachment ends, or belongs to another process. */
void areas_unmap(struct area *area);

/* Releases all ends that a process holds. The caller holds the lock. */
void areas_free(struct segment *segment, segment_id id);

#endif
