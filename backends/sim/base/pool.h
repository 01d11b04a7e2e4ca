/* SPDX-License-Identifier: MIT */
/*
 * Memory that keeps its type: objects of one size, which stay readable until the pool ends, and of
 * which the one that was given back longest ago is handed out next. So a stale pointer can be read,
 * and is recognised as stale.
 */
#ifndef BACKENDS_SIM_BASE_POOL_H
#define BACKENDS_SIM_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool_slab;

struct pool {
	size_t object_bytes;
	struct pool_slab *slabs;
	void *oldest, *newest; /* the queue of the objects that were given back */
	size_t rest_count;     /* counts them */
	size_t unused; /* counts the objects of the newest slab that were never handed out */
};

void pool_init(struct pool *pool, size_t object_bytes);

/* Returns true if the next pool_take() succeeds, for which it may allocate. */
bool pool_prepare(struct pool *pool);

/* Returns a zeroed object; NULL if out of memory and no object rests. */
void *pool_take(struct pool *pool);

/* Gives back an object of this pool. Its bytes stay unchanged until it is taken again. */
void pool_give(struct pool *pool, void *object);

/* Frees all objects. */
void pool_end(struct pool *pool);

#endif
