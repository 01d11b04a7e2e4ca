/* SPDX-License-Identifier: MIT */
#include "src/base/handed.h"

#include "src/base/fork.h"

#include <stdint.h>

/* The child of a fork() unlocks what its thread locked before: a mutex allows that, a rwlock of glibc does not. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HOLD_DURING_FORK(lock);

void handed_lock(void)
{
	pthread_mutex_lock(&lock);
}

void handed_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct handed **handed_bucket(const struct handed_table *table, const void *object)
{
	uintptr_t bits = (uintptr_t)object;

	/* Allocations are 16 bytes apart or more; page-sized ones differ above the page. */
	return &table->buckets[((bits >> 4) ^ (bits >> 12) ^ (bits >> 20)) % table->count];
}

struct handed **handed_find(const struct handed_table *table, const void *object, unsigned int kind)
{
	struct handed **link = handed_bucket(table, object);

	while (*link && ((*link)->object != object || (*link)->kind != kind))
		link = &(*link)->next;
	return link;
}

void handed_add(const struct handed_table *table, struct handed *entry)
{
	struct handed **bucket;

	handed_lock();
	bucket = handed_bucket(table, entry->object);
	entry->next = *bucket;
	*bucket = entry;
	handed_unlock();
}

struct handed *handed_take(const struct handed_table *table, const void *object, unsigned int kind)
{
	struct handed **link, *entry;

	handed_lock();
	link = handed_find(table, object, kind);
	entry = *link;
	if (entry)
		*link = entry->next;
	handed_unlock();
	return entry;
}
