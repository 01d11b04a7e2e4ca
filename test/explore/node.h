/* SPDX-License-Identifier: MIT */
/*
 * What the explored tests have in common: two nodes that are joined by an RC connection. Each function
 * survives the failure of any call and any allocation, and leaves nothing then.
 */
#ifndef TEST_EXPLORE_NODE_H
#define TEST_EXPLORE_NODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbena/connect.h>

#define HALF_BYTES \
	4096 /* a node sends from the first half of its memory, and receives into the second */

struct node {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_region *region;
	struct ibv_srq *srq;
	struct vb_prepared_qp *prepared;
	struct ibv_qp *qp;
};

struct pair {
	struct node a, b;
};

/* Returns false if a call has failed: then nothing is left. */
bool pair_open(struct pair *pair, bool with_srq);
bool pair_open_with(struct pair *pair, bool with_srq, unsigned int retries);
void pair_close(struct pair *pair);

/* The bytes of a half, 0 or 1. */
uint8_t *node_half(const struct node *node, unsigned int half);

/* Posts a receive of length_bytes into the second half, at an offset. */
bool node_receive(struct node *node, uint64_t id, uint32_t offset, uint32_t length_bytes);

/* Posts a work request from or into the first half at an offset. The peer's address is that of its second
 * half, at the same offset. */
bool node_post(struct node *node, const struct node *peer, struct ibv_send_wr wr, uint32_t offset,
	       uint32_t length_bytes);

/*
 * Takes completions until there are `count`, which have the status success and the ids 1, 2, 3, ... of the
 * sends, or 101, 102, ... of the receives. Returns enum vb_explore_end. The last completion goes to *last,
 * which may be NULL.
 */
int node_take(struct node *node, unsigned int sends, unsigned int receives, struct ibv_wc *last);

/* A second later nothing more has come. */
int pair_is_quiet(struct pair *pair);

#endif /* TEST_EXPLORE_NODE_H */
