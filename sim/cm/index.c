/* SPDX-License-Identifier: MIT */
#include "sim/cm/index.h"

#include <stddef.h>

uint32_t sim_cm_index_bucket(struct sim_cm_key key)
{
	const uint64_t mixed = (key.high ^ (uint64_t)key.low << 17) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 52);
}

_Static_assert(SIM_CM_BUCKETS == 1u << 12, "the hash has 12 bits");

static struct sim_cm_node *const *bucket_of(const struct sim_cm_index *index, struct sim_cm_key key)
{
	return &index->buckets[sim_cm_index_bucket(key)];
}

static bool same(struct sim_cm_key a, struct sim_cm_key b)
{
	return a.high == b.high && a.low == b.low;
}

void sim_cm_index_add(struct sim_cm_index *index, struct sim_cm_node *node, struct sim_cm *cm,
		      struct sim_cm_key key)
{
	struct sim_cm_node **link = (struct sim_cm_node **)bucket_of(index, key);

	while (*link)
		link = &(*link)->next;
	*node = (struct sim_cm_node){.cm = cm, .key = key, .in = true};
	*link = node;
}

void sim_cm_index_remove(struct sim_cm_index *index, struct sim_cm_node *node)
{
	struct sim_cm_node **link = (struct sim_cm_node **)bucket_of(index, node->key);

	if (!node->in)
		return;
	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	node->in = false;
}

struct sim_cm_node *sim_cm_index_find(const struct sim_cm_index *index, struct sim_cm_key key)
{
	struct sim_cm_node *node = *bucket_of(index, key);

	while (node && !same(node->key, key))
		node = node->next;
	return node;
}

struct sim_cm_node *sim_cm_index_next(const struct sim_cm_node *node)
{
	const struct sim_cm_key key = node->key;
	struct sim_cm_node *next = node->next;

	while (next && !same(next->key, key))
		next = next->next;
	return next;
}
