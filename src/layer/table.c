/* SPDX-License-Identifier: MIT */
#include "src/layer/table.h"

#include "src/base/fork.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS		16384
#define CONTEXT_BUCKETS 256

const char *const layer_kind_names[LAYER_KINDS] = {
	[LAYER_NO_KIND] = "",
	[LAYER_CONTEXT] = "context",
	[LAYER_PD] = "pd",
	[LAYER_TD] = "td",
	[LAYER_XRCD] = "xrcd",
	[LAYER_MR] = "mr",
	[LAYER_MW] = "mw",
	[LAYER_DM] = "dm",
	[LAYER_CHANNEL] = "channel",
	[LAYER_CQ] = "cq",
	[LAYER_SRQ] = "srq",
	[LAYER_QP] = "qp",
	[LAYER_AH] = "ah",
	[LAYER_WQ] = "wq",
	[LAYER_IND_TABLE] = "rwq_ind_table",
	[LAYER_FLOW] = "flow",
	[LAYER_FLOW_ACTION] = "flow_action",
	[LAYER_COUNTERS] = "counters",
	[LAYER_ID] = "id",
	[LAYER_EVENT_CHANNEL] = "event_channel",
};

static struct layer_entry *_Atomic buckets[BUCKETS];
static struct layer_entry
	*of_contexts[CONTEXT_BUCKETS]; /* lists of entries, by the hash of their context */
static struct layer_device *devices;
static struct layer_device no_device; /* counts the objects that have none */
static uint64_t last_serial;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while entries change */

HOLD_DURING_FORK(lock);

/* The high bits depend on all bits of the address. */
static uint64_t hash_of(const void *object)
{
	return ((uint64_t)(uintptr_t)object >> 3) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct layer_entry *_Atomic *bucket_of(const void *object)
{
	return &buckets[hash_of(object) >> 50];
}
_Static_assert(BUCKETS == 1 << 14, "bucket_of() takes the 14 high bits");

static struct layer_entry **bucket_of_context(const struct ibv_context *context)
{
	return &of_contexts[hash_of(context) >> 56];
}
_Static_assert(CONTEXT_BUCKETS == 1 << 8, "bucket_of_context() takes the 8 high bits");

struct layer_entry *table_find(const void *object, enum layer_kind kind)
{
	struct layer_entry *entry;

	if (!object)
		return NULL;
	entry = atomic_load_explicit(bucket_of(object), memory_order_acquire);
	while (entry && (atomic_load_explicit(&entry->object, memory_order_acquire) != object ||
			 (kind != LAYER_NO_KIND && entry->kind != kind)))
		entry = atomic_load_explicit(&entry->next, memory_order_acquire);
	return entry;
}

/* Returns the object of a kind and device that has this place, or, if place is 0, this number. */
static const void *search(enum layer_kind kind, const char *device, uint32_t place, uint32_t number)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct layer_entry *entry = atomic_load(&buckets[i]); entry;
		     entry = atomic_load(&entry->next)) {
			const void *object = atomic_load(&entry->object);

			if (object && entry->kind == kind && entry->device &&
			    (place ? entry->place == place : entry->number == number) &&
			    strcmp(entry->device->name, device) == 0)
				return object;
		}
	return NULL;
}

const void *table_find_place(enum layer_kind kind, const char *device, uint32_t place)
{
	return search(kind, device, place, 0);
}

const void *table_find_qpn(const char *device, uint32_t qpn)
{
	return search(LAYER_QP, device, 0, qpn);
}

/* Returns a free entry of the bucket. The caller holds the lock. */
static struct layer_entry *free_entry(struct layer_entry *_Atomic *bucket)
{
	struct layer_entry *entry = atomic_load(bucket);

	while (entry && atomic_load(&entry->object))
		entry = atomic_load(&entry->next);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	atomic_init(&entry->next, atomic_load(bucket));
	atomic_store_explicit(bucket, entry, memory_order_release);
	return entry;
}

/* Returns NULL if the device has no name, or without memory. The caller holds the lock. */
static struct layer_device *device_of(const struct ibv_device *device)
{
	struct layer_device *known = devices;

