/* SPDX-License-Identifier: MIT */
/* Indices of communications by a key that is not their own number. Nodes are members of their objects, so
 * that nothing is allocated. */
#ifndef SIM_CM_INDEX_H
#define SIM_CM_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_CM_BUCKETS 4096u

struct sim_cm_key {
	uint64_t high;
	uint32_t low;
};

struct sim_cm_node {
	struct sim_cm_node *next;
	struct sim_cm *cm;
	struct sim_cm_key key;
	bool in; /* in the index */
};

struct sim_cm_index {
	struct sim_cm_node *buckets[SIM_CM_BUCKETS];
};

/* Returns the bucket of a key, below SIM_CM_BUCKETS. */
uint32_t sim_cm_index_bucket(struct sim_cm_key key);

/* Adds a node, which is in no index. Nodes of one key come in the order in which they were added. */
void sim_cm_index_add(struct sim_cm_index *index, struct sim_cm_node *node, struct sim_cm *cm,
		      struct sim_cm_key key);

/* Takes a node out, if it is in. */
void sim_cm_index_remove(struct sim_cm_index *index, struct sim_cm_node *node);

/* Returns the first node of a key; NULL if there is none. */
struct sim_cm_node *sim_cm_index_find(const struct sim_cm_index *index, struct sim_cm_key key);

/* Returns the next node of the same key. */
struct sim_cm_node *sim_cm_index_next(const struct sim_cm_node *node);

#endif
