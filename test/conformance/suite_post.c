/* SPDX-License-Identifier: MIT */
/*
 * Posting: which WRs are accepted and refused, and how many a queue holds.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

#define TYPES TS_COUNT(types)

/* Posts two empty receives as one list; *at becomes the index of bad_wr, or -1. */
static int post_recv_list(struct ts_end *end, struct ibv_recv_wr *wrs, int *at)
{
	struct ibv_recv_wr *bad = NULL;
	int error = ibv_post_recv(end->qp, wrs, &bad);

	*at = bad ? (int)(bad - wrs) : -1;
	return error;
}

static int post_send_list(struct ts_end *end, struct ibv_send_wr *wrs, int *at)
{
	struct ibv_send_wr *bad = NULL;
	int error = ibv_post_send(end->qp, wrs, &bad);

	*at = bad ? (int)(bad - wrs) : -1;
	return error;
}

/* Three linked sends of 8 bytes, wr_id 1 to 3. */
static void three_sends(struct ts_end *end, struct ibv_sge *sges, struct ibv_send_wr *wrs)
{
	int i;

	for (i = 0; i < 3; i++) {
		ts_fill_wr(end,
			   &(struct ts_wr){
				   .wr_id = (uint64_t)i + 1, .opcode = IBV_WR_SEND, .length = 8},
			   &sges[i], &wrs[i]);
		wrs[i].next = i < 2 ? &wrs[i + 1] : NULL;
	}
}

static void send_before_rts_is_einval(struct vt *t)
{
	struct ibv_send_wr wrs[3];
	struct ts_options options;
	struct ibv_sge sges[3];
	struct ts_pair *pair;
	size_t i;
	int step, at;

	for (i = 0; i < TYPES; i++) {
		options = ts_defaults(t, types[i]);
		pair = ts_pair_reset(t, &options);
		for (step = 0; step < 3; step++) {
			vt_row(t, "type %d in %s", types[i], vt_qp_state_name(pair->a.qp->state));
			three_sends(&pair->a, sges, wrs);
			VT_EXPECT_ERRNO(t, post_send_list(&pair->a, wrs, &at), EINVAL);
			VT_EXPECT_EQ(t, at, 0);
			if (step == 0)
				ts_to_init(&pair->a);
			if (step == 1)
				ts_to_rtr(&pair->a);
		}
		ts_no_more(t, pair->a.send_cq);
	}
}

static void recv_in_reset_is_einval(struct vt *t)
{
	struct ibv_recv_wr wrs[2] = {{.wr_id = 1, .next = &wrs[1]}, {.wr_id = 2}};
	struct ts_options options;
	struct ts_pair *pair;
	size_t i;
	int at;

	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		options = ts_defaults(t, types[i]);
		pair = ts_pair_reset(t, &options);
		VT_EXPECT_ERRNO(t, post_recv_list(&pair->b, wrs, &at), EINVAL);
		VT_EXPECT_EQ(t, at, 0);
	}
}

static void recv_in_init_is_kept(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_to_init(&pair->b);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_to_rtr(&pair->b);
	ts_connect(&pair->a);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 8);
}

static void send_list_stops_at_the_bad_one(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[3];
	struct ibv_sge sges[3];
	int at;

	three_sends(&pair->a, sges, wrs);
	wrs[1].num_sge = (int)pair->a.cap.max_send_sge + 1;
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	VT_ERRNO(t, post_send_list(&pair->a, wrs, &at), EINVAL);
	VT_EQ(t, at, 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 8);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void recv_list_stops_at_the_bad_one(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_recv_wr wrs[3] = {
		{.wr_id = 1, .next = &wrs[1]}, {.wr_id = 2, .next = &wrs[2]}, {.wr_id = 3}};
	int at;

	wrs[1].num_sge = (int)pair->b.cap.max_recv_sge + 1;
	VT_ERRNO(t, post_recv_list(&pair->b, wrs, &at), EINVAL);
	VT_EQ(t, at, 1);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 1);
	ts_no_more(t, pair->b.recv_cq);
}

static void list_is_posted_in_order(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[3];
	struct ibv_sge sges[3];
	unsigned int i;
	int at;

	for (i = 0; i < 3; i++)
		ts_recv(&pair->b, .wr_id = 50 + i, .offset = i * 8, .length = 8);
	three_sends(&pair->a, sges, wrs);
	VT_OK(t, post_send_list(&pair->a, wrs, &at));
	for (i = 0; i < 3; i++) {
		ts_done(t, pair->a.send_cq, 1 + i, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50 + i, 8);
	}
}

static void most_sges_are_taken(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_sge sges[64];
	uint32_t i, count = pair->a.cap.max_send_sge;

	if (count > 64)
		count = 64;
	for (i = 0; i < count; i++)
		sges[i] = (struct ibv_sge){(uintptr_t)pair->a.buffer + i, 1, pair->a.mr->lkey};
	ts_recv(&pair->b, .wr_id = 5, .length = count);
	ts_send(&pair->a, .wr_id = 1, .sge = sges, .num_sge = (int)count);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, count);
	ts_verify(t, pair->b.buffer, count, 1);
}

