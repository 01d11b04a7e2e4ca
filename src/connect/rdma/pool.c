/* SPDX-License-Identifier: MIT */
/*
 * Local regions: large registered pieces of memory, cut into small regions. The map of what is
 * taken stands outside the pieces, where no peer can write.
 */
#include "src/connect/rdma/agent.h"

#include <string.h>

/* Regions begin at multiples of a cache line, so that no two share one. */
#define GRAIN_BYTES 64u
#define ALIGN_MAX   4096u

struct piece {
	struct piece *next;
	struct vb_region *region;
	size_t grains, used;
	uint8_t taken[]; /* 1 for each grain that belongs to a region */
};

static size_t round_up(size_t value, size_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

static size_t grains_of(size_t length_bytes)
{
	return round_up(length_bytes, GRAIN_BYTES) / GRAIN_BYTES;
}

static struct piece *piece_new(struct vb_rdma_agent *agent, size_t length_bytes)
{
	size_t grains = grains_of(round_up(length_bytes, ALIGN_MAX));
	struct piece *piece = object_new(sizeof(*piece) + grains, "pool");

	if (!piece)
		return NULL;
	piece->region = vb_region_alloc(agent->device, agent->pd, grains * GRAIN_BYTES,
					IBV_ACCESS_LOCAL_WRITE);
	if (!piece->region)
		return object_drop(piece, errno);
	piece->grains = grains;
	piece->next = agent->pool.pieces;
	agent->pool.pieces = piece;
	return piece;
}

static void piece_drop(struct pool *pool, struct piece *piece)
{
	struct piece **link = &pool->pieces;

	while (*link != piece)
		link = &(*link)->next;
	*link = piece->next;
	vb_region_free(piece->region);
	free(piece);
}

/* Takes the first free run of grains. Returns its address, or NULL if the piece has none. */
static uint8_t *take(struct piece *piece, size_t grains, size_t align)
{
	size_t at = 0;

	while (at <= piece->grains && grains <= piece->grains - at) {
		const uint8_t *last_taken = memrchr(piece->taken + at, 1, grains);

		if (!last_taken) {
			memset(piece->taken + at, 1, grains);
			piece->used += grains;
			return (uint8_t *)piece->region->addr + at * GRAIN_BYTES;
		}
		at = round_up((size_t)(last_taken - piece->taken) + 1, align);
	}
	return NULL;
}

/* Finds room for a region in the pool, or makes a piece. Returns the piece, or NULL with errno. */
static struct piece *find_room(struct vb_local_mr *mr, size_t align_bytes)
{
	struct pool *pool = &mr->agent->pool;
	size_t grains = grains_of(mr->length_bytes);
	size_t align = grains_of(align_bytes ? align_bytes : 1);
	struct piece *piece = pool->pieces;

	while (piece && !(mr->addr = take(piece, grains, align)))
		piece = piece->next;
	if (piece)
		return piece;
	piece = piece_new(mr->agent, mr->length_bytes > pool->piece_bytes ? mr->length_bytes
									  : pool->piece_bytes);
	if (piece)
		mr->addr = take(piece, grains, align);
	return piece;
}

struct vb_local_mr *pool_alloc(struct vb_rdma_agent *agent, size_t length_bytes, size_t align_bytes)
{
	struct vb_local_mr *mr;

	if (!length_bytes || length_bytes > SIZE_MAX / 4 || (align_bytes & (align_bytes - 1)) ||
	    align_bytes > ALIGN_MAX) {
		fail(EINVAL, "local region: %zu bytes, aligned to %zu", length_bytes, align_bytes);
		return NULL;
	}
	mr = object_new(sizeof(*mr), "local region");
	if (!mr)
		return NULL;
	mr->agent = agent;
	mr->length_bytes = length_bytes;
	mr->piece = find_room(mr, align_bytes);
	if (!mr->piece)
		return object_drop(mr, errno);
	mr->lkey = mr->piece->region->mr->lkey;
	mr->references = 1;
	memset(mr->addr, 0, length_bytes);
	agent->locals++;
	return mr;
}

void local_put(struct vb_local_mr *mr)
{
	struct piece *piece;
	struct pool *pool;
	size_t grains;

	if (!mr || --mr->references)
		return;
	pool = &mr->agent->pool;
	piece = mr->piece;
	grains = grains_of(mr->length_bytes);
	mr->agent->locals--;
	memset(piece->taken + (size_t)(mr->addr - (uint8_t *)piece->region->addr) / GRAIN_BYTES, 0,
	       grains);
	piece->used -= grains;
	/* The pool keeps one empty piece for the next region. */
	if (!piece->used && (pool->pieces != piece || piece->next))
		piece_drop(pool, piece);
	free(mr);
}

void pool_close(struct pool *pool)
{
	while (pool->pieces)
		piece_drop(pool, pool->pieces);
}

struct vb_local_mr *vb_alloc_local_mr(struct vb_rdma_agent *agent, size_t length_bytes,
				      size_t align_bytes)
{
	struct vb_local_mr *mr;

	agent_lock(agent);
	mr = pool_alloc(agent, length_bytes, align_bytes);
	agent_unlock(agent);
	return mr;
}

void *vb_local_mr_addr(const struct vb_local_mr *mr)
{
	return mr->addr;
}

size_t vb_local_mr_bytes(const struct vb_local_mr *mr)
{
	return mr->length_bytes;
}

struct vb_local_mr *vb_local_mr_get(struct vb_local_mr *mr)
{
	agent_lock(mr->agent);
	mr->references++;
	agent_unlock(mr->agent);
	return mr;
}

void vb_local_mr_put(struct vb_local_mr *mr)
{
	struct vb_rdma_agent *agent;

	if (!mr)
		return;
	agent = mr->agent;
	agent_lock(agent);
	local_put(mr);
	agent_unlock(agent);
}
