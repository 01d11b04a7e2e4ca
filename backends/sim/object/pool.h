/* SPDX-License-Identifier: MIT */
/*
 * Memory that keeps its type: objects of one size that are not handed out again soon after they
 * were given back, and not returned to the system before the pool ends. So a stale handle can be
 * read, and be told from a live one.
 */
#ifndef BACKENDS_SIM_OBJECT_POOL_H
#define BACKENDS_SIM_OBJECT_POOL_H

#include <stddef.h>
#include <stdint.h>

struct pool_slab;

struct pool {
	size_t object_bytes;
	struct pool_slab *slabs;
	void **resting; /* a ring: given back, the oldest first */
	size_t rest_head, rest_count, rest_capacity;
	size_t object_count; /* of all slabs */
	size_t unused;	     /* objects of the newest slab that were never handed out */
};

void pool_init(struct pool *pool, size_t object_bytes);

/* A zeroed object, or NULL. */
void *pool_take(struct pool *pool);

/* Gives an object of this pool back. Its bytes stay as they are until it is taken again. */
void pool_give(struct pool *pool, void *object);

/* Frees everything. */
void pool_end(struct pool *pool);

#endif
