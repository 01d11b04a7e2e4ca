/* SPDX-License-Identifier: MIT */
#include "backends/sim/wire/shared_domains.h"

#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_short.h"

#include <fcntl.h>

static struct segment_domain *entry_at(const struct segment *segment, uint32_t entry)
{
	return (struct segment_domain *)(segment->map + SEGMENT_DOMAINS_AT) + entry;
}

/* Returns true if the pages of the table are allocated: only then may they be touched. */
static bool has_table(const struct segment *segment)
{
	return atomic_load_explicit(&segment->header->domains, memory_order_acquire);
}

static bool make_table(struct segment *segment)
{
	const uint64_t bytes = SEGMENT_DOMAINS * sizeof(struct segment_domain);
	struct vb_why why;
	int err;

	if (has_table(segment))
		return true;
	err = segment_allocate(segment, SEGMENT_DOMAINS_AT, bytes);
	if (err) {
		why = segment_why(segment, err, SEGMENT_DOMAINS_AT + bytes, bytes);
		segment_tell(segment, SEGMENT_NEED_DOMAIN, &why);
		return false;
	}
	atomic_store_explicit(&segment->header->domains, 1, memory_order_release);
	return true;
}

static segment_id owner_of(const struct segment *segment, uint32_t entry)
{
	return atomic_load_explicit(&entry_at(segment, entry)->owner, memory_order_acquire);
}

/* Returns true if a living process has the domain open. Buries dead processes. */
static bool exists(const struct segment *segment, const struct domain_key *key)
{
	for (uint32_t i = 0; i < SEGMENT_DOMAINS; i++) {
		const struct segment_domain *domain = entry_at(segment, i);

		if (owner_of(segment, i) && domain->device == key->device &&
		    domain->st_dev == key->st_dev && domain->st_ino == key->st_ino)
			return true;
	}
	return false;
}

/* Stores the owner last: a process that is killed before has opened nothing. */
static bool enter(const struct segment *segment, const struct domain_key *key, uint32_t *entry)
{
	for (uint32_t i = 0; i < SEGMENT_DOMAINS; i++) {
		struct segment_domain *domain = entry_at(segment, i);

		if (owner_of(segment, i))
			continue;
		domain->device = key->device;
		domain->st_dev = key->st_dev;
		domain->st_ino = key->st_ino;
		atomic_store_explicit(&domain->owner, segment->id, memory_order_release);
		*entry = i;
		return true;
	}
	return false;
}

enum shared_domain domains_open(struct segment *segment, const struct domain_key *key, int oflags,
				uint32_t *entry)
{
	enum shared_domain opened = SHARED_DOMAIN_FULL;
	bool found;

	if (!segment_lock(segment, SEGMENT_PATIENCE_NS))
		return SHARED_DOMAIN_FULL;
	places_bury_dead(segment);
	found = has_table(segment) && exists(segment, key);
	if (found && oflags & O_EXCL)
		opened = SHARED_DOMAIN_EXISTS;
	else if (!found && !(oflags & O_CREAT))
		opened = SHARED_DOMAIN_ABSENT;
	else if (make_table(segment) && enter(segment, key, entry))
		opened = SHARED_DOMAIN_OPENED;
	segment_unlock(segment);
	return opened;
}

void domains_close(struct segment *segment, uint32_t entry)
{
	segment_id own = segment->id;

	if (own && entry < SEGMENT_DOMAINS && has_table(segment))
		atomic_compare_exchange_strong_explicit(&entry_at(segment, entry)->owner, &own, 0,
							memory_order_release, memory_order_relaxed);
}

void domains_free(struct segment *segment, segment_id owner)
{
	if (!has_table(segment))
		return;
	for (uint32_t i = 0; i < SEGMENT_DOMAINS; i++)
		if (owner_of(segment, i) == owner)
			atomic_store_explicit(&entry_at(segment, i)->owner, 0,
					      memory_order_release);
}
