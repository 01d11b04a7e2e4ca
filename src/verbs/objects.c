/* SPDX-License-Identifier: MIT */
#include "src/verbs/objects.h"

#include "src/base/handed.h"
#include "src/verbs/registry.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define BUCKETS 256

enum kind { LIST, CONTEXT };

struct entry {
	struct handed handed;
	size_t count;
	const struct ibv_device *devices[]; /* a copy: the program may change the array of a list */
};

static struct handed *buckets[BUCKETS];
static const struct handed_table table = {buckets, BUCKETS};

static int add(const void *object, enum kind kind, struct ibv_device *const *devices, size_t count,
	       const struct vb_backend *slot)
{
	struct entry *entry = malloc(sizeof(*entry) + count * sizeof(void *));

	if (!entry)
		return ENOMEM;
	*entry = (struct entry){.handed = {.object = object, .kind = kind, .slot = slot},
				.count = count};
	for (size_t i = 0; i < count; i++)
		entry->devices[i] = devices[i];
	handed_add(&table, &entry->handed);
	return 0;
}

static const struct vb_backend *take(const void *object, enum kind kind)
{
	struct handed *entry = handed_take(&table, object, kind);
	const struct vb_backend *slot = entry ? entry->slot : NULL;

	free(entry);
	return slot;
}

static bool holds(const struct handed *handed, const struct ibv_device *device)
{
	const struct entry *entry = (const struct entry *)handed;

	for (size_t i = 0; i < entry->count; i++)
		if (entry->devices[i] == device)
			return true;
	return false;
}

/* Returns a list or a context that holds the device, or NULL. The caller holds the lock. */
static const struct handed *find_holder(const struct ibv_device *device)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct handed *entry = buckets[i]; entry; entry = entry->next)
			if (holds(entry, device))
				return entry;
	return NULL;
}

const struct vb_backend *objects_context_slot(const struct ibv_context *context)
{
	const struct vb_backend *slot;
	const struct handed *entry;

	handed_lock();
	entry = *handed_find(&table, context, CONTEXT);
	slot = entry ? entry->slot : NULL;
	handed_unlock();
	for (unsigned int i = 0; !slot && registry_at(i); i++)
		if (registry_at(i)->owns_context && registry_at(i)->owns_context(context))
			slot = registry_at(i);
	return slot;
}

const struct vb_backend *objects_device_slot(const struct ibv_device *device)
{
	const struct vb_backend *slot;
	const struct handed *entry;

	handed_lock();
	entry = find_holder(device);
	slot = entry ? entry->slot : NULL;
	handed_unlock();
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
	handed_lock();
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct handed *entry = buckets[i]; entry; entry = entry->next)
			if (entry->kind == CONTEXT)
				see((struct ibv_context *)entry->object, entry->slot);
	handed_unlock();
}

void objects_forget_context(struct ibv_context *context)
{
	take(context, CONTEXT);
}
