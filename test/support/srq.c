/* SPDX-License-Identifier: MIT */
#include "test/support/srq.h"
#include "test/support/keep.h"

#define BUFFER_BYTES 65536

struct ts_shared *ts_shared_memory(struct vt *t)
{
	struct ts_shared *shared = vt_alloc(t, sizeof(*shared));

	shared->t = t;
	shared->pd = ts_pd(t, &t->b);
	shared->buffer = ts_memory(t, BUFFER_BYTES);
	memset(shared->buffer, TS_BLANK, BUFFER_BYTES);
	shared->mr = ts_mr(t, shared->pd, shared->buffer, BUFFER_BYTES, TS_ACCESS_ALL);
	return shared;
}

struct ts_shared *ts_shared_of(struct vt *t, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
	struct ts_shared *shared = ts_shared_memory(t);

	shared->srq = VT_PTR(t, vb_create_srq(shared->pd, &init));
	shared->attr = init.attr;
	ts_keep(t, TS_SRQ, shared->srq);
	return shared;
}

struct ts_shared *ts_shared(struct vt *t)
{
	return ts_shared_of(t, 16, 4);
}

/* Moves the end's memory and AH to another PD. ts_remake_qp() then moves its QP. */
static void enter_pd(struct ts_end *end, struct ibv_pd *pd)
{
	end->pd = pd;
	end->mr = ts_mr(end->t, pd, end->buffer, end->options.buffer_bytes, end->options.mr_access);
	if (end->ah)
		end->ah = ts_ah(end->t, pd, end->node, end->peer->node);
}

struct ts_pair *ts_pair_on_reset(struct ts_shared *shared, const struct ts_options *options)
{
	const struct ibv_qp_init_attr_ex init = {.srq = shared->srq};
	struct ts_pair *pair = ts_pair_reset(shared->t, options);

	enter_pd(&pair->b, shared->pd);
	ts_remake_qp(&pair->b, &init);
	return pair;
}

struct ts_pair *ts_pair_on(struct ts_shared *shared, enum ibv_qp_type type)
{
	const struct ts_options options = ts_defaults(shared->t, type);
	struct ts_pair *pair = ts_pair_on_reset(shared, &options);

	ts_connect_both(pair);
	return pair;
}

int ts_post_srq(struct ts_shared *shared, const struct ts_rr *rr)
{
	struct ibv_recv_wr wr, *bad;
	struct ibv_sge sge;

	ts_fill_rr(rr, shared->buffer, shared->mr->lkey, &sge, &wr);
	return ibv_post_srq_recv(shared->srq, &wr, &bad);
}

struct ibv_srq_attr ts_query_srq(struct vt *t, struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	VT_OK(t, vb_query_srq(srq, &attr));
	return attr;
}

void ts_arm_srq(struct vt *t, struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = {.srq_limit = limit};

	VT_OK(t, vb_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
}

void ts_send_over(struct ts_pair *pair, uint64_t recv_wr_id, uint32_t bytes)
{
	struct vt *t = pair->a.t;

	ts_send(&pair->a, .wr_id = 1, .length = bytes);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_EQ(t, ts_received(t, pair->b.recv_cq, recv_wr_id, bytes).qp_num, pair->b.qp->qp_num);
}
