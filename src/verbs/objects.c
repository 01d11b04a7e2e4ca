/* SPDX-License-Identifier: MIT */
#include "src/verbs/objects.h"

#include "src/verbs/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define BUCKETS 256

enum kind { LIST, CONTEXT };

struct entry {
	struct entry *next;
	const void *object;
	enum kind kind;
	const struct vb_backend *slot;
	size_t count;
	const struct ibv_device *devices[]; /* a copy: the program may change the array of a list */
};

static struct entry *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The child of fork() has the forking thread only, so no other thread may hold the lock then. The
 * child unlocks what its thread locked before fork(): a mutex allows that, a rwlock of glibc does
 * not.
 */
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

	/* Allocations are 16 bytes apart or more; page-sized ones differ above the page. */
	return &table[((bits >> 4) ^ (bits >> 12) ^ (bits >> 20)) % BUCKETS];
}

/* Returns the link to an entry, or to the NULL that ends the chain. The caller holds the lock. */
static struct entry **find(const void *object, enum kind kind)
{
	struct entry **link = bucket_of(object);

	while (*link && ((*link)->object != object || (*link)->kind != kind))
		link = &(*link)->next;
	return link;
}

static int add(const void *object, enum kind kind, struct ibv_device *const *devices, size_t count,
	       const struct vb_backend *slot)
{
	struct entry *entry = malloc(sizeof(*entry) + count * sizeof(void *));
	struct entry **bucket = bucket_of(object);

	if (!entry)
		return ENOMEM;
	*entry = (struct entry){.object = object, .kind = kind, .slot = slot, .count = count};
	for (size_t i = 0; i < count; i++)
		entry->devices[i] = devices[i];

	pthread_mutex_lock(&lock);
	entry->next = *bucket;
	*bucket = entry;
	pthread_mutex_unlock(&lock);
	return 0;
}

static const struct vb_backend *take(const void *object, enum kind kind)
{
	const struct vb_backend *slot;
	struct entry **link;
	struct entry *entry;

	pthread_mutex_lock(&lock);
	link = find(object, kind);
	entry = *link;
	if (entry)
		*link = entry->next;
	pthread_mutex_unlock(&lock);
	slot = entry ? entry->slot : NULL;
	free(entry);
	return slot;
}

static bool holds(const struct entry *entry, const struct ibv_device *device)
{
	for (size_t i = 0; i < entry->count; i++)
		if (entry->devices[i] == device)
			return true;
	return false;
}

/* Returns a list or a context that holds the device, or NULL. The caller holds the lock. */
static const struct entry *find_holder(const struct ibv_device *device)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct entry *entry = table[i]; entry; entry = entry->next)
			if (holds(entry, device))
				return entry;
	return NULL;
}

const struct vb_backend *objects_context_slot(const struct ibv_context *context)
{
	const struct vb_backend *slot;
	const struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = *find(context, CONTEXT);
	slot = entry ? entry->slot : NULL;
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_context && registry_at(i)->owns_context(context))
			slot = registry_at(i);
	return slot;
}

const struct vb_backend *objects_device_slot(const struct ibv_device *device)
{
	const struct vb_backend *slot;
	const struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = find_holder(device);
	slot = entry ? entry->slot : NULL;
	pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_device && registry_at(i)->owns_device(device))
			slot = registry_at(i);
	return slot;
}

int objects_add_list(struct ibv_device **list, const struct vb_backend *slot)
{
	size_t count = 0;

	if (slot->owns_list && slot->owns_device)
		return 0;
	while (list[count] && !slot->owns_device)
		count++;
	return add(list, LIST, list, count, slot);
}

int objects_add_context(struct ibv_context *context, const struct vb_backend *slot)
{
	size_t count = context->device && !slot->owns_device;

	return add(context, CONTEXT, &context->device, count, slot);
}

const struct vb_backend *objects_take_list(struct ibv_device **list)
{
	const struct vb_backend *slot = take(list, LIST);

	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_list && registry_at(i)->owns_list(list))
			slot = registry_at(i);
	return slot;
}

void objects_each_context(void (*see)(struct ibv_context *context, const struct vb_backend *slot))
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct entry *entry = table[i]; entry; entry = entry->next)
			if (entry->kind == CONTEXT)
				see((struct ibv_context *)entry->object, entry->slot);
	pthread_mutex_unlock(&lock);
}

void objects_forget_context(struct ibv_context *context)
{
	take(context, CONTEXT);
}
