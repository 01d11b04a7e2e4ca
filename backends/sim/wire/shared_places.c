/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_places.h"

#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/shared_areas.h"
#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_domains.h"
#include "backends/sim/wire/shared_short.h"

#include <string.h>
#include <unistd.h>

/* --- who is there --- */

segment_id places_id(const struct segment *segment, uint32_t place)
{
	uint32_t generation;

	if (place >= places_used(segment))
		return 0;
	generation =
		atomic_load_explicit(&segment->header->generations[place], memory_order_acquire);
	return generation & 1 ? segment_id_make(place, generation) : 0;
}

bool places_live(const struct segment *segment, segment_id id)
{
	const uint32_t place = segment_id_place(id);

	if (!id || places_id(segment, place) != id)
		return false;
	return id == segment->id || segment_has_others(segment, place, 1);
}

void places_tell(const struct segment *segment, segment_id id)
{
	struct segment_place *place;

	if (!id || places_id(segment, segment_id_place(id)) != id)
		return;
	place = segment_place_at(segment, segment_id_place(id));
	atomic_fetch_add_explicit(&place->news, 1, memory_order_release);
	if (bell_is_heard(&place->bell))
		bell_ring(&place->bell);
}

/* --- burials --- */

/* Frees what a dead process held. Changes the generation last: until then the place counts as used, and if
 * this process is killed, the next holder of the lock begins the burial again. */
static void bury(struct segment *segment, segment_id id)
{
	const uint32_t place = segment_id_place(id);

	blocks_free(segment, id);
	domains_free(segment, id);
	for (uint32_t i = 0; i < SEGMENT_DEVICES; i++)
		atomic_store_explicit(&segment_place_at(segment, place)->memberships[i], 0,
				      memory_order_relaxed);
	areas_free(segment, id);
	atomic_store_explicit(&segment->header->generations[place], segment_id_generation(id) + 1,
			      memory_order_release);
}

void places_bury_dead(struct segment *segment)
{
	const uint32_t used = places_used(segment);

	for (uint32_t i = 0; i < used; i++) {
		segment_id id = places_id(segment, i);

		if (id && !places_live(segment, id))
			bury(segment, id);
	}
}

void places_bury(struct segment *segment, segment_id id, uint64_t patience_ns)
{
	if (!segment_lock(segment, patience_ns))
		return;
	if (places_id(segment, segment_id_place(id)) == id && !places_live(segment, id))
		bury(segment, id);
	segment_unlock(segment);
}

/* --- attach and leave --- */

static int allocate(const struct segment *segment, uint32_t place)
{
	const uint64_t at = SEGMENT_PLACES_AT + place * sizeof(struct segment_place);
	const int err = segment_allocate(segment, at, sizeof(struct segment_place));

	return err ? segment_refuse(segment, err, at + sizeof(struct segment_place), SEGMENT_PAGE)
		   : 0;
}

/* Locks the byte of a free place, and returns the place; SHARED_PROCESSES_MAX if all are used. */
static uint32_t take_place(const struct segment *segment)
{
	for (uint32_t i = 0; i < SHARED_PROCESSES_MAX; i++)
		if (!places_id(segment, i) && segment_lock_place(segment, i))
			return i;
	return SHARED_PROCESSES_MAX;
}

/* Enters this process at a place. Changes the generation last: if the process is killed before, it has never
 * been there. */
static void enter(struct segment *segment, uint32_t place)
{
	struct segment_header *header = segment->header;
	struct segment_place *own = segment_place_at(segment, place);
	const uint32_t generation =
		atomic_load_explicit(&header->generations[place], memory_order_relaxed) | 1;

	memset(own, 0, sizeof(*own));
	own->pid = (uint32_t)getpid();
	if (place >= places_used(segment))
		atomic_store_explicit(&header->places_used, place + 1, memory_order_release);
	atomic_store_explicit(&header->generations[place], generation, memory_order_release);
	segment->place = place;
	segment->id = segment_id_make(place, generation);
}

int places_attach(struct segment *segment)
{
	uint32_t place;
	int err;

	places_bury_dead(segment);
	place = take_place(segment);
	if (place == SHARED_PROCESSES_MAX)
		return refuse_why(NULL, (struct vb_why){VB_WHY_SHARED_FULL,
							{SHARED_PROCESSES_MAX},
							.text = segment->path});
	err = allocate(segment, place);
	if (err)
		segment_unlock_place(segment, place);
	else
		enter(segment, place);
	return err;
}

void places_abandon(struct segment *segment)
{
	if (!segment->id || !segment_lock(segment, SEGMENT_PATIENCE_NS))
		return;
	bury(segment, segment->id);
	segment_unlock_place(segment, segment->place);
	if (!segment_has_others(segment, 0, SHARED_PROCESSES_MAX))
		segment_unlink(segment);
	segment_unlock(segment);
}

/* Gives both locks back before it closes the file: a process that was just forked has a copy of the descriptor, and
 * would keep the locks until it closes it. */
void places_leave(struct segment *segment)
{
	places_abandon(segment);
	segment_drop(segment);
}
