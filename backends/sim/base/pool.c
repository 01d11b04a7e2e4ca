/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/pool.h"

#include <stdlib.h>
#include <string.h>

/* The oldest resting object is handed out again only while more than this many rest. */
#define REST_OBJECTS 256
#define SLAB_OBJECTS 32
#define ALIGN_BYTES  64

struct pool_slab {
	struct pool_slab *next;
	_Alignas(ALIGN_BYTES) unsigned char objects[];
};

/* Behind each object stands the link to the next one in the queue of resting objects. */
static void **next_of(const struct pool *pool, void *object)
{
	return (void **)((char *)object + pool->object_bytes - sizeof(void *));
}

void pool_init(struct pool *pool, size_t object_bytes)
{
	const size_t linked_bytes = object_bytes + sizeof(void *);

	*pool = (struct pool){
		.object_bytes = (linked_bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1),
	};
}

static int grow(struct pool *pool)
{
	struct pool_slab *slab =
		aligned_alloc(ALIGN_BYTES, sizeof(*slab) + SLAB_OBJECTS * pool->object_bytes);

	if (!slab)
		return -1;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->unused = SLAB_OBJECTS;
	return 0;
}

/* Returns the object that rests longest; NULL if none rests. */
static void *wake(struct pool *pool)
{
	void *object = pool->oldest;

	if (!pool->rest_count)
		return NULL;
	pool->oldest = *next_of(pool, object);
	pool->rest_count--;
	return object;
}

bool pool_prepare(struct pool *pool)
{
	return pool->unused || pool->rest_count || !grow(pool);
}

void *pool_take(struct pool *pool)
{
	void *object;

	if (pool->unused || (pool->rest_count <= REST_OBJECTS && !grow(pool)))
		object = pool->slabs->objects + --pool->unused * pool->object_bytes;
	else
		object = wake(pool);
	if (!object)
		return NULL;
	return memset(object, 0, pool->object_bytes);
}

void pool_give(struct pool *pool, void *object)
{
	if (pool->rest_count++)
		*next_of(pool, pool->newest) = object;
	else
		pool->oldest = object;
	pool->newest = object;
}

void pool_end(struct pool *pool)
{
	while (pool->slabs) {
		struct pool_slab *slab = pool->slabs;

		pool->slabs = slab->next;
		free(slab);
	}
	*pool = (struct pool){.object_bytes = pool->object_bytes};
}
