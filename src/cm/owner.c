/* SPDX-License-Identifier: MIT */
#include "src/cm/owner.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define BUCKETS 4096

struct entry {
	struct entry *next;
	const void *object;
	enum owner_kind kind;
	const struct vb_backend *slot;
	const struct rdma_event_channel *channel; /* of an identifier */
};

static struct entry *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* As in src/verbs/objects.c: no other thread holds the lock while the process forks. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

static struct entry **bucket_of(const void *object)
{
	uintptr_t bits = (uintptr_t)object;

	return &table[((bits >> 4) ^ (bits >> 12) ^ (bits >> 20)) % BUCKETS];
}

/*
 * Returns the link to the newest entry of an object, or to the NULL that ends the chain. The caller
 * holds the lock.
 */
static struct entry **find(const void *object, enum owner_kind kind)
{
	struct entry **link = bucket_of(object);

	while (*link && ((*link)->object != object || (*link)->kind != kind))
		link = &(*link)->next;
	return link;
}

static const struct vb_backend *slot_of(const void *object, enum owner_kind kind)
{
	const struct entry *entry = *find(object, kind);

	return entry ? entry->slot : NULL;
}

const struct vb_backend *owner_of(const void *object, enum owner_kind kind)
{
	const struct vb_backend *slot;

	pthread_mutex_lock(&lock);
	slot = slot_of(object, kind);
	pthread_mutex_unlock(&lock);
	return slot;
}

/* Returns the owner of an identifier with this channel, or NULL. The caller holds the lock. */
static const struct vb_backend *slot_of_user(const struct rdma_event_channel *channel)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct entry *entry = table[i]; entry; entry = entry->next)
			if (entry->kind == OWNER_ID && entry->channel == channel)
				return entry->slot;
	return NULL;
}

const struct vb_backend *owner_of_channel(const struct rdma_event_channel *channel)
{
	const struct vb_backend *slot;

	pthread_mutex_lock(&lock);
	slot = slot_of(channel, OWNER_CHANNEL);
	if (!slot)
		slot = slot_of_user(channel);
	pthread_mutex_unlock(&lock);
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
	struct entry **bucket = bucket_of(object);

	if (!entry)
		return ENOMEM;
	*entry = (struct entry){.object = object, .kind = kind, .slot = slot};
	if (kind == OWNER_ID)
		entry->channel = ((const struct rdma_cm_id *)object)->channel;

	pthread_mutex_lock(&lock);
	entry->next = *bucket;
	*bucket = entry;
	pthread_mutex_unlock(&lock);
	return 0;
}

void owner_note_channel(const struct rdma_cm_id *id)
{
	struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = *find(id, OWNER_ID);
	if (entry)
		entry->channel = id->channel;
	pthread_mutex_unlock(&lock);
}

/* Unlinks an entry; does nothing for NULL. The caller holds the lock. */
static struct entry *unlink_entry(struct entry **link)
{
	struct entry *entry = *link;

	if (entry)
		*link = entry->next;
	return entry;
}

const struct vb_backend *owner_take(const void *object, enum owner_kind kind)
{
	const struct vb_backend *slot;
	struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = unlink_entry(find(object, kind));
	pthread_mutex_unlock(&lock);
	slot = entry ? entry->slot : NULL;
	free(entry);
	return slot;
}

/*
 * Returns the link to the oldest entry of an object of @slot, or NULL. The caller holds the lock.
 */
static struct entry **find_oldest(const void *object, enum owner_kind kind,
				  const struct vb_backend *slot)
{
	struct entry **oldest = NULL;

	for (struct entry **link = bucket_of(object); *link; link = &(*link)->next)
		if ((*link)->object == object && (*link)->kind == kind && (*link)->slot == slot)
			oldest = link;
	return oldest;
}

void owner_forget(const void *object, enum owner_kind kind, const struct vb_backend *slot)
{
	struct entry *entry = NULL;
	struct entry **link;

	pthread_mutex_lock(&lock);
	link = find_oldest(object, kind, slot);
	if (link)
		entry = unlink_entry(link);
	pthread_mutex_unlock(&lock);
	free(entry);
}
