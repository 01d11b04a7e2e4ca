/* SPDX-License-Identifier: MIT */
/*
 * The file of a shared world: its name, its making, who may open it, its lock, its end.
 *
 * Each attachment opens the file itself. Locks belong to the open file description, so two attachments of
 * one process exclude each other, too.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_FILE_H
#define BACKENDS_SIM_WIRE_SHARED_FILE_H

#include "backends/sim/wire/shared_layout.h"

#include <stdbool.h>
#include <stddef.h>

struct segment {
	int fd; /* -1: not attached */
	uint8_t *map;
	struct segment_header *header; /* at map */
	uint32_t place;
	segment_id id;	/* of this attachment; 0: none yet */
	bool has_woken; /* the last segment_unlock() has woken another process */
	/* As the header said when the file was opened. */
	uint64_t identity, base_ns, wall_base_ns;
	/* The process that has the service of the last refused reservation; 0: none. */
	segment_id conflict;
	uint32_t told; /* bits of enum segment_need: a line on stderr was printed */
	char path[128];
};

/* What the process that makes a world writes into the file. */
struct segment_world {
	const char *name;		/* NULL or "": the default world */
	const char *devices;		/* the text that all processes must agree on */
	uint64_t identity;		/* 0: made from the names of the world and of the host */
	uint64_t base_ns, wall_base_ns; /* base_ns 0: now */
};

/*
 * Opens the file of a world, or makes it, and takes the lock. The caller then takes a place and unlocks.
 * Returns 0, or an errno value with a sentence.
 */
int segment_open(struct segment *segment, const struct segment_world *world);

/* Unmaps and closes the file without telling others. That releases the locks. */
void segment_drop(struct segment *segment);

/* Takes the lock. Returns false if another process holds it for longer than patience_ns. */
bool segment_lock(struct segment *segment, uint64_t patience_ns);
void segment_unlock(struct segment *segment);

/* How long a process waits for the lock when it attaches or needs a ring, and when it sends what cannot wait. */
#define SEGMENT_PATIENCE_NS	 UINT64_C(5000000000)
#define SEGMENT_SEND_PATIENCE_NS UINT64_C(100000000)

/* Tries to lock the byte of a place. Returns false if another attachment has it. */
bool segment_lock_place(const struct segment *segment, uint32_t place);
void segment_unlock_place(const struct segment *segment, uint32_t place);

/* Returns true if a process holds one of the places [first, first + count); this attachment's own places
 * do not count. */
bool segment_has_others(const struct segment *segment, uint32_t first, uint32_t count);

/* Removes the file's name. */
void segment_unlink(const struct segment *segment);

/* Allocate pages of the file, or free them; set its size. Return 0 or an errno value: EFBIG, and no signal, at the limit
 * of the size of files. */
int segment_allocate(const struct segment *segment, uint64_t offset, uint64_t length);
int segment_set_size(const struct segment *segment, uint64_t bytes);
void segment_free(const struct segment *segment, uint64_t offset, uint64_t length);

static inline struct segment_place *segment_place_at(const struct segment *segment, uint32_t place)
{
	return (struct segment_place *)(segment->map + SEGMENT_PLACES_AT) + place;
}

static inline struct segment_row *segment_row_at(const struct segment *segment, uint32_t device)
{
	return (struct segment_row *)(segment->map + SEGMENT_ROWS_AT) + device;
}

static inline struct segment_area *segment_area_at(const struct segment *segment, uint32_t area)
{
	return (struct segment_area *)(segment->map + SEGMENT_TABLE_AT) + area;
}

/* Time of CLOCK_MONOTONIC. */
uint64_t segment_now_ns(void);

#endif
