/* SPDX-License-Identifier: MIT */
/*
 * For the programs of this folder: the two ends of a connection, in one process, on the first two
 * devices. Each function that fails prints a line and ends the program with status 1.
 */
#ifndef EXAMPLES_BUGGY_ENDS_H
#define EXAMPLES_BUGGY_ENDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define END_DEFAULT_PKEY 0xffff
#define END_BYTES	 16384 /* of memory at each end */
#define END_DEPTH	 16    /* work requests of each queue */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* all of the memory, for local access only */
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq; /* raise their events at the channel */
	struct ibv_qp *qp;
	union ibv_gid gid;
	int gid_index, pkey_index;
	uint16_t lid;
	char *memory;
};

#define END_INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define END_RTR_MASK                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define END_RTS_MASK                                                                           \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* Returns true if the arguments are "--fixed"; ends the program with status 2 if they are others. */
bool end_wants_fixed(int argc, char **argv);

/* Prints the sentence and ends the program unless good. */
void end_need(bool good, const char *sentence);

/* Opens the devices, and makes all objects but the QPs. */
void ends_open(struct end ends[2]);

/* Makes the QP, in IBV_QPS_INIT. */
void end_make_qp(struct end *end);

/* The attributes for IBV_QPS_RTR and IBV_QPS_RTS that suit both ends. */
struct ibv_qp_attr end_rtr(const struct end *peer);
struct ibv_qp_attr end_rts(void);

/* Makes the QPs, and connects them. */
void ends_connect(struct end ends[2]);

/* Destroys all objects. */
void ends_close(struct end ends[2]);

/* Returns an SGE of the end's memory. */
struct ibv_sge end_piece(const struct end *end, uint32_t offset, uint32_t length);

/* Posts a receive of length bytes at the offset, which is its wr_id, too. */
void end_receive(struct end *end, uint32_t offset, uint32_t length);

/* Polls until there is a completion, and returns it. */
struct ibv_wc end_wait(struct ibv_cq *cq);

#endif