static void no_sge_is_an_empty_message(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_sge none;

	ts_recv(&pair->b, .wr_id = 5, .sge = &none, .num_sge = 0);
	ts_send(&pair->a, .wr_id = 1, .sge = &none, .num_sge = 0);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 0);
}

static struct ts_pair *small_queues(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.send_wr = 4;
	options.recv_wr = 4;
	return ts_pair(t, &options);
}

/* Fills the send queue with empty writes, of which only the last is signalled. */
static void fill_send_queue(struct ts_end *end)
{
	uint32_t i;

	for (i = 1; i <= end->cap.max_send_wr; i++)
		ts_write(end, .wr_id = i, .unsignalled = i < end->cap.max_send_wr);
}

static int one_more_write(struct ts_end *end)
{
	return ts_post(end, &(struct ts_wr){.wr_id = 99, .opcode = IBV_WR_RDMA_WRITE});
}

static void full_send_queue_is_enomem(struct vt *t)
{
	struct ts_pair *pair = small_queues(t);
	uint32_t i;

	VT_CHECK(t, pair->a.cap.max_send_wr >= 4);
	for (i = 1; i <= pair->a.cap.max_send_wr; i++)
		ts_write(&pair->a, .wr_id = i);
	VT_ERRNO(t, one_more_write(&pair->a), ENOMEM);
	for (i = 1; i <= pair->a.cap.max_send_wr; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
}

static void polling_frees_slots_of_the_send_queue(struct vt *t)
{
	struct ts_pair *pair = small_queues(t);
	uint32_t i;

	fill_send_queue(&pair->a);
	ts_settle(t);
	VT_ERRNO(t, one_more_write(&pair->a), ENOMEM);
	ts_done(t, pair->a.send_cq, pair->a.cap.max_send_wr, IBV_WC_RDMA_WRITE);
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_write(&pair->a, .wr_id = 100 + i);
	VT_ERRNO(t, one_more_write(&pair->a), ENOMEM);
}

static void full_recv_queue_is_enomem(struct vt *t)
{
	struct ts_pair *pair = small_queues(t);
	uint32_t i;

	for (i = 0; i < pair->b.cap.max_recv_wr; i++)
		ts_recv(&pair->b, .wr_id = i, .length = 8);
	VT_ERRNO(t, ts_post_rr(&pair->b, &(struct ts_rr){.wr_id = 99}), ENOMEM);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_received(t, pair->b.recv_cq, 0, 8);
	ts_recv(&pair->b, .wr_id = 100, .length = 8);
	VT_ERRNO(t, ts_post_rr(&pair->b, &(struct ts_rr){.wr_id = 99}), ENOMEM);
}

static void inline_too_long_is_einval(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint32_t most = pair->a.cap.max_inline_data;

	VT_CHECK(t, most >= 64);
	VT_ERRNO(t,
		 ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_SEND,
						   .flags = IBV_SEND_INLINE,
						   .length = most + 1}),
		 EINVAL);
	ts_recv(&pair->b, .wr_id = 5, .length = most);
	ts_send(&pair->a, .wr_id = 1, .flags = IBV_SEND_INLINE, .length = most);
	ts_received(t, pair->b.recv_cq, 5, most);
	ts_verify(t, pair->b.buffer, most, 1);
}

static void inline_buffer_is_free_at_once(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 64);
	ts_send(&pair->a, .wr_id = 1, .flags = IBV_SEND_INLINE, .length = 64);
	memset(pair->a.buffer, 0, 64);
	ts_received(t, pair->b.recv_cq, 5, 64);
	ts_verify(t, pair->b.buffer, 64, 1);
}

static void inline_checks_no_lkey(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 64);
	ts_send(&pair->a, .wr_id = 1, .flags = IBV_SEND_INLINE, .length = 64, .lkey = 0xdeadbeef);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 64);
	ts_verify(t, pair->b.buffer, 64, 1);
}

static void unknown_opcode_is_an_error(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	int error = ts_post(&pair->a, &(struct ts_wr){.wr_id = 1, .opcode = 99});

	if (error) {
		VT_EQ(t, error, EINVAL);
		ts_transfer(pair, IBV_WR_SEND, 8);
	} else {
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
		ts_state(&pair->a, IBV_QPS_ERR);
	}
	ts_no_more(t, pair->b.recv_cq);
}

/* The table of ibv_post_send(3), without windows, invalidation and segmentation. */
static const struct {
	enum ibv_wr_opcode opcode;
	const char *name;
	bool legal[TYPES];
} legality[] = {
	{IBV_WR_SEND, "SEND", {true, true, true}},
	{IBV_WR_SEND_WITH_IMM, "SEND_WITH_IMM", {true, true, true}},
	{IBV_WR_RDMA_WRITE, "RDMA_WRITE", {true, true, false}},
	{IBV_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM", {true, true, false}},
	{IBV_WR_RDMA_READ, "RDMA_READ", {true, false, false}},
	{IBV_WR_ATOMIC_CMP_AND_SWP, "ATOMIC_CMP_AND_SWP", {true, false, false}},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, "ATOMIC_FETCH_AND_ADD", {true, false, false}},
};

