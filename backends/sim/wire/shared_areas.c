/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_areas.h"

#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_short.h"

#include "src/guard/guard.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The rings of a class have a capacity of CLASS_BYTES << class. */
#define CLASS_BYTES (16u << 10)
#define CLASSES	    8

/* Each area has room for the largest class; pages that a smaller class does not use are never made. */
#define AREA_STRIDE (RING_BYTES(CLASS_BYTES << (CLASSES - 1)))

_Static_assert(SEGMENT_HEADER_BYTES % SEGMENT_PAGE == 0, "areas begin at pages");
_Static_assert(AREA_STRIDE % SEGMENT_PAGE == 0, "areas begin at pages");

/* A ring takes at most this part of the free room. 240 rings, of 16 processes all to all, then leave room in
 * the 64 MiB that a Docker container has in /dev/shm. */
#define SHARE_OF_ROOM 128

/* With this many rings or more, a new ring is of the next smaller class, so that the rings of many processes fit into
 * memory. A large ring carries long messages faster: its lines have left the consumer's caches when the producer writes
 * to them again. */
static const uint32_t class_rings[CLASSES] = {UINT32_MAX, UINT32_MAX, 2048, 512, 64, 32, 16, 8};

static uint32_t bytes_of(uint32_t size_class)
{
	return RING_BYTES(CLASS_BYTES << size_class);
}

static uint64_t offset_of(uint32_t index)
{
	return SEGMENT_HEADER_BYTES + (uint64_t)index * AREA_STRIDE;
}

/* --- the table --- */

static uint32_t areas_used(const struct segment *segment)
{
	uint32_t used = atomic_load_explicit(&segment->header->areas_used, memory_order_acquire);

	return used < SEGMENT_AREAS ? used : SEGMENT_AREAS;
}

static uint32_t state_of(const struct segment_area *entry)
{
	return atomic_load_explicit(&entry->state, memory_order_acquire);
}

static segment_id end_of(const struct segment_area *entry, enum area_state end)
{
	return atomic_load_explicit(end == AREA_PRODUCER ? &entry->producer : &entry->consumer,
				    memory_order_relaxed);
}

/* Frees the pages of an area. If the process is killed in the middle, the area stays taken with no end that
 * is held, and the next areas_free() frees it. */
static void give_back(const struct segment *segment, uint32_t index)
{
	segment_free(segment, offset_of(index), AREA_STRIDE);
	atomic_store_explicit(&segment_area_at(segment, index)->state, 0, memory_order_release);
}

/* Releases one end of an area. The caller holds the lock. */
static void let_go(struct segment *segment, uint32_t index, enum area_state end)
{
	struct segment_area *entry = segment_area_at(segment, index);
	const uint32_t left = state_of(entry) & ~(uint32_t)end;

	atomic_store_explicit(&entry->state, left, memory_order_release);
	if (left & (AREA_PRODUCER | AREA_CONSUMER))
		places_tell(segment,
			    end_of(entry, end == AREA_PRODUCER ? AREA_CONSUMER : AREA_PRODUCER));
	else
		give_back(segment, index);
}

/* Returns true if a process holds the given end of an area. */
static bool is_held(const struct segment_area *entry, enum area_state end, segment_id id)
{
	const uint32_t wanted = AREA_TAKEN | (uint32_t)end;

	return (state_of(entry) & wanted) == wanted && end_of(entry, end) == id;
}

void areas_free(struct segment *segment, segment_id id)
{
	const uint32_t used = areas_used(segment);

	for (uint32_t i = 0; i < used; i++) {
		struct segment_area *entry = segment_area_at(segment, i);

		if (is_held(entry, AREA_PRODUCER, id))
			let_go(segment, i, AREA_PRODUCER);
		if (is_held(entry, AREA_CONSUMER, id))
			let_go(segment, i, AREA_CONSUMER);
		if (state_of(entry) == AREA_TAKEN)
			give_back(segment, i);
	}
}

bool areas_next(const struct segment *segment, enum area_state end, uint32_t *cursor,
		uint32_t *index)
{
	const uint32_t used = areas_used(segment);

	while (*cursor < used) {
		*index = (*cursor)++;
		if (is_held(segment_area_at(segment, *index), end, segment->id))
			return true;
	}
	return false;
}

bool areas_whole(const struct segment *segment, uint32_t index)
{
	const uint32_t whole = AREA_TAKEN | AREA_PRODUCER | AREA_CONSUMER;

	return (state_of(segment_area_at(segment, index)) & whole) == whole;
}

segment_id areas_producer(const struct segment *segment, uint32_t index)
{
	return end_of(segment_area_at(segment, index), AREA_PRODUCER);
}

/* --- taking --- */

/* Finds a free entry of the table, and counts the taken ones. */
static uint32_t find_free(const struct segment *segment, uint32_t *taken)
{
	const uint32_t used = areas_used(segment);
	uint32_t index = used;

	*taken = 0;
	for (uint32_t i = used; i-- > 0;)
		if (state_of(segment_area_at(segment, i)))
			(*taken)++;
		else
			index = i;
	return index;
}

