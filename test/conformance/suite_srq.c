/* SPDX-License-Identifier: MIT */
/*
 * Shared receive queues.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/need.h"
#include "test/support/srq.h"

#include <verbena/fault.h>

static void gets_at_least_the_sizes_asked_for(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 5, 3);
	struct ibv_srq_attr attr = ts_query_srq(t, shared->srq);

	VT_CHECK(t, shared->attr.max_wr >= 5);
	VT_CHECK(t, shared->attr.max_sge >= 3);
	VT_EQ(t, attr.max_wr, shared->attr.max_wr);
	VT_EQ(t, attr.max_sge, shared->attr.max_sge);
	VT_EQ(t, attr.srq_limit, 0);
	VT_CHECK(t, shared->srq->context == t->b.ctx);
	VT_CHECK(t, shared->srq->pd == shared->pd);
}

static void query_qp_returns_its_srq(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_CHECK(t, pair->b.qp->srq == shared->srq);
	VT_OK(t, vb_query_qp(pair->b.qp, &attr, IBV_QP_STATE, &init));
	VT_CHECK(t, init.srq == shared->srq);
}

static void receives_each_size(struct vt *t)
{
	static const uint32_t sizes[] = {0, 1, 4095, 4096, 4097, 30000};
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	size_t i;

	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%u bytes", sizes[i]);
		memset(shared->buffer, TS_BLANK, 40000);
		ts_srq_recv(shared, .wr_id = 50 + i, .offset = 64, .length = 30000);
		ts_send_over(pair, 50 + i, sizes[i]);
		ts_blank(t, shared->buffer, 64);
		ts_verify(t, shared->buffer + 64, sizes[i], 1);
		ts_blank(t, shared->buffer + 64 + sizes[i], 64);
	}
}

#define USERS 4

static void many_qps_take_in_arrival_order(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pairs[USERS];
	unsigned int i;

	for (i = 0; i < USERS; i++)
		pairs[i] = ts_pair_on(shared, IBV_QPT_RC);
	for (i = 0; i < 3 * USERS; i++)
		ts_srq_recv(shared, .wr_id = 100 + i, .offset = 1000 * i, .length = 1000);
	for (i = 0; i < 3 * USERS; i++) {
		vt_row(t, "message %u", i);
		ts_send_over(pairs[i * 7 % USERS], 100 + i, 900);
		ts_verify(t, shared->buffer + 1000 * i, 900, 1);
	}
	for (i = 0; i < USERS; i++)
		ts_no_more(t, pairs[i]->b.recv_cq);
}

static void write_with_imm_takes_one(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	ts_srq_recv(shared, .wr_id = 50, .length = 8);
	ts_write(&pair->a, .wr_id = 1, .length = 3000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->b.recv_cq);
	ts_write_imm(&pair->a, .wr_id = 2, .length = 3000, .imm = 7);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_written(t, pair->b.recv_cq, 50, 3000);
	ts_verify(t, pair->b.buffer, 3000, 1);
	ts_blank(t, shared->buffer, 8);
}

/* --- the limit --- */

static void expect_limit_event(struct ts_shared *shared)
{
	ts_event(shared->t, &shared->t->b, IBV_EVENT_SRQ_LIMIT_REACHED, shared->srq);
	VT_EQ(shared->t, ts_query_srq(shared->t, shared->srq).srq_limit, 0);
}

static void fill(struct ts_shared *shared, unsigned int first, unsigned int count)
{
	unsigned int i;

	for (i = first; i < first + count; i++)
		ts_srq_recv(shared, .wr_id = i, .length = 100);
}

static void limit_event_comes_below_the_limit(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, 5);
	ts_arm_srq(t, shared->srq, 3);
	VT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 3);
	ts_send_over(pair, 0, 8);
	ts_send_over(pair, 1, 8);
	ts_no_event(t, &t->b);
	VT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 3);
	ts_send_over(pair, 2, 8);
	expect_limit_event(shared);
}