static void each_opcode_on_each_type(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;
	size_t i, type;

	for (type = 0; type < TYPES; type++)
		for (i = 0; i < TS_COUNT(legality); i++) {
			vt_row(t, "type %d %s", types[type], legality[i].name);
			pair = ts_connected(t, types[type]);
			ts_recv(&pair->b, .wr_id = 5, .length = 64);
			TS_POST(&pair->a, legality[i].opcode, .wr_id = 1, .length = 8);
			VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
			VT_EXPECT_STATUS(t, wc.status,
					 legality[i].legal[type] ? IBV_WC_SUCCESS
								 : IBV_WC_LOC_QP_OP_ERR);
			if (legality[i].legal[type])
				continue;
			ts_no_more(t, pair->b.recv_cq);
			VT_EXPECT_STATE(t, ts_query_state(t, pair->a.qp), IBV_QPS_SQE);
		}
}

static void work_posted_in_err_flushes(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, types[i]);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_recv(&pair->a, .wr_id = 2, .length = 8);
		ts_send(&pair->a, .wr_id = 3, .length = 8, .unsignalled = true);
		ts_flushed(t, pair->a.send_cq, 1);
		ts_flushed(t, pair->a.send_cq, 3);
		ts_flushed(t, pair->a.recv_cq, 2);
		ts_no_more(t, pair->a.send_cq);
	}
}

static void sq_sig_all_signals_all(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.signal_all = true;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .unsignalled = true);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .unsignalled = true);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
}

static const struct vt_test tests[] = {
	{"send_before_rts_is_einval",
	 "ibv_post_send(3): bad_wr; EINVAL: " SRC_RXE "rxe_verbs.c, rxe_post_send", 0,
	 send_before_rts_is_einval},
	{"recv_in_reset_is_einval",
	 "ibv_post_recv(3): bad_wr; EINVAL: " SRC_RXE "rxe_verbs.c, rxe_post_recv", 0,
	 recv_in_reset_is_einval},
	{"recv_in_init_is_kept", SRC_STATE_OPS ": INIT", 0, recv_in_init_is_kept},
	{"send_list_stops_at_the_bad_one", "ibv_post_send(3)", 0, send_list_stops_at_the_bad_one},
	{"recv_list_stops_at_the_bad_one", "ibv_post_recv(3)", 0, recv_list_stops_at_the_bad_one},
	{"list_is_posted_in_order", "ibv_post_send(3)", 0, list_is_posted_in_order},
	{"most_sges_are_taken", "ibv_create_qp(3): max_send_sge", 0, most_sges_are_taken},
	{"no_sge_is_an_empty_message",
	 SRC_RVT "qp.c, rvt_post_one_wr: \"IB spec says that num_sge == 0 is OK\"", 0,
	 no_sge_is_an_empty_message},
	{"full_send_queue_is_enomem",
	 "ibv_create_qp(3): max_send_wr; ENOMEM: " SRC_RXE "rxe_verbs.c, post_one_send", 0,
	 full_send_queue_is_enomem},
	{"polling_frees_slots_of_the_send_queue", "unsourced", 0,
	 polling_frees_slots_of_the_send_queue},
	{"full_recv_queue_is_enomem",
	 "ibv_create_qp(3): max_recv_wr; ENOMEM: " SRC_RXE "rxe_verbs.c, post_one_recv", 0,
	 full_recv_queue_is_enomem},
	{"inline_too_long_is_einval",
	 "ibv_create_qp(3): max_inline_data; EINVAL: " SRC_RXE "rxe_verbs.c, validate_send_wr", 0,
	 inline_too_long_is_einval},
	{"inline_buffer_is_free_at_once", "ibv_post_send(3), Notes", 0,
	 inline_buffer_is_free_at_once},
	{"inline_checks_no_lkey", "ibv_post_send(3): IBV_SEND_INLINE", 0, inline_checks_no_lkey},
	{"unknown_opcode_is_an_error",
	 "EINVAL: " SRC_RVT "qp.c, rvt_qp_valid_operation; LOC_QP_OP_ERR: " SRC_RXE
	 "rxe_req.c, rxe_requester",
	 0, unknown_opcode_is_an_error},
	{"each_opcode_on_each_type",
	 "ibv_post_send(3), the table; LOC_QP_OP_ERR: " SRC_RXE
	 "rxe_req.c, rxe_requester: next_opcode fails",
	 VT_NEEDS_ATOMICS, each_opcode_on_each_type},
	{"work_posted_in_err_flushes",
	 SRC_STATE_OPS ": ERR; " SRC_RVT "qp.c, rvt_post_recv: qp_err_flush", 0,
	 work_posted_in_err_flushes},
	{"sq_sig_all_signals_all", "ibv_create_qp(3): sq_sig_all", 0, sq_sig_all_signals_all},
	{NULL},
};

const struct vt_suite vt_suite_post = {"post", "posting work requests", tests};
