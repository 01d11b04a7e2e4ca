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
	struct ibv_srq_attr attr; /* what create_srq answered */
};

/* An SRQ of 16 WRs of 4 SGEs on B, with 64 KiB. */
struct ts_shared *ts_shared(struct vt *t);
struct ts_shared *ts_shared_of(struct vt *t, uint32_t max_wr, uint32_t max_sge);

/*
 * A's QP and, on the SRQ, B's: in RESET; in RTS. B is in the SRQ's PD; CQs and buffers are the
 * pair's.
 */
struct ts_pair *ts_pair_on_reset(struct ts_shared *shared, const struct ts_options *options);
struct ts_pair *ts_pair_on(struct ts_shared *shared, enum ibv_qp_type type);

/* Returns what ibv_post_srq_recv() does. Zeroed fields: the SRQ's buffer under its lkey. */
int ts_post_srq(struct ts_shared *shared, const struct ts_rr *rr);
#define ts_srq_recv(s, ...)                                                \
	((void)VT_OK_SAID((s)->t, VT_HERE, "posting a receive to the SRQ", \
			  ts_post_srq(s, &(struct ts_rr){__VA_ARGS__})))

/* What ibv_query_srq() says. */
struct ibv_srq_attr ts_query_srq(struct vt *t, struct ibv_srq *srq);

/* Arms the limit event. */
void ts_arm_srq(struct vt *t, struct ibv_srq *srq, uint32_t limit);

/* One SEND of bytes over a pair, complete on both sides; received by the WR of that id. */
void ts_send_over(struct ts_pair *pair, uint64_t recv_wr_id, uint32_t bytes);

#endif