static void limit_event_comes_once_for_one_arming(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	unsigned int i;

	fill(shared, 0, 8);
	ts_arm_srq(t, shared->srq, 7);
	for (i = 0; i < 4; i++)
		ts_send_over(pair, i, 8);
	expect_limit_event(shared);
	ts_no_event(t, &t->b);
	fill(shared, 8, 4);
	for (; i < 8; i++)
		ts_send_over(pair, i, 8);
	ts_no_event(t, &t->b);
	ts_arm_srq(t, shared->srq, 4);
	ts_send_over(pair, 8, 8);
	expect_limit_event(shared);
}

static void limit_of_zero_disarms(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	unsigned int i;

	fill(shared, 0, 4);
	ts_arm_srq(t, shared->srq, 4);
	ts_arm_srq(t, shared->srq, 0);
	for (i = 0; i < 4; i++)
		ts_send_over(pair, i, 8);
	ts_no_event(t, &t->b);
}

static void unread_limit_event_ends_with_its_srq(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, 2);
	ts_arm_srq(t, shared->srq, 2);
	ts_send_over(pair, 0, 8);
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_srq(shared->srq));
	ts_gone(t, shared->srq);
	ts_no_event(t, &t->b);
}

/* --- modifying --- */

static void bad_modify_changes_nothing(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	uint32_t past = (uint32_t)t->b.device_attr.max_srq_wr + 1;
	const struct {
		const char *name;
		uint32_t max_wr, limit;
		int mask;
	} rows[] = {
		{"limit above the size", 0, shared->attr.max_wr + 1, IBV_SRQ_LIMIT},
		{"size above the device's", past, 0, IBV_SRQ_MAX_WR},
		{"size above the device's, good limit", past, 2, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT},
		{"good size, limit above it", 8, 1000, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT},
		{"unknown attribute", 8, 2, IBV_SRQ_LIMIT | 1 << 5},
	};
	struct ibv_srq_attr attr;
	size_t i;

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	ts_arm_srq(t, shared->srq, 1);
	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		attr = (struct ibv_srq_attr){.max_wr = rows[i].max_wr, .srq_limit = rows[i].limit};
		VT_EXPECT_ERRNO(t, vb_modify_srq(shared->srq, &attr, rows[i].mask), EINVAL);
		attr = ts_query_srq(t, shared->srq);
		VT_EXPECT_EQ(t, attr.max_wr, shared->attr.max_wr);
		VT_EXPECT_EQ(t, attr.srq_limit, 1);
	}
}

static void resize_keeps_what_is_posted(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_srq_attr attr = {.max_wr = shared->attr.max_wr + 60};
	unsigned int i, posted = shared->attr.max_wr;

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	fill(shared, 0, posted);
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
	VT_CHECK(t, ts_query_srq(t, shared->srq).max_wr >= posted + 60);
	fill(shared, posted, 60);
	for (i = 0; i < posted + 60; i++)
		ts_send_over(pair, i, 8);
}

static void resize_below_what_is_posted_is_einval(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 16, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_srq_attr attr = {.max_wr = 9};
	unsigned int i;
	int error;

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	fill(shared, 0, 10);
	error = vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR);
	if (error)
		VT_EQ(t, error, EINVAL);
	else /* the device rounded the size up */
		VT_CHECK(t, ts_query_srq(t, shared->srq).max_wr >= 10);
	attr.max_wr = 10;
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
	for (i = 0; i < 10; i++)
		ts_send_over(pair, i, 8);
}

static void resize_below_the_limit_is_einval(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 16, 1);
	struct ibv_srq_attr attr = {.max_wr = 5};

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	ts_arm_srq(t, shared->srq, 6);
	VT_EQ(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	VT_EQ(t, ts_query_srq(t, shared->srq).srq_limit, 6);
	ts_arm_srq(t, shared->srq, 5);
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
}

/* --- posting --- */

static void full_is_enomem(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);

	fill(shared, 0, shared->attr.max_wr);
	VT_ERRNO(t, ts_post_srq(shared, &(struct ts_rr){.wr_id = 99}), ENOMEM);
}

