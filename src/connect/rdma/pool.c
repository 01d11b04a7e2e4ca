/* SPDX-License-Identifier: MIT */
/*
 * Registered memory: large pieces, and small regions in them. What is free is noted outside of the
 * memory itself, where no peer can write.
 */
#include "src/connect/rdma/agent.h"

#include "src/base/failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Regions begin at multiples of a cache line, so that no two share one. */
#define GRAIN_BYTES 64
#define ALIGN_MAX   4096

static size_t round_up(size_t value, size_t multiple)
{
	return (value + multiple - 1) / multiple * multiple;
}

static struct piece *piece_new(struct vb_rdma_agent *agent, size_t length_bytes)
{
	struct piece *piece = calloc(1, sizeof(*piece));
	struct extent *all = calloc(1, sizeof(*all));

	if (piece && all)
		piece->region = vb_region_alloc(agent->device, agent->pd, length_bytes,
						IBV_ACCESS_LOCAL_WRITE);
	else
		fail(ENOMEM, "pool: no memory");
	if (!piece || !piece->region) {
		free(piece);
		free(all);
		return NULL;
	}
	all->length_bytes = length_bytes;
	piece->free = all;
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
	free(piece->free);
	free(piece);
}

/* Takes so much out of a free extent; what is before and behind stays free. */
static bool take(struct piece *piece, size_t length_bytes, size_t align_bytes, size_t *offset_bytes)
{
	for (struct extent **link = &piece->free; *link; link = &(*link)->next) {
		struct extent *here = *link, *behind;
		size_t at = round_up(here->offset_bytes, align_bytes);
		size_t before = at - here->offset_bytes;

		if (here->length_bytes < before || here->length_bytes - before < length_bytes)
			continue;
		if (before) {
			behind = calloc(1, sizeof(*behind));
			if (!behind)
				return false;
			*behind = (struct extent){here->next, at, here->length_bytes - before};
			here->length_bytes = before;
			here->next = behind;
			link = &here->next;
			here = behind;
		}
		here->offset_bytes += length_bytes;
		here->length_bytes -= length_bytes;
		if (!here->length_bytes) {
			*link = here->next;
			free(here);
		}
		piece->used_bytes += length_bytes;
		*offset_bytes = at;
		return true;
	}
	return false;
}

/* The extent becomes one with its neighbours. */
static void merge(struct extent *before, struct extent *here)
{
	struct extent *behind = here->next;

	if (behind && here->offset_bytes + here->length_bytes == behind->offset_bytes) {
		here->length_bytes += behind->length_bytes;
		here->next = behind->next;
		free(behind);
	}
	if (before && before->offset_bytes + before->length_bytes == here->offset_bytes) {
		before->length_bytes += here->length_bytes;
		before->next = here->next;
		free(here);
	}
}

static void give_back(struct piece *piece, size_t offset_bytes, size_t length_bytes)
{
	struct extent *here = calloc(1, sizeof(*here)), *before = NULL, *next = piece->free;

	piece->used_bytes -= length_bytes;
	/* Without memory for the note it is lost until the piece is empty, and no harm is done. */
	if (!here)
		return;
	while (next && next->offset_bytes < offset_bytes) {
		before = next;
		next = next->next;
	}
	*here = (struct extent){next, offset_bytes, length_bytes};
	if (before)
		before->next = here;
	else
		piece->free = here;
	merge(before, here);
}

static struct piece *find(struct vb_rdma_agent *agent, size_t length_bytes, size_t align_bytes,
			  size_t *offset_bytes)
{
	struct piece *piece;

	for (piece = agent->pool.pieces; piece; piece = piece->next)
		if (take(piece, length_bytes, align_bytes, offset_bytes))
			return piece;
	piece = piece_new(agent, length_bytes > agent->pool.piece_bytes
					 ? round_up(length_bytes, ALIGN_MAX)
					 : agent->pool.piece_bytes);
	if (!piece || take(piece, length_bytes, align_bytes, offset_bytes))
		return piece;
	fail(ENOMEM, "pool: no memory");
	return NULL;
}

struct vb_local_mr *pool_alloc(struct vb_rdma_agent *agent, size_t length_bytes, size_t align_bytes)
{
	size_t align = align_bytes < GRAIN_BYTES ? GRAIN_BYTES : align_bytes;
	struct vb_local_mr *mr;

	if (!length_bytes || length_bytes > SIZE_MAX / 4 || (align_bytes & (align_bytes - 1)) ||
	    align_bytes > ALIGN_MAX) {
		fail(EINVAL, "local region: %zu bytes, aligned to %zu", length_bytes, align_bytes);
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr) {
		fail(ENOMEM, "local region: no memory");
		return NULL;
	}
	mr->agent = agent;
	mr->length_bytes = length_bytes;
	mr->taken_bytes = round_up(length_bytes, GRAIN_BYTES);
	mr->piece = find(agent, mr->taken_bytes, align, &mr->offset_bytes);
	if (!mr->piece) {
		free(mr);
		return NULL;
	}
	mr->addr = (uint8_t *)mr->piece->region->addr + mr->offset_bytes;
	mr->lkey = mr->piece->region->mr->lkey;
	mr->references = 1;
	memset(mr->addr, 0, length_bytes);
	agent->locals++;
	return mr;
}

void local_put(struct vb_local_mr *mr)
{
	struct vb_rdma_agent *agent = mr->agent;

	if (--mr->references)
		return;
	agent->locals--;
	give_back(mr->piece, mr->offset_bytes, mr->taken_bytes);
	/* One empty piece is kept for what comes. */
	if (!mr->piece->used_bytes && (agent->pool.pieces != mr->piece || mr->piece->next))
		piece_drop(&agent->pool, mr->piece);
	free(mr);
}

void pool_close(struct pool *pool)
{
	while (pool->pieces)
		piece_drop(pool, pool->pieces);
}
