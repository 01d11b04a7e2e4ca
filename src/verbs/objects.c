/* SPDX-License-Identifier: MIT */
#include "src/verbs/objects.h"

#include "src/verbs/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUCKETS 256

enum kind { LIST, DEVICE, CONTEXT };

struct entry {
	struct entry *next;
	const void *object;
	enum kind kind;
	const struct vb_backend *slot;
	size_t holders;			/* DEVICE: counts its lists and contexts */
	const struct ibv_device **held; /* LIST, CONTEXT: the devices that it holds, then NULL */
};

static struct entry *table[BUCKETS];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* The child of fork() has the forking thread only, so no other thread may hold the lock then. */
static void before_fork(void)
{
	pthread_rwlock_wrlock(&lock);
}

static void after_fork(void)
{
	pthread_rwlock_unlock(&lock);
}

/* The child makes a new lock: glibc knows a writer by its thread ID, which differs in the child. */
static void after_fork_in_child(void)
{
	pthread_rwlock_init(&lock, NULL);
}

__attribute__((constructor)) static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
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

static struct entry *insert(const void *object, enum kind kind, const struct vb_backend *slot)
{
	struct entry **bucket = bucket_of(object);
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->object = object;
	entry->kind = kind;
	entry->slot = slot;
	entry->next = *bucket;
	*bucket = entry;
	return entry;
}

static void erase(struct entry **link)
{
	struct entry *entry = *link;

	*link = entry->next;
	free(entry->held);
	free(entry);
}

static int hold_device(const struct ibv_device *device, const struct vb_backend *slot)
{
	struct entry *entry = *find(device, DEVICE);

	if (!entry)
		entry = insert(device, DEVICE, slot);
	if (!entry)
		return ENOMEM;
	/* The address may be that of a device which another backend has freed. */
	entry->slot = slot;
	entry->holders++;
	return 0;
}

static void release_device(const struct ibv_device *device)
{
	struct entry **link = find(device, DEVICE);

	if (*link && --(*link)->holders == 0)
		erase(link);
}

/* Adds a list or a context. The entry copies the array, which the program may change. */
static int add_holder(const void *object, enum kind kind, struct ibv_device *const *devices,
		      size_t count, const struct vb_backend *slot)
{
	const struct ibv_device **held = calloc(count + 1, sizeof(struct ibv_device *));
	struct entry *entry = held ? insert(object, kind, slot) : NULL;

	if (!entry) {
		free(held);
		return ENOMEM;
	}
	entry->held = held;
	for (size_t i = 0; i < count; i++) {
		if (hold_device(devices[i], slot)) {
			while (i--)
				release_device(devices[i]);
			erase(find(object, kind));
			return ENOMEM;
		}
		held[i] = devices[i];
	}
	return 0;
}

static const struct vb_backend *take_holder(const void *object, enum kind kind)
{
	const struct vb_backend *slot = NULL;
	struct entry **link;

	pthread_rwlock_wrlock(&lock);
	link = find(object, kind);
	if (*link) {
		const struct ibv_device **held = (*link)->held;

		slot = (*link)->slot;
		(*link)->held = NULL;
		erase(link);
		for (size_t i = 0; held[i]; i++)
			release_device(held[i]);
		free(held);
	}
	pthread_rwlock_unlock(&lock);
	return slot;
}

static const struct vb_backend *remembered(const void *object, enum kind kind)
{
	const struct vb_backend *slot;
	struct entry *entry;

	pthread_rwlock_rdlock(&lock);
	entry = *find(object, kind);
	slot = entry ? entry->slot : NULL;
	pthread_rwlock_unlock(&lock);
	return slot;
}

const struct vb_backend *objects_context_slot(const struct ibv_context *context)
{
	const struct vb_backend *slot = remembered(context, CONTEXT);

	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_context && registry_at(i)->owns_context(context))
			slot = registry_at(i);
	return slot;
}

const struct vb_backend *objects_device_slot(const struct ibv_device *device)
{
	const struct vb_backend *slot = remembered(device, DEVICE);

	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_device && registry_at(i)->owns_device(device))
			slot = registry_at(i);
	return slot;
}

int objects_add_list(struct ibv_device **list, const struct vb_backend *slot)
{
	size_t count = 0;
	int err;

	if (slot->owns_list && slot->owns_device)
		return 0;
	while (list[count] && !slot->owns_device)
		count++;
	pthread_rwlock_wrlock(&lock);
	err = add_holder(list, LIST, list, count, slot);
	pthread_rwlock_unlock(&lock);
	return err;
}

int objects_add_context(struct ibv_context *context, const struct vb_backend *slot)
{
	size_t count = context->device && !slot->owns_device;
	int err;

	if (slot->owns_context && slot->owns_device)
		return 0;
	pthread_rwlock_wrlock(&lock);
	err = add_holder(context, CONTEXT, &context->device, count, slot);
	pthread_rwlock_unlock(&lock);
	return err;
}

const struct vb_backend *objects_take_list(struct ibv_device **list)
{
	const struct vb_backend *slot = take_holder(list, LIST);

	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_list && registry_at(i)->owns_list(list))
			slot = registry_at(i);
	return slot;
}

void objects_forget_context(struct ibv_context *context)
{
	take_holder(context, CONTEXT);
}