/* Two QPs take all WRs, and their completions are polled in the opposite order. */
static void slots_come_back_by_polling_in_any_order(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *first = ts_pair_on(shared, IBV_QPT_RC);
	struct ts_pair *second = ts_pair_on(shared, IBV_QPT_RC);
	unsigned int i, half = shared->attr.max_wr / 2;

	fill(shared, 0, 2 * half);
	for (i = 0; i < 2 * half; i++) {
		ts_send(i < half ? &first->a : &second->a, .wr_id = i, .length = 8);
		ts_done(t, i < half ? first->a.send_cq : second->a.send_cq, i, IBV_WC_SEND);
	}
	for (i = half; i < 2 * half; i++) {
		ts_received(t, second->b.recv_cq, i, 8);
		ts_srq_recv(shared, .wr_id = 100 + i, .length = 8);
	}
	for (i = 0; i < half; i++) {
		ts_received(t, first->b.recv_cq, i, 8);
		ts_srq_recv(shared, .wr_id = 200 + i, .length = 8);
	}
	ts_send_over(first, 100 + half, 8);
	VT_OK(t, ts_post_srq(shared, &(struct ts_rr){.wr_id = 98}));
}

static void unpolled_slots_are_not_free(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, shared->attr.max_wr);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_ERRNO(t, ts_post_srq(shared, &(struct ts_rr){.wr_id = 99}), ENOMEM);
	ts_received(t, pair->b.recv_cq, 0, 8);
	VT_OK(t, ts_post_srq(shared, &(struct ts_rr){.wr_id = 99}));
}

static void list_stops_at_the_bad_one(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)shared->buffer, 8, shared->mr->lkey};
	struct ibv_recv_wr wrs[3] = {{.wr_id = 1, .next = &wrs[1], .sg_list = &sge, .num_sge = 1},
				     {.wr_id = 2, .next = &wrs[2]},
				     {.wr_id = 3, .sg_list = &sge, .num_sge = 1}};
	struct ibv_recv_wr *bad = NULL;

	wrs[1].num_sge = (int)shared->attr.max_sge + 1;
	VT_ERRNO(t, ibv_post_srq_recv(shared->srq, wrs, &bad), EINVAL);
	VT_CHECK(t, bad == &wrs[1]);
	ts_srq_recv(shared, .wr_id = 4, .length = 8);
	ts_send_over(pair, 1, 8);
	ts_send_over(pair, 4, 8);
}

static void most_sges_are_filled_in_order(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 4);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_sge sges[4];
	uint8_t bytes[1000];
	unsigned int i;

	for (i = 0; i < 4; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)shared->buffer + 5000 * i, 250,
					   shared->mr->lkey};
	ts_srq_recv(shared, .wr_id = 50, .sge = sges, .num_sge = 4);
	ts_send_over(pair, 50, 1000);
	for (i = 0; i < 4; i++)
		memcpy(bytes + 250 * i, shared->buffer + 5000 * i, 250);
	ts_verify(t, bytes, 1000, 1);
	ts_blank(t, shared->buffer + 250, 100);
}

static void post_recv_on_its_qp_is_einval(struct vt *t)
{
	struct ts_pair *pair = ts_pair_on(ts_shared(t), IBV_QPT_RC);

	VT_ERRNO(t, ts_post_rr(&pair->b, &(struct ts_rr){.wr_id = 1}), EINVAL);
}

static void receive_sizes_of_its_qp_are_ignored(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	const struct ibv_qp_init_attr_ex init = {
		.srq = shared->srq,
		.cap = {.max_send_wr = 4,
			.max_send_sge = 1,
			.max_recv_wr = UINT32_MAX,
			.max_recv_sge = UINT32_MAX},
	};

	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	ts_srq_recv(shared, .wr_id = 50, .length = 8);
	ts_send_over(pair, 50, 8);
}

/* --- who may use it --- */

static void in_use_is_ebusy(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	VT_ERRNO(t, vb_destroy_srq(shared->srq), EBUSY);
	ts_srq_recv(shared, .wr_id = 50, .length = 8);
	ts_send_over(pair, 50, 8);
}

static void pd_with_an_srq_is_ebusy(struct vt *t)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_srq *srq = VT_PTR(t, vb_create_srq(pd, &init));

	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_destroy_srq(srq));
}

static void with_posted_work_it_can_be_destroyed(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, 3);
	ts_destroy_qp(&pair->b);
	VT_OK(t, vb_destroy_srq(shared->srq));
	ts_gone(t, shared->srq);
	ts_no_more(t, pair->b.recv_cq);
}

