/* SPDX-License-Identifier: MIT */
/*
 * A node of the story: a device with the objects of one RC connection. A function that fails prints
 * a sentence and ends the program.
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
	unsigned int completions; /* counts the completions that were polled */
	enum ibv_wc_status last_status;
	bool watched; /* true while node_look() polls the CQ */
};

void node_open(struct node *node, const char *name, enum ladder_side side, struct ladder *ladder);
void node_close(struct node *node);

/* Creates a QP in RESET and its CQ of cqe entries. It destroys the node's earlier QP and CQ. */
void node_make_qp(struct node *node, int cqe);

/* The three steps of a connection; each prints a line of the ladder. */
void node_to_init(struct node *node);
void node_to_rtr(struct node *node, const struct node *peer);
void node_to_rts(struct node *node);

/* Post work on length bytes at buffer[offset]; the remote address is the same offset at the peer. */
void node_post_recv(struct node *node, uint64_t wr_id, uint32_t offset, uint32_t length);
void node_post(struct node *node, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
	       uint32_t length, const struct node *peer);

/* Prints the completions and events that have arrived. Does not move time. */
void node_look(struct node *node);

/* Prints which call failed and why, and ends the program. */
_Noreturn void node_fail(const char *what, int err);

#endif
