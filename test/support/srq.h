/* SPDX-License-Identifier: MIT */
/*
 * A shared receive queue with memory of its own, and pairs whose B receives from it.
 */
#ifndef TEST_SUPPORT_SRQ_H
#define TEST_SUPPORT_SRQ_H

#include "test/support/support.h"

struct ts_shared {
	struct vt *t;
	struct ibv_pd *pd;
	uint8_t *buffer; /* TS_BLANK */
	struct ibv_mr *mr;
	struct ibv_srq *srq;
	struct ibv_srq_attr attr; /* what ibv_create_srq() returned */
};

/* The PD and 64 KiB of memory of an SRQ on B, still without the SRQ. */
struct ts_shared *ts_shared_memory(struct vt *t);
/* An SRQ on B, of 16 WRs with 4 SGEs each unless the sizes are given. */
struct ts_shared *ts_shared(struct vt *t);
struct ts_shared *ts_shared_of(struct vt *t, uint32_t max_wr, uint32_t max_sge);

/*
 * A pair whose B receives from the SRQ and is in the SRQ's PD, in RESET or in RTS. CQs and buffers
 * are the pair's own.
 */
struct ts_pair *ts_pair_on_reset(struct ts_shared *shared, const struct ts_options *options);
struct ts_pair *ts_pair_on(struct ts_shared *shared, enum ibv_qp_type type);

/* Returns what ibv_post_srq_recv() returns. Zeroed fields: the SRQ's buffer under its lkey. */
int ts_post_srq(struct ts_shared *shared, const struct ts_rr *rr);
#define ts_srq_recv(s, ...)                                                \
	((void)VT_OK_SAID((s)->t, VT_HERE, "posting a receive to the SRQ", \
			  ts_post_srq(s, &(struct ts_rr){__VA_ARGS__})))

/* Returns what ibv_query_srq() fills in. */
struct ibv_srq_attr ts_query_srq(struct vt *t, struct ibv_srq *srq);

/* Arms the limit event. */
void ts_arm_srq(struct vt *t, struct ibv_srq *srq, uint32_t limit);

/* Does one SEND over a pair; the WR with the id receives it. */
void ts_send_over(struct ts_pair *pair, uint64_t recv_wr_id, uint32_t bytes);

#endif