	if (!device || !*device->name)
		return NULL;
	while (known && strncmp(known->name, device->name, sizeof(known->name)) != 0)
		known = known->next;
	if (known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	memcpy(known->name, device->name, sizeof(known->name) - 1);
	known->next = devices;
	devices = known;
	return known;
}

/* Removes an entry from the list of its context. The caller holds the lock. */
static void leave_context(struct layer_entry *entry)
{
	if (!entry->of_context_from)
		return;
	*entry->of_context_from = entry->of_context;
	if (entry->of_context)
		entry->of_context->of_context_from = entry->of_context_from;
	entry->of_context_from = NULL;
}

/* Sets the context of an entry, and adds the entry to the context's list. The caller holds the lock. */
static void join_context(struct layer_entry *entry, struct ibv_context *context)
{
	struct layer_entry **first = bucket_of_context(context);

	leave_context(entry);
	entry->context = context;
	entry->of_context = *first;
	entry->of_context_from = first;
	if (entry->of_context)
		entry->of_context->of_context_from = &entry->of_context;
	*first = entry;
}

/* Removes an entry; a new object may take its memory. The caller holds the lock. */
static void take_out(struct layer_entry *entry)
{
	leave_context(entry);
	atomic_store_explicit(&entry->object, NULL, memory_order_release);
}

static uint32_t qpn_of(const void *qp)
{
	return ((const struct ibv_qp *)qp)->qp_num;
}

/* The caller holds the lock. */
static struct layer_entry *enter(const void *object, enum layer_kind kind,
				 struct ibv_context *context, struct layer_entry *old)
{
	struct layer_entry *entry = old ? old : free_entry(bucket_of(object));

	if (!entry)
		return NULL;
	entry->kind = kind;
	entry->serial = ++last_serial;
	join_context(entry, context);
	entry->device = device_of(context ? context->device : NULL);
	entry->place = ++(entry->device ? entry->device : &no_device)->counts[kind];
	entry->number = entry->place;
	if (kind == LAYER_QP)
		entry->number = qpn_of(object);
	atomic_store_explicit(&entry->object, object, memory_order_release);
	return entry;
}

struct layer_entry *table_enter(const void *object, enum layer_kind kind,
				struct ibv_context *context)
{
	struct layer_entry *entry;

	pthread_mutex_lock(&lock);
	entry = enter(object, kind, context, table_find(object, kind));
	pthread_mutex_unlock(&lock);
	return entry;
}

struct layer_entry *table_enter_unknown(const void *object, enum layer_kind kind,
					struct ibv_context *context)
{
	struct layer_entry *entry = NULL, *old;

	pthread_mutex_lock(&lock);
	old = table_find(object, kind);
	if (!old || (kind == LAYER_QP && old->number != qpn_of(object)))
		entry = enter(object, kind, context, old);
	pthread_mutex_unlock(&lock);
	return entry;
}

void table_remove(struct layer_entry *entry, uint64_t serial)
{
	pthread_mutex_lock(&lock);
	if (entry->serial == serial)
		take_out(entry);
	pthread_mutex_unlock(&lock);
}

void table_each(void (*see)(struct layer_entry *entry, const void *arg), const void *arg)
{
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct layer_entry *entry = atomic_load(&buckets[i]); entry;
		     entry = atomic_load(&entry->next))
			if (atomic_load(&entry->object))
				see(entry, arg);
}

/* Calls see() for each entry of a context, and then removes the entry if `remove` is set. */
static void each_of(const struct ibv_context *context, void (*see)(struct layer_entry *entry),
		    bool remove)
{
	struct layer_entry *next;

	pthread_mutex_lock(&lock);
	for (struct layer_entry *entry = *bucket_of_context(context); entry; entry = next) {
		next = entry->of_context;
		if (entry->context != context)
			continue;
		see(entry);
		if (remove)
			take_out(entry);
	}
	pthread_mutex_unlock(&lock);
}

void table_each_of(const struct ibv_context *context, void (*see)(struct layer_entry *entry))
{
	each_of(context, see, false);
}

void table_remove_of(const struct ibv_context *context, void (*see)(struct layer_entry *entry))
{
	each_of(context, see, true);
}