/* The QP is in another PD than its SRQ. */
static void memory_is_of_the_srqs_pd(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	const struct ibv_qp_init_attr_ex init = {.srq = shared->srq};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	VT_CHECK(t, pair->b.pd != shared->pd);
	ts_srq_recv(shared, .wr_id = 50, .length = 100);
	ts_send_over(pair, 50, 100);
	ts_srq_recv(shared, .wr_id = 51, .address = (uintptr_t)pair->b.buffer,
		    .lkey = pair->b.mr->lkey, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_failed(t, pair->b.recv_cq, 51, IBV_WC_LOC_PROT_ERR);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_OP_ERR);
	ts_blank(t, pair->b.buffer, 100);
}

static void datagrams_come_from_it(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_UD);

	ts_srq_recv(shared, .wr_id = 50, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 500);
	ts_received(t, pair->b.recv_cq, 50, 500 + TS_GRH);
	ts_verify(t, shared->buffer + TS_GRH, 500, 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_send(&pair->a, .wr_id = 2, .length = 500);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void uc_qp_cannot_have_one(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ibv_cq *cq = ts_cq(t, &t->b, 4);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = shared->srq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = vb_create_qp(shared->pd, &init);

	if (qp)
		ts_keep(t, TS_QP, qp);
	VT_CHECK(t, !qp);
}

/* --- running dry --- */

static void empty_is_rnr_until_one_is_posted(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 5000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &(struct ibv_wc){0}), 0);
	ts_srq_recv(shared, .wr_id = 50, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 50, 100);
	ts_verify(t, shared->buffer, 100, 1);
}

static void empty_for_long_ends_in_rnr_retry_exceeded(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair;

	options.rnr_retry = 2;
	pair = ts_pair_on_reset(shared, &options);
	ts_connect_both(pair);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
	ts_no_event(t, &t->b);
}

/* --- QPs that stop --- */

static void qp_in_err_leaves_the_posted_work(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *first = ts_pair_on(shared, IBV_QPT_RC);
	struct ts_pair *second = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, 2);
	VT_OK(t, ts_to(&first->b, IBV_QPS_ERR));
	ts_no_more(t, first->b.recv_cq);
	ts_send_over(second, 0, 8);
	ts_send_over(second, 1, 8);
}

static void modify_to_err_raises_last_wqe_reached(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	fill(shared, 0, 2);
	ts_send_over(pair, 0, 8);
	ts_no_event(t, &t->b);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_event(t, &t->b, IBV_EVENT_QP_LAST_WQE_REACHED, pair->b.qp);
	ts_no_event(t, &t->b);
}

