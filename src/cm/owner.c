/* SPDX-License-Identifier: MIT */
#include "src/cm/owner.h"

#include "src/base/handed.h"

#include <errno.h>
#include <stdlib.h>

#define BUCKETS 4096

struct entry {
	struct handed handed;			  /* kind: enum owner_kind */
	const struct rdma_event_channel *channel; /* of an identifier */
};

static struct handed *buckets[BUCKETS];
static const struct handed_table table = {buckets, BUCKETS};

static const struct vb_backend *slot_of(const void *object, enum owner_kind kind)
{
	const struct handed *entry = *handed_find(&table, object, kind);

	return entry ? entry->slot : NULL;
}

const struct vb_backend *owner_of(const void *object, enum owner_kind kind)
{
	const struct vb_backend *slot;

	handed_lock();
	slot = slot_of(object, kind);
	handed_unlock();
	return slot;
}

/* Returns the owner of an identifier with this channel, or NULL. The caller holds the lock. */
static const struct vb_backend *slot_of_user(const struct rdma_event_channel *channel)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct handed *entry = buckets[i]; entry; entry = entry->next)
			if (entry->kind == OWNER_ID &&
			    ((const struct entry *)entry)->channel == channel)
				return entry->slot;
	return NULL;
}

const struct vb_backend *owner_of_channel(const struct rdma_event_channel *channel)
{
	const struct vb_backend *slot;

	handed_lock();
	slot = slot_of(channel, OWNER_CHANNEL);
	if (!slot)
		slot = slot_of_user(channel);
	handed_unlock();
	return slot;
}

/*
 * The listener of a connection request lives until the event has been acknowledged; the new
 * identifier may have been ended before.
 */
const struct vb_backend *owner_of_event(const struct rdma_cm_event *event)
{
	return owner_of(event->listen_id ? event->listen_id : event->id, OWNER_ID);
}

int owner_add(const void *object, enum owner_kind kind, const struct vb_backend *slot)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return ENOMEM;
	*entry = (struct entry){.handed = {.object = object, .kind = kind, .slot = slot}};
	if (kind == OWNER_ID)
		entry->channel = ((const struct rdma_cm_id *)object)->channel;
	handed_add(&table, &entry->handed);
	return 0;
}

void owner_note_channel(const struct rdma_cm_id *id)
{
	struct entry *entry;

	handed_lock();
	entry = (struct entry *)*handed_find(&table, id, OWNER_ID);
	if (entry)
		entry->channel = id->channel;
	handed_unlock();
}

const struct vb_backend *owner_take(const void *object, enum owner_kind kind)
{
	struct handed *entry = handed_take(&table, object, kind);
	const struct vb_backend *slot = entry ? entry->slot : NULL;

	free(entry);
	return slot;
}

/*
 * Returns the link to the oldest entry of an object of @slot, or NULL. The caller holds the lock.
 */
static struct handed **find_oldest(const void *object, enum owner_kind kind,
				   const struct vb_backend *slot)
{
	struct handed **oldest = NULL;

	for (struct handed **link = handed_bucket(&table, object); *link; link = &(*link)->next)
		if ((*link)->object == object && (*link)->kind == kind && (*link)->slot == slot)
			oldest = link;
	return oldest;
}

void owner_forget(const void *object, enum owner_kind kind, const struct vb_backend *slot)
{
	struct handed *entry = NULL;
	struct handed **link;

	handed_lock();
	link = find_oldest(object, kind, slot);
	if (link) {
		entry = *link;
		*link = entry->next;
	}
	handed_unlock();
	free(entry);
}
