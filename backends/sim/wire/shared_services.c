/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_services.h"

#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_requests.h"
#include "backends/sim/wire/shared_short.h"

#include "sim/net/gsi.h"
#include "sim/net/service_address.h"
#include "sim/wire/bytes.h"

#include <errno.h>
#include <string.h>

/* An entry is at most this many steps behind the place that follows from its service ID. */
#define WINDOW 64u

/* How long this process waits for the lock before it puts off the burial of another process. */
#define BURIAL_PATIENCE_NS UINT64_C(1000000)

/* A service ID at an address. */
struct service {
	uint64_t id;
	uint8_t address[16];
};

static struct service service_of(uint64_t service_id, const uint8_t address[16])
{
	struct service service = {.id = service_id};

	memcpy(service.address, address, sizeof(service.address));
	return service;
}

/* --- entries --- */

/* A copy of an entry. The owner is read first, and only once. */
struct entry {
	segment_id owner; /* 0: nobody */
	struct service service;
	uint32_t flags; /* enum sim_service_flag, enum service_flag */
};

static uint32_t place_of(uint64_t service_id, uint32_t step)
{
	return (uint32_t)(service_id ^ service_id >> 16) + step;
}

/* Returns the entry at a step of the search; NULL if its pages are not allocated. */
static struct segment_service *at(const struct segment *segment, uint64_t service_id, uint32_t step)
{
	const uint32_t place = place_of(service_id, step) % SEGMENT_SERVICES;
	const uint64_t chunks =
		atomic_load_explicit(&segment->header->service_chunks, memory_order_acquire);

	if (!(chunks >> place / SEGMENT_SERVICES_CHUNK & 1))
		return NULL;
	return (struct segment_service *)(segment->map + SEGMENT_SERVICES_AT) + place;
}

/* Allocates the pages of the entry at a step. The caller holds the lock. */
static bool allocate(struct segment *segment, uint64_t service_id, uint32_t step)
{
	const uint32_t chunk =
		place_of(service_id, step) % SEGMENT_SERVICES / SEGMENT_SERVICES_CHUNK;
	const size_t bytes = SEGMENT_SERVICES_CHUNK * sizeof(struct segment_service);

	const int err = segment_allocate(segment, SEGMENT_SERVICES_AT + chunk * bytes, bytes);
	struct vb_why why;

	if (err) {
		why = segment_why(segment, err, SEGMENT_SERVICES_AT + (chunk + 1) * bytes, bytes);
		segment_tell(segment, SEGMENT_NEED_SERVICE, &why);
		return false;
	}
	atomic_fetch_or_explicit(&segment->header->service_chunks, UINT64_C(1) << chunk,
				 memory_order_release);
	return true;
}

static bool read_entry(const struct segment *segment, const struct segment_service *from,
		       struct entry *entry)
{
	if (!from)
		return false;
	entry->owner = atomic_load_explicit(&from->owner, memory_order_acquire);
	entry->service.id = atomic_load_explicit(&from->service_id, memory_order_relaxed);
	for (unsigned int i = 0; i < 2; i++)
		sim_store_be64(entry->service.address + 8 * i,
			       atomic_load_explicit(&from->address[i], memory_order_relaxed));
	entry->flags = atomic_load_explicit(&from->flags, memory_order_relaxed);
	return entry->owner && places_id(segment, segment_id_place(entry->owner)) == entry->owner;
}

