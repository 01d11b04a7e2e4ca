/* SPDX-License-Identifier: MIT */
/* Quirks of posting. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

/* A send that is posted by the calls of ibv_wr_start(3). */
static void calls_are_ignored(struct vt *t)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	struct ibv_qp_ex *ex;

	ts_remake_qp(&pair->a, &init);
	ex = VT_PTR(t, vb_qp_to_qp_ex(pair->a.qp));
	ts_to_init(&pair->a);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, pair->a.mr->lkey, (uintptr_t)pair->a.buffer, 8);
	VT_OK(t, ibv_wr_complete(ex));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_no_more(t, pair->a.send_cq);
}

/* ibv_bind_mw() gives the window a new rkey, but binds nothing to it. */
static void bindings_are_ignored(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t before;

	options.mr_access |= IBV_ACCESS_MW_BIND;
	pair = ts_pair_reset(t, &options);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	before = mw->rkey;
	ts_to_init(&pair->b);
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 1}));
	VT_CHECK(t, mw->rkey != before);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect_both(pair);
	ts_no_more(t, pair->b.send_cq);
	ts_bound(&pair->b, mw, .wr_id = 2);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 3}));
	ts_connect(&pair->b);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_refused(pair, mw->rkey, 0);
}

static void posts_ignored_in_wrong_state(struct vt *t)
{
	const struct ts_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND, .length = 8};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "posts_ignored_in_wrong_state", NULL);
	pair = ts_pair_reset(t, &options);
	VT_OK(t, ts_post(&pair->a, &send));
	VT_OK(t, ts_post_rr(&pair->a, &(struct ts_rr){.wr_id = 2, .length = 8}));
	ts_to_init(&pair->a);
	VT_OK(t, ts_post(&pair->a, &send));
	ts_to_rtr(&pair->a);
	VT_OK(t, ts_post(&pair->a, &send));
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_no_more(t, pair->a.send_cq);
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->a.recv_cq);
	calls_are_ignored(t);
	bindings_are_ignored(t);
}

/* Sends `count` messages, for which B has receives, and polls nothing. */
static void send_all(struct ts_pair *pair, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ts_send(&pair->a, .wr_id = i, .length = 8);
	ts_settle(pair->a.t);
}

static void slots_of_a_pair(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	uint32_t i, round;

	options.send_wr = options.recv_wr = 4;
	pair = ts_pair(t, &options);
	VT_EQ(t, pair->a.cap.max_send_wr, pair->b.cap.max_recv_wr);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < pair->b.cap.max_recv_wr; i++)
			ts_recv(&pair->b, .wr_id = i, .length = 8);
		send_all(pair, pair->a.cap.max_send_wr);
	}
	for (i = 0; i < 3 * pair->a.cap.max_send_wr; i++) {
		ts_done(t, pair->a.send_cq, i % pair->a.cap.max_send_wr, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, i % pair->b.cap.max_recv_wr, 8);
	}
}

static void slots_of_an_srq(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	uint32_t i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < shared->attr.max_wr; i++)
			ts_srq_recv(shared, .wr_id = i, .length = 8);
		send_all(pair, shared->attr.max_wr);
	}
	for (i = 0; i < 3 * shared->attr.max_wr; i++)
		ts_received(t, pair->b.recv_cq, i % shared->attr.max_wr, 8);
}

static void slots_free_when_completed(struct vt *t)
{
	ts_quirks(t, "slots_free_when_completed", NULL);
	slots_of_a_pair(t);
	slots_of_an_srq(t);
}

static void forbidden_opcodes_refused(struct vt *t)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
	} rows[] = {
		{IBV_QPT_UC, IBV_WR_RDMA_READ},
		{IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP},
		{IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD},
		{IBV_QPT_UD, IBV_WR_RDMA_WRITE},
		{IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM},
		{IBV_QPT_UD, IBV_WR_RDMA_READ},
		{IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD},
	};
	struct ts_pair *pair;
	size_t i;

	ts_quirks(t, "forbidden_opcodes_refused", NULL);
	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "type %d, opcode %d", rows[i].type, rows[i].opcode);
		pair = ts_connected(t, rows[i].type);
		VT_ERRNO(t,
			 ts_post(&pair->a, &(struct ts_wr){.opcode = rows[i].opcode, .length = 8}),
			 EINVAL);
		ts_no_more(t, pair->a.send_cq);
		ts_state(&pair->a, IBV_QPS_RTS);
		ts_transfer(pair, IBV_WR_SEND, 100);
	}
}

/*
 * A device whose profile has the quirk, since the profile spec has the largest max_msg_sz there
 * is.
 */
