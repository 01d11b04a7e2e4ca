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

void pool_init(struct pool *pool, size_t object_bytes)
{
	*pool = (struct pool){
		.object_bytes = (object_bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1),
	};
}

/* The ring has room for every object, so that pool_give() cannot fail. */
static int grow_ring(struct pool *pool)
{
	size_t capacity = pool->rest_capacity ? 2 * pool->rest_capacity : SLAB_OBJECTS;
	void **ring;

	if (pool->object_count + SLAB_OBJECTS <= pool->rest_capacity)
		return 0;
	ring = malloc(capacity * sizeof(*ring));
	if (!ring)
		return -1;
	for (size_t i = 0; i < pool->rest_count; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
		ring[i] = pool->resting[(pool->rest_head + i) % pool->rest_capacity];
	free(pool->resting);
	pool->resting = ring;
	pool->rest_head = 0;
	pool->rest_capacity = capacity;
	return 0;
}

static int grow(struct pool *pool)
{
	struct pool_slab *slab;

	if (grow_ring(pool))
		return -1;
	slab = aligned_alloc(ALIGN_BYTES, sizeof(*slab) + SLAB_OBJECTS * pool->object_bytes);
	if (!slab)
		return -1;
	pool->object_count += SLAB_OBJECTS;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->unused = SLAB_OBJECTS;
	return 0;
}

void *pool_take(struct pool *pool)
{
	void *object;

	if (!pool->unused && pool->rest_count > REST_OBJECTS) {
		object = pool->resting[pool->rest_head];
		pool->rest_head = (pool->rest_head + 1) % pool->rest_capacity;
		pool->rest_count--;
	} else {
		if (!pool->unused && grow(pool))
			return NULL;
		object = pool->slabs->objects + --pool->unused * pool->object_bytes;
	}
	return memset(object, 0, pool->object_bytes);
}

void pool_give(struct pool *pool, void *object)
{
	pool->resting[(pool->rest_head + pool->rest_count) % pool->rest_capacity] = object;
	pool->rest_count++;
}

void pool_end(struct pool *pool)
{
	while (pool->slabs) {
		struct pool_slab *slab = pool->slabs;

		pool->slabs = slab->next;
		free(slab);
	}
	free(pool->resting);
	*pool = (struct pool){.object_bytes = pool->object_bytes};
}