static uint32_t choose_class(const struct segment *segment, uint32_t taken)
{
	struct statvfs room = {0};
	uint64_t room_bytes = UINT64_MAX;
	uint32_t size_class = CLASSES - 1;

	if (!fstatvfs(segment->fd, &room))
		room_bytes = (uint64_t)room.f_bavail * room.f_frsize;
	while (size_class && (taken >= class_rings[size_class] ||
			      bytes_of(size_class) > room_bytes / SHARE_OF_ROOM))
		size_class--;
	return size_class;
}

/* Allocates the pages of an area, and of its entry in the table. */
static bool allocate(const struct segment *segment, uint32_t index, uint32_t *size_class)
{
	const uint64_t entry_at = SEGMENT_TABLE_AT + index * sizeof(struct segment_area);

	if (index >= areas_used(segment) &&
	    segment_allocate(segment, entry_at, sizeof(struct segment_area)))
		return false;
	while (segment_allocate(segment, offset_of(index), bytes_of(*size_class))) {
		if (!*size_class)
			return false;
		--*size_class;
	}
	return true;
}

uint64_t areas_least(const struct segment *segment, unsigned int rings, uint64_t *end)
{
	/* Without free areas the rings are behind the others, and their entries may need a page. */
	*end = offset_of(areas_used(segment) + rings - 1) + bytes_of(0);
	return rings * bytes_of(0) + SEGMENT_PAGE;
}

/* Says what is short. */
static void tell(struct segment *segment)
{
	uint64_t end;
	const uint64_t needed = areas_least(segment, 1, &end);
	const struct vb_why why = segment_lack(segment, end, needed);

	if (why.reason != VB_WHY_NONE)
		segment_tell(segment, SEGMENT_NEED_RING, &why);
}

static bool map(const struct segment *segment, uint32_t index, uint32_t size_class,
		struct area *area)
{
	void *memory = mmap(NULL, bytes_of(size_class), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, segment->fd, (off_t)offset_of(index));

	if (memory == MAP_FAILED)
		return false;
	guard_add_mapping(memory, bytes_of(size_class));
	*area = (struct area){index, CLASS_BYTES << size_class, memory};
	return true;
}

/* Stores the state last: if the process is killed before, the entry is still free. */
static void publish(const struct segment *segment, uint32_t index, segment_id consumer,
		    uint32_t size_class)
{
	struct segment_area *entry = segment_area_at(segment, index);

	atomic_store_explicit(&entry->producer, segment->id, memory_order_relaxed);
	atomic_store_explicit(&entry->consumer, consumer, memory_order_relaxed);
	atomic_store_explicit(&entry->size_class, size_class, memory_order_relaxed);
	atomic_store_explicit(&entry->state, AREA_TAKEN | AREA_PRODUCER | AREA_CONSUMER,
			      memory_order_release);
	if (index >= areas_used(segment))
		atomic_store_explicit(&segment->header->areas_used, index + 1,
				      memory_order_release);
}

bool areas_take(struct segment *segment, segment_id consumer, struct area *area)
{
	uint32_t taken;
	const uint32_t index = find_free(segment, &taken);
	uint32_t size_class = choose_class(segment, taken);

	if (!consumer || places_id(segment, segment_id_place(consumer)) != consumer ||
	    index >= SEGMENT_AREAS)
		return false;
	if (!allocate(segment, index, &size_class)) {
		tell(segment);
		return false;
	}
	if (!map(segment, index, size_class, area)) {
		segment_free(segment, offset_of(index), AREA_STRIDE);
		return false;
	}
	ring_init(area->memory);
	publish(segment, index, consumer, size_class);
	places_tell(segment, consumer);
	return true;
}

/* Allocates the pages again: the entry, which another process wrote, may claim pages that do not exist. */
bool areas_map(const struct segment *segment, uint32_t index, struct area *area)
{
	const uint32_t size_class = atomic_load_explicit(
		&segment_area_at(segment, index)->size_class, memory_order_relaxed);

	return size_class < CLASSES &&
	       !segment_allocate(segment, offset_of(index), bytes_of(size_class)) &&
	       map(segment, index, size_class, area);
}

/* --- letting go --- */

void areas_unmap(struct area *area)
{
	guard_remove_mapping(area->memory);
	munmap(area->memory, RING_BYTES(area->capacity));
	area->memory = NULL;
}

bool areas_release(struct segment *segment, struct area *area, enum area_state end,
		   uint64_t patience_ns)
{
	if (!segment_lock(segment, patience_ns))
		return false;
	areas_unmap(area);
	if (is_held(segment_area_at(segment, area->index), end, segment->id))
		let_go(segment, area->index, end);
	segment_unlock(segment);
	return true;
}