static void message_limit_unchecked(struct vt *t)
{
	const struct vb_sim_device_config device = {.name = "rxe", .profile = "rxe-6.12"};
	const uint32_t most = 8 << 20;
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end;

	options.buffer_bytes = 2 * most + 2;
	end = ts_other_device(t, &device, &options);
	VT_EQ(t, end->node->port_attr.max_msg_sz, most);
	ts_connect(end);
	ts_write(end, .wr_id = 1, .length = most + 1, .remote_offset = most + 1);
	ts_done(t, end->send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, end->buffer + most + 1, most + 1, 1);
	ts_quirks_of(t, end->node->ctx, "", NULL);
	ts_write(end, .wr_id = 2, .length = most, .remote_offset = most + 1);
	ts_done(t, end->send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_write(end, .wr_id = 3, .length = most + 1, .remote_offset = most + 1);
	ts_failed(t, end->send_cq, 3, IBV_WC_LOC_LEN_ERR);
}

static struct ts_pair *pair_of_four(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_wr = options.recv_wr = 4;
	return ts_pair(t, &options);
}

static int write_one(struct ts_end *end)
{
	return ts_post(end, &(struct ts_wr){.opcode = IBV_WR_RDMA_WRITE, .length = 8});
}

static void hold_seven(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;
	int i;

	VT_EQ(t, ts_query(&pair->a).cap.max_send_wr, 7);
	VT_EQ(t, ts_query(&pair->a).cap.max_recv_wr, 7);
	for (i = 0; i < 7; i++) {
		VT_OK(t, write_one(&pair->a));
		ts_recv(&pair->a, .length = 8);
	}
	VT_ERRNO(t, write_one(&pair->a), ENOMEM);
	VT_ERRNO(t, ts_post_rr(&pair->a, &(struct ts_rr){.length = 8}), ENOMEM);
}

static void queue_sizes_round_up(struct vt *t)
{
	struct ibv_srq_attr attr = {.max_wr = 8};
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_quirks(t, "queue_sizes_round_up", NULL);
	pair = pair_of_four(t);
	VT_EQ(t, pair->a.cap.max_send_wr, 7);
	VT_EQ(t, pair->a.cap.max_recv_wr, 7);
	hold_seven(pair);
	shared = ts_shared_of(t, 7, 1);
	VT_EQ(t, shared->attr.max_wr, 7);
	if (!(t->a.device_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		return;
	VT_OK(t, vb_modify_srq(shared->srq, &attr, IBV_SRQ_MAX_WR));
	VT_EQ(t, ts_query_srq(t, shared->srq).max_wr, 15);
}

static void asked_sizes_told(struct vt *t)
{
	struct ts_shared *shared;
	struct ts_pair *pair;

	ts_quirks(t, "asked_sizes_told", "queue_sizes_round_up");
	pair = pair_of_four(t);
	VT_EQ(t, pair->a.cap.max_send_wr, 4);
	VT_EQ(t, pair->a.cap.max_recv_wr, 4);
	hold_seven(pair);
	shared = ts_shared_of(t, 4, 1);
	VT_EQ(t, shared->attr.max_wr, 4);
	VT_EQ(t, ts_query_srq(t, shared->srq).max_wr, 7);
}

static void refused_posts_name_no_wr(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_qp_init_attr_ex init = {0};
	struct ts_pair *pair;

	ts_quirks(t, "refused_posts_name_no_wr", NULL);
	pair = ts_pair_reset(t, &options);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &send, &bad_send), EINVAL);
	VT_ERRNO(t, ibv_post_recv(pair->a.qp, &recv, &bad_recv), EINVAL);
	VT_CHECK(t, !bad_send && !bad_recv);
	ts_connect_both(pair);
	send.num_sge = 1000;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &send, &bad_send), EINVAL);
	VT_CHECK(t, bad_send == &send);
	init.srq = ts_shared(t)->srq;
	ts_remake_qp(&pair->b, &init);
	ts_to_init(&pair->b);
	VT_ERRNO(t, ibv_post_recv(pair->b.qp, &recv, &bad_recv), EINVAL);
	VT_CHECK(t, !bad_recv);
}

/* The sum of the lengths is 2^32 + 8. */
static void message_lengths_unchecked(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_sge sges[2];

	ts_quirks(t, "message_lengths_unchecked", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	sges[0] = (struct ibv_sge){(uintptr_t)pair->a.buffer, 8, pair->a.mr->lkey};
	sges[1] = (struct ibv_sge){(uintptr_t)pair->a.buffer, UINT32_MAX - 7, pair->a.mr->lkey};
	ts_write(&pair->a, .wr_id = 1, .sge = sges, .num_sge = 2);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_blank(t, pair->b.buffer, 8);
	sges[1].length = UINT32_MAX - 3;
	ts_write(&pair->a, .wr_id = 2, .sge = sges, .num_sge = 2);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 4, 1);
	ts_blank(t, pair->b.buffer + 4, 8);
}

static struct ibv_qp_cap cap_of(struct vt *t, uint32_t sges, uint32_t inline_bytes)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_sge = sges;
	options.inline_bytes = inline_bytes;
	return ts_pair(t, &options)->a.cap;
}