static bool same(const struct service *a, const struct service *b)
{
	return a->id == b->id && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

/* --- changes, with the lock --- */

/* A reservation of another process that conflicts with the wanted one. */
struct conflict {
	segment_id owner; /* 0: no reservation excludes it */
	int err;	  /* EADDRINUSE or EADDRNOTAVAIL */
};

/* Searches the reservations of other processes. The engine has already checked those of this process. */
static struct conflict find_conflict(const struct segment *segment, const struct service *service,
				     uint32_t flags)
{
	struct entry entry;

	for (uint32_t step = 0; step < WINDOW; step++) {
		uint32_t others;
		int err;

		if (!read_entry(segment, at(segment, service->id, step), &entry) ||
		    entry.owner == segment->id || entry.service.id != service->id)
			continue;
		others = entry.flags;
		if (others & SERVICE_LISTENS)
			others &= ~(uint32_t)SIM_SERVICE_SHARED;
		err = sim_service_conflict(service->address, flags, entry.service.address, others);
		if (err)
			return (struct conflict){entry.owner, err};
	}
	return (struct conflict){0};
}

/* Returns the errno value of a conflict with a process that lives, or 0. */
static int check(struct segment *segment, const struct service *service, uint32_t flags)
{
	struct conflict conflict = find_conflict(segment, service, flags);

	if (conflict.owner && !places_live(segment, conflict.owner)) {
		places_bury_dead(segment);
		conflict = find_conflict(segment, service, flags);
	}
	segment->conflict = conflict.owner;
	return conflict.err;
}

/* Returns a free entry; NULL if there is none. */
static struct segment_service *find_free(struct segment *segment, uint64_t service_id)
{
	for (uint32_t step = 0; step < WINDOW; step++) {
		struct segment_service *free_entry = at(segment, service_id, step);
		struct entry entry;

		if (!free_entry && !allocate(segment, service_id, step))
			return NULL;
		free_entry = at(segment, service_id, step);
		if (!read_entry(segment, free_entry, &entry))
			return free_entry;
	}
	return NULL;
}

/* Fills in an entry. Stores the owner last: a process that is killed before has reserved nothing. */
static void fill(struct segment_service *to, const struct service *service, uint32_t flags,
		 segment_id owner)
{
	atomic_store_explicit(&to->owner, 0, memory_order_release);
	atomic_store_explicit(&to->service_id, service->id, memory_order_relaxed);
	for (unsigned int i = 0; i < 2; i++)
		atomic_store_explicit(&to->address[i], sim_load_be64(service->address + 8 * i),
				      memory_order_relaxed);
	atomic_store_explicit(&to->flags, flags, memory_order_relaxed);
	atomic_store_explicit(&to->owner, owner, memory_order_release);
}

/* Returns an entry of this process, preferably one that does not listen; NULL if it has none. */
static struct segment_service *find_own(const struct segment *segment,
					const struct service *service)
{
	struct segment_service *found = NULL;
	struct entry entry;

	for (uint32_t step = 0; step < WINDOW; step++) {
		struct segment_service *own = at(segment, service->id, step);

		if (!read_entry(segment, own, &entry) || entry.owner != segment->id ||
		    !same(&entry.service, service))
			continue;
		if (!(entry.flags & SERVICE_LISTENS))
			return own;
		found = own;
	}
	return found;
}

int services_reserve(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		     uint32_t flags)
{
	const struct service service = service_of(service_id, address);
	struct segment_service *entry;
	int err;

	if (!segment_lock(segment, SEGMENT_PATIENCE_NS))
		return ENOMEM;
	err = check(segment, &service, flags);
	entry = err ? NULL : find_free(segment, service_id);
	if (entry)
		fill(entry, &service, flags & ~(uint32_t)SIM_SERVICE_UNIQUE, segment->id);
	else if (!err)
		err = ENOMEM;
	segment_unlock(segment);
	return err;
}

void services_unreserve(struct segment *segment, uint64_t service_id, const uint8_t address[16])
{
	const struct service service = service_of(service_id, address);
	/* Only the process itself changes its entries while it lives. */
	struct segment_service *own = find_own(segment, &service);

	if (own)
		atomic_store_explicit(&own->owner, 0, memory_order_release);
}

int services_listen(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		    bool on)
{
	const struct service service = service_of(service_id, address);
	struct segment_service *own;
	int err = 0;

	if (!segment_lock(segment, SEGMENT_PATIENCE_NS))
		return ENOMEM;
	own = find_own(segment, &service);
	if (on && own)
		err = check(segment, &service, own->flags & ~(uint32_t)SIM_SERVICE_SHARED);
	if (on && own && !err)
		atomic_fetch_or_explicit(&own->flags, SERVICE_LISTENS, memory_order_release);
	else if (!on && own)
		atomic_fetch_and_explicit(&own->flags, ~(uint32_t)SERVICE_LISTENS,
					  memory_order_release);
	segment_unlock(segment);
	return err;
}

/* --- who takes a message --- */

static segment_id find_listener(const struct segment *segment, const struct sim_gsi_target *target)
{
	unsigned int best = 0;
	segment_id found = 0;
	struct entry entry;

	for (uint32_t step = 0; step < WINDOW; step++) {
		unsigned int suits;

		if (!read_entry(segment, at(segment, target->service_id, step), &entry) ||
		    entry.owner == segment->id || entry.service.id != target->service_id ||
		    !(entry.flags & SERVICE_LISTENS))
			continue;
		suits = sim_service_suits(entry.service.address, entry.flags,
					  sim_gsi_address(target));
		if (suits <= best)
			continue;
		best = suits;
		found = entry.owner;
	}
	return found;
}

segment_id services_owner(struct segment *segment, const struct sim_gsi_target *target)
{
	const uint32_t block =
		(target->communication_id & (SEGMENT_COMMUNICATION_BLOCKS * SIM_BLOCK_PLACES - 1)) /
		SIM_BLOCK_PLACES;
	segment_id owner;

	if (target->kind == SIM_GSI_REQUEST)
		return requests_taker(segment, target->communication_id);
	if (target->kind == SIM_GSI_COMMUNICATION)
		owner = blocks_owner(segment, 0, SIM_NUMBERS_COMMUNICATION, block);
	else
		owner = find_listener(segment, target);
	if (!owner || owner == segment->id)
		return 0;
	if (places_live(segment, owner))
		return owner;
	places_bury(segment, owner, BURIAL_PATIENCE_NS);
	return 0;
}
