/* SPDX-License-Identifier: MIT */
/* Finds communications by keys other than their own number. The nodes are members of the communications, so
 * nothing is allocated. */
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

/* Adds a node, which must be in no index. Nodes with the same key keep the order of their adding. */
void sim_cm_index_add(struct sim_cm_index *index, struct sim_cm_node *node, struct sim_cm *cm,
		      struct sim_cm_key key);

/* Removes a node, if it is in the index. */
void sim_cm_index_remove(struct sim_cm_index *index, struct sim_cm_node *node);

/* Returns the first node of a key; NULL if there is none. */
struct sim_cm_node *sim_cm_index_find(const struct sim_cm_index *index, struct sim_cm_key key);

/* Returns the next node of the same key. */
struct sim_cm_node *sim_cm_index_next(const struct sim_cm_node *node);

#endif
