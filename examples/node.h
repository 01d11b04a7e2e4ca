/* SPDX-License-Identifier: MIT */
/*
 * A node of the story: a device with all that one RC connection needs. Everything ends the program
 * with a sentence when it fails.
 */
#ifndef EXAMPLES_NODE_H
#define EXAMPLES_NODE_H

#include "ladder.h"

#include <infiniband/verbs.h>

#define NODE_BUFFER_BYTES 8192

struct node {
	enum ladder_side side;
	const char *name;
	struct ladder *ladder;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t buffer[NODE_BUFFER_BYTES] __attribute__((aligned(8)));
	unsigned int completions; /* seen so far */
	enum ibv_wc_status last_status;
	bool watched; /* completions are taken from the CQ */
};

void node_open(struct node *node, const char *name, enum ladder_side side, struct ladder *ladder);
void node_close(struct node *node);

/* A new QP in RESET, with a CQ of its own of cqe entries, in place of the ones before. */
void node_make_qp(struct node *node, int cqe);

/* The three steps of a connection; each is a line of the ladder. */
void node_to_init(struct node *node);
void node_to_rtr(struct node *node, const struct node *peer);
void node_to_rts(struct node *node);

/* Work on buffer[offset], length bytes; a remote place is the same offset of the peer. */
void node_post_recv(struct node *node, uint64_t wr_id, uint32_t offset, uint32_t length);
void node_post(struct node *node, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
	       uint32_t length, const struct node *peer);

/* Takes and tells the completions and events that are there now; time stands still. */
void node_look(struct node *node);

/* Says that a call failed, and ends the program. */
_Noreturn void node_fail(const char *what, int err);

#endif