/* A message longer than its receive moves the QP to ERR. */
static void receive_error_raises_last_wqe_reached(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *first = ts_pair_on(shared, IBV_QPT_RC);
	struct ts_pair *second = ts_pair_on(shared, IBV_QPT_RC);

	ts_srq_recv(shared, .wr_id = 50, .length = 10);
	ts_srq_recv(shared, .wr_id = 51, .length = 10);
	ts_send(&first->a, .wr_id = 1, .length = 11);
	ts_failed(t, first->a.send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_failed(t, first->b.recv_cq, 50, IBV_WC_LOC_LEN_ERR);
	ts_no_more(t, first->b.recv_cq);
	ts_event(t, &t->b, IBV_EVENT_QP_LAST_WQE_REACHED, first->b.qp);
	ts_send_over(second, 51, 10);
}

/* A message whose last packet never comes. */
static void message_in_progress_is_flushed(struct vt *t)
{
	static const struct vb_fault_rule lose = {
		.action = VB_FAULT_DROP, .opcode_given = true, .opcode = TS_SEND_LAST};
	struct ts_shared *shared = ts_shared_of(t, 2, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	unsigned int i;

	ts_fault(t, &lose);
	fill(shared, 0, shared->attr.max_wr - 1);
	ts_srq_recv(shared, .wr_id = 50, .offset = 0, .length = 20000);
	for (i = 0; i + 1 < shared->attr.max_wr; i++)
		ts_send_over(pair, i, 8);
	ts_send(&pair->a, .wr_id = 1, .length = 10000);
	ts_pause(t, 1000000);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 50);
	ts_no_more(t, pair->b.recv_cq);
	fill(shared, 100, shared->attr.max_wr);
}

static void reset_puts_the_receive_in_progress_back(struct vt *t)
{
	static const struct vb_fault_rule lose = {
		.action = VB_FAULT_DROP, .opcode_given = true, .opcode = TS_SEND_LAST};
	struct ts_shared *shared = ts_shared_of(t, 1, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	ts_fault(t, &lose);
	ts_srq_recv(shared, .wr_id = 50, .length = 20000);
	ts_send(&pair->a, .wr_id = 1, .length = 10000);
	ts_pause(t, 1000000);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_no_more(t, pair->b.recv_cq);
	fill(shared, 100, shared->attr.max_wr);
}

/* The receive of a message whose last packet is lost and repeated is where it was posted. */
static void resize_in_the_middle_of_a_message(struct vt *t)
{
	static const struct vb_fault_rule lose = {
		.action = VB_FAULT_DROP, .opcode_given = true, .opcode = TS_SEND_LAST, .count = 1};
	struct ts_shared *shared = ts_shared_of(t, 2, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	struct ibv_srq_attr attr = {.max_wr = shared->attr.max_wr + 1000};

	ts_need_caps(t, IBV_DEVICE_SRQ_RESIZE, "SRQ that can be resized");
	ts_fault(t, &lose);
	ts_srq_recv(shared, .wr_id = 50, .offset = 64, .length = 20000);
	ts_send(&pair->a, .wr_id = 1, .length = 10000);
	ts_pause(t, 1000000);
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
	ts_srq_recv(shared, .wr_id = 51, .offset = 30000, .length = 20000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 50, 10000);
	ts_verify(t, shared->buffer + 64, 10000, 1);
	ts_blank(t, shared->buffer + 64 + 10000, 20000);
	ts_send_over(pair, 51, 8);
}

#define ALL  VT_NEEDS_SRQ
#define WIRE (VT_NEEDS_SRQ | VT_NEEDS_SIM | VT_NEEDS_FAULTS)

static const struct vt_test tests[] = {
	{"gets_at_least_the_sizes_asked_for", "ibv_create_srq(3), ibv_query_srq(3)", ALL,
	 gets_at_least_the_sizes_asked_for},
	{"query_qp_returns_its_srq", "ibv_create_qp(3): srq", ALL, query_qp_returns_its_srq},
	{"receives_each_size", "ibv_post_srq_recv(3)", ALL, receives_each_size},
	{"many_qps_take_in_arrival_order",
	 SRC_RXE "rxe_resp.c, get_srq_wqe: the head, whichever QP asks", ALL,
	 many_qps_take_in_arrival_order},
	{"write_with_imm_takes_one", SRC_RXE "rxe_resp.c, check_resource: RXE_RWR_MASK", ALL,
	 write_with_imm_takes_one},
	{"limit_event_comes_below_the_limit",
	 "ibv_modify_srq(3), Notes: once the number of WRs drops below srq_limit", ALL,
	 limit_event_comes_below_the_limit},
	{"limit_event_comes_once_for_one_arming", "ibv_query_srq(3), Notes: until rearmed", ALL,
	 limit_event_comes_once_for_one_arming},
	{"limit_of_zero_disarms", "ibv_query_srq(3), Notes: 0 is not armed", ALL,
	 limit_of_zero_disarms},
	{"unread_limit_event_ends_with_its_srq", SRC_CORE "uverbs_main.c, ib_uverbs_release_uevent",
	 ALL, unread_limit_event_ends_with_its_srq},
	{"bad_modify_changes_nothing",
	 "ibv_modify_srq(3), Notes; EINVAL: " SRC_RXE "rxe_srq.c, rxe_srq_chk_attr", ALL,
	 bad_modify_changes_nothing},
	{"resize_keeps_what_is_posted", "ibv_modify_srq(3): IBV_SRQ_MAX_WR", ALL,
	 resize_keeps_what_is_posted},
	{"resize_in_the_middle_of_a_message", "ibv_modify_srq(3): IBV_SRQ_MAX_WR", WIRE,
	 resize_in_the_middle_of_a_message},
	{"resize_below_what_is_posted_is_einval", SRC_RVT "srq.c, rvt_modify_srq", ALL,
	 resize_below_what_is_posted_is_einval},
	{"resize_below_the_limit_is_einval", SRC_RXE "rxe_srq.c, rxe_srq_chk_attr", ALL,
	 resize_below_the_limit_is_einval},
	{"full_is_enomem", SRC_RXE "rxe_verbs.c, post_one_recv: ENOMEM", ALL, full_is_enomem},
	{"slots_come_back_by_polling_in_any_order", "unsourced", ALL,
	 slots_come_back_by_polling_in_any_order},
	{"unpolled_slots_are_not_free", "unsourced", ALL | VT_NEEDS_SIM,
	 unpolled_slots_are_not_free},
	{"list_stops_at_the_bad_one", "ibv_post_srq_recv(3)", ALL, list_stops_at_the_bad_one},
	{"most_sges_are_filled_in_order", "ibv_create_srq(3): max_sge", ALL,
	 most_sges_are_filled_in_order},
	{"post_recv_on_its_qp_is_einval",
	 "ibv_post_recv(3), Notes; EINVAL: " SRC_RXE "rxe_verbs.c, rxe_post_recv", ALL,
	 post_recv_on_its_qp_is_einval},
	{"receive_sizes_of_its_qp_are_ignored", "ibv_create_qp_ex(3), Notes", ALL,
	 receive_sizes_of_its_qp_are_ignored},
	{"in_use_is_ebusy", "ibv_create_srq(3), Notes; EBUSY: " SRC_CORE "verbs.c, ib_destroy_srq",
	 ALL, in_use_is_ebusy},
	{"pd_with_an_srq_is_ebusy", "ibv_alloc_pd(3), Notes; EBUSY: " SRC_FREE_PD, ALL,
	 pd_with_an_srq_is_ebusy},
	{"with_posted_work_it_can_be_destroyed",
	 SRC_CORE "verbs.c, ib_destroy_srq: usecnt is all that holds it", ALL,
	 with_posted_work_it_can_be_destroyed},
	{"memory_is_of_the_srqs_pd", "ibv_create_srq(3): associated with the protection domain",
	 ALL, memory_is_of_the_srqs_pd},
	{"datagrams_come_from_it", "ibv_create_qp(3), Notes: RC or UD", ALL,
	 datagrams_come_from_it},
	{"uc_qp_cannot_have_one", "ibv_create_qp(3), Notes: RC or UD", ALL, uc_qp_cannot_have_one},
	{"empty_is_rnr_until_one_is_posted", SRC_RXE "rxe_resp.c, get_srq_wqe: ERR_RNR", ALL,
	 empty_is_rnr_until_one_is_posted},
	{"empty_for_long_ends_in_rnr_retry_exceeded",
	 SRC_RXE "rxe_resp.c, get_srq_wqe: ERR_RNR; " SRC_RXE
		 "rxe_comp.c, rxe_completer: RNR_RETRY",
	 ALL, empty_for_long_ends_in_rnr_retry_exceeded},
	{"qp_in_err_leaves_the_posted_work",
	 SRC_RXE "rxe_resp.c, check_resource: in ERR an SRQ is left alone", ALL,
	 qp_in_err_leaves_the_posted_work},
	{"modify_to_err_raises_last_wqe_reached", "ibv_get_async_event(3): QP_LAST_WQE_REACHED",
	 ALL, modify_to_err_raises_last_wqe_reached},
	{"receive_error_raises_last_wqe_reached", "ibv_get_async_event(3): QP_LAST_WQE_REACHED",
	 ALL, receive_error_raises_last_wqe_reached},
	{"message_in_progress_is_flushed", SRC_RXE "rxe_resp.c, check_resource: in ERR, resp.wqe",
	 WIRE, message_in_progress_is_flushed},
	{"reset_puts_the_receive_in_progress_back", "unsourced", WIRE,
	 reset_puts_the_receive_in_progress_back},
	{NULL},
};

const struct vt_suite vt_suite_srq = {"srq", "shared receive queues", tests};