static void inline_shares_room(struct vt *t)
{
	struct ibv_qp_cap cap;

	ts_quirks(t, "inline_shares_room", NULL);
	cap = cap_of(t, 3, 66);
	VT_EQ(t, cap.max_send_sge, 4);
	VT_EQ(t, cap.max_inline_data, 66);
	cap = cap_of(t, 3, 1);
	VT_EQ(t, cap.max_send_sge, 3);
	VT_EQ(t, cap.max_inline_data, 48);
}

static int post_add(struct ts_end *end, size_t remote_offset, uint32_t length)
{
	return ts_post(end, &(struct ts_wr){.wr_id = 1,
					    .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					    .length = length,
					    .remote_offset = remote_offset});
}

static void atomics_checked_when_posted(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "atomics_checked_when_posted", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_ERRNO(t, post_add(&pair->a, 4, 8), EINVAL);
	VT_ERRNO(t, post_add(&pair->a, 0, 4), EINVAL);
	VT_OK(t, post_add(&pair->a, 8, 8));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void refused_sends_stay_queued(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wr, second, *bad = NULL;
	struct ts_pair *pair;
	struct ibv_sge sge;

	ts_quirks(t, "refused_sends_stay_queued", "refused_posts_name_no_wr");
	pair = ts_pair_reset(t, &options);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = IBV_WR_SEND;
	second = wr;
	second.num_sge = 1000;
	wr.next = &second;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	VT_CHECK(t, bad == &second);
	ts_connect(&pair->b);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_connect(&pair->a);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 8);
	ts_no_more(t, pair->a.send_cq);
}

/* RESET drops the refused sends, ERR flushes them. */
static void reset_and_err_end_refused_sends(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "refused_sends_stay_queued", NULL);
	pair = ts_pair_reset(t, &options);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}), EINVAL);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_to_init(&pair->a);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8}), EINVAL);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 2);
	ts_no_more(t, pair->a.send_cq);
}

static void odd_bindings_refused(struct vt *t)
{
	struct ibv_sge sges[1] = {{0}};
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW}, *bad = NULL;
	struct ts_pair *pair;

	ts_quirks(t, "odd_bindings_refused", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	wr.bind_mw.mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	VT_CHECK(t, bad == &wr);
	ts_state(&pair->a, IBV_QPS_RTS);
	pair = ts_window_pair(t);
	wr.bind_mw.mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	wr.bind_mw.bind_info.mr = pair->a.mr;
	wr.sg_list = sges;
	wr.num_sge = 1;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
}

static void room_is_checked_last(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wr, *bad = NULL;
	struct ts_pair *pair;
	struct ibv_sge sge;
	uint32_t i;

	ts_quirks(t, "room_is_checked_last", "atomics_checked_when_posted");
	options.send_wr = 1;
	pair = ts_pair(t, &options);
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8}, &sge, &wr);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), ENOMEM);
	sge.length = pair->a.cap.max_inline_data + 1;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), ENOMEM);
	wr.send_flags |= IBV_SEND_INLINE;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.send_flags = 0;
	sge.length = 4;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
}

static const struct vt_test tests[] = {
	{"posts_ignored_in_wrong_state", "unsourced", VT_NEEDS_SIM, posts_ignored_in_wrong_state,
	 VT_MAY_RECONNECT},
	{"refused_posts_name_no_wr", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ,
	 refused_posts_name_no_wr},
	{"refused_sends_stay_queued", FOUND_BOTH, VT_NEEDS_SIM, refused_sends_stay_queued},
	{"reset_and_err_end_refused_sends", FOUND_BOTH, VT_NEEDS_SIM,
	 reset_and_err_end_refused_sends},
	{"forbidden_opcodes_refused", "unsourced", VT_NEEDS_SIM, forbidden_opcodes_refused},
	{"atomics_checked_when_posted", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_ATOMICS,
	 atomics_checked_when_posted},
	{"odd_bindings_refused", FOUND_BOTH "; rdma-core providers/rxe/rxe.c, validate_send_wr",
	 VT_NEEDS_SIM, odd_bindings_refused},
	{"room_is_checked_last", FOUND_BOTH "; rdma-core providers/rxe/rxe.c, post_one_send",
	 VT_NEEDS_SIM, room_is_checked_last},
	{"slots_free_when_completed", MEASURED_BOTH " for sends; receives: unsourced",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, slots_free_when_completed},
	{"queue_sizes_round_up", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_SRQ, queue_sizes_round_up},
	{"asked_sizes_told", MEASURED_6_1, VT_NEEDS_SIM | VT_NEEDS_SRQ, asked_sizes_told},
	{"inline_shares_room", MEASURED_BOTH, VT_NEEDS_SIM, inline_shares_room},
	{"message_lengths_unchecked", MEASURED_BOTH, VT_NEEDS_SIM, message_lengths_unchecked},
	{"message_limit_unchecked", MEASURED_BOTH, VT_NEEDS_SIM, message_limit_unchecked},
	{NULL},
};

const struct vt_suite vt_suite_quirks_post = {"quirks_post", "quirks: posting", tests,
					      .simulator = true};
