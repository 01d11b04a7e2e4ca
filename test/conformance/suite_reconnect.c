/* SPDX-License-Identifier: MIT */
/*
 * A QP that is reset and connected again: nothing of the old connection is left, and what happened
 * once in the old connection happens once in the new one, too.
 */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/srq.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define TO_RESET SRC_CORE "verbs.c, qp_state_table: RESET from any state"
#define BYTES	 3000 /* three packets */

/* Zero: no packet is lost any more. */
static void lose(struct ts_end *to, uint8_t opcode, unsigned int count)
{
	(void)ts_fault(to->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						      .opcode_given = true,
						      .opcode = opcode,
						      .dest_qpn = to->qp->qp_num,
						      .count = count});
}

/* The devices do what the specification says, whatever their profile. */
static struct ts_pair *connected(struct vt *t, enum ibv_qp_type type)
{
	ts_quirks(t, "", NULL);
	return ts_connected(t, type);
}

static struct ts_options small_packets(struct vt *t, enum ibv_qp_type type)
{
	struct ts_options options = ts_defaults(t, type);

	ts_quirks(t, "", NULL);
	options.mtu = IBV_MTU_1024;
	options.max_rd_atomic = 1;
	options.max_dest_rd_atomic = 1;
	return options;
}

static void reconnect(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
	vb_fault_clear(ts_sim(pair->a.t));
	ts_connect_both(pair);
}

static uint64_t timeouts(struct vt *t)
{
	struct vb_sim_counters counters;

	VT_OK(t, vb_sim_counters(t->a.ctx, &counters));
	return counters.ack_timeouts;
}

/* --- how a connection is cut --- */

static void lose_all_reads(struct ts_pair *pair)
{
	lose(&pair->b, TS_READ_REQUEST, 0);
	ts_read(&pair->a, .wr_id = 1, .length = 8);
}

static void lose_the_nak(struct ts_pair *pair)
{
	lose(&pair->b, TS_WRITE_MIDDLE, 1);
	lose(&pair->a, TS_ACK, 0);
	ts_write(&pair->a, .wr_id = 1, .length = BYTES);
}

static void lose_what_the_nak_asks_for(struct ts_pair *pair)
{
	lose(&pair->b, TS_WRITE_MIDDLE, 0);
	ts_write(&pair->a, .wr_id = 1, .length = BYTES);
}

static void lose_the_end(struct ts_pair *pair)
{
	lose(&pair->b, TS_SEND_LAST, 0);
	ts_recv(&pair->b, .wr_id = 50, .length = BYTES);
	ts_send(&pair->a, .wr_id = 1, .length = BYTES);
}

static void post_no_receive(struct ts_pair *pair)
{
	ts_send(&pair->a, .wr_id = 1, .length = 8);
}

/* A gap before the first packet is repaired by a NAK, and then everything works. */
static void check_connection(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;
	const uint64_t before = timeouts(t);

	lose(&pair->b, TS_WRITE_FIRST, 1);
	ts_write(&pair->a, .wr_id = 2, .length = BYTES);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_EQ(t, timeouts(t), before);
	memset(pair->b.buffer, TS_BLANK, BYTES);
	ts_transfer(pair, IBV_WR_RDMA_READ, BYTES);
	ts_transfer(pair, IBV_WR_SEND, BYTES);
}

static void nothing_of_a_cut_connection_is_left(struct vt *t)
{
	static const struct {
		const char *name;
		void (*cut)(struct ts_pair *pair);
	} rows[] = {
		{"READ requests are lost", lose_all_reads},
		{"a NAK is lost", lose_the_nak},
		{"repeated packets are lost", lose_what_the_nak_asks_for},
		{"the end of a SEND is lost", lose_the_end},
		{"the peer has no receive", post_no_receive},
	};

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		const struct ts_options options = small_packets(t, IBV_QPT_RC);
		struct ts_pair *pair = ts_pair(t, &options);

		vt_row(t, "%s", rows[i].name);
		rows[i].cut(pair);
		ts_pause(t, 10000);
		reconnect(pair);
		check_connection(pair);
	}
}

/* --- timers --- */

static void old_ack_timer_is_stopped(struct vt *t)
{
	struct ts_options options = small_packets(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair(t, &options);
	const uint64_t before = timeouts(t);
	uint64_t since_ns;

	lose(&pair->b, TS_WRITE_ONLY, 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 1000000);
	pair->a.options.timeout = 18; /* 1.07 s; the old timer has 66 ms left */
	reconnect(pair);
	lose(&pair->b, TS_WRITE_ONLY, 1);
	since_ns = ts_now_ns(t);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_CHECK(t, ts_now_ns(t) - since_ns >= UINT64_C(4096) << 18);
	VT_EQ(t, timeouts(t), before + 1);
}

static void old_ack_timer_does_not_fire_in_an_idle_connection(struct vt *t)
{
	const struct ts_options options = small_packets(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair(t, &options);
	const uint64_t before = timeouts(t);

	lose(&pair->b, TS_WRITE_ONLY, 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 1000000);
	reconnect(pair);
	ts_settle(t);
	VT_EQ(t, timeouts(t), before);
}

/* --- queues --- */

static void old_completions_free_no_new_slots(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);
	const uint32_t room = pair->a.cap.max_send_wr;
	uint32_t i;

	for (i = 0; i < 5; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	ts_settle(t);
	reconnect(pair);
	lose(&pair->b, TS_WRITE_ONLY, 0);
	for (i = 0; i < room; i++)
		ts_write(&pair->a, .wr_id = 100 + i, .length = 8);
	for (i = 0; i < 5; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_RDMA_WRITE}), ENOMEM);
	vb_fault_clear(ts_sim(t));
	for (i = 0; i < room; i++)
		ts_done(t, pair->a.send_cq, 100 + i, IBV_WC_RDMA_WRITE);
}

static void old_receives_free_no_new_slots(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);
	const uint32_t room = pair->b.cap.max_recv_wr;
	uint32_t i;

	for (i = 0; i < 5; i++) {
		ts_recv(&pair->b, .wr_id = i, .length = 8);
		ts_send(&pair->a, .wr_id = i, .length = 8);
	}
	ts_settle(t);
	reconnect(pair);
	for (i = 0; i < room; i++)
		ts_recv(&pair->b, .wr_id = 100 + i, .length = 8);
	for (i = 0; i < 5; i++)
		ts_received(t, pair->b.recv_cq, i, 8);
	VT_ERRNO(t, ts_post_rr(&pair->b, &(struct ts_rr){.length = 8}), ENOMEM);
}

static void reset_gives_both_queues_back(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	lose(&pair->b, TS_WRITE_ONLY, 0);
	for (int turn = 0; turn < 3; turn++) {
		vt_row(t, "connection %d", turn + 1);
		for (uint32_t i = 0; i < pair->a.cap.max_send_wr; i++)
			ts_write(&pair->a, .wr_id = i, .length = 8);
		for (uint32_t i = 0; i < pair->a.cap.max_recv_wr; i++)
			ts_recv(&pair->a, .wr_id = i, .length = 8);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
		ts_connect(&pair->a);
	}
}

static void reset_ends_draining(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	lose(&pair->b, TS_WRITE_ONLY, 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 1000);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	VT_EQ(t, ts_query(&pair->a).sq_draining, 1);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_EQ(t, ts_query(&pair->a).sq_draining, 0);
}

static void error_ends_draining(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	lose(&pair->b, TS_WRITE_ONLY, 0);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 1000);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	VT_EQ(t, ts_query(&pair->a).sq_draining, 0);
}

/* --- events --- */

static void each_connection_is_established(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	for (int turn = 0; turn < 3; turn++) {
		vt_row(t, "connection %d", turn + 1);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
		VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
		ts_connect(&pair->a);
		ts_to_init(&pair->b);
		ts_recv(&pair->b, .wr_id = 50, .length = 8);
		ts_to_rtr(&pair->b);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50, 8);
		ts_event(t, &t->b, IBV_EVENT_COMM_EST, pair->b.qp);
		ts_no_event(t, &t->b);
	}
}

static void each_error_reaches_the_last_wqe(struct vt *t)
{
	struct ts_shared *shared = ts_shared(t);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);

	ts_quirks(t, "", NULL);
	for (int turn = 0; turn < 3; turn++) {
		vt_row(t, "connection %d", turn + 1);
		VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
		ts_event(t, &t->b, IBV_EVENT_QP_LAST_WQE_REACHED, pair->b.qp);
		ts_no_event(t, &t->b);
		reconnect(pair);
	}
}

static void to_sqd(struct ts_end *end, bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	VT_OK(end->t, vb_modify_qp(end->qp, &attr,
				   IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0)));
}

static void drained_event_comes_each_time_it_is_asked_for(struct vt *t)
{
	static const bool asked[] = {true, false, true, true, false};
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	for (size_t i = 0; i < TS_COUNT(asked); i++) {
		vt_row(t, "drain %zu", i + 1);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_pause(t, 1000);
		to_sqd(&pair->a, asked[i]);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
		ts_drained(&pair->a);
		if (asked[i])
			ts_event(t, &t->a, IBV_EVENT_SQ_DRAINED, pair->a.qp);
		ts_no_event(t, &t->a);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	}
}

/* --- UC and UD --- */

/* The failed send was never on the wire, so the peer must not see a gap. */
static void uc_goes_on_behind_a_failed_send(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_UC);

	for (int turn = 0; turn < 3; turn++) {
		vt_row(t, "error %d", turn + 1);
		ts_recv(&pair->a, .wr_id = 60, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 100,
			.lkey = ts_wrong_key(pair->a.mr->lkey));
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
		ts_state(&pair->a, IBV_QPS_SQE);
		ts_no_more(t, pair->a.recv_cq);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
		ts_transfer(pair, IBV_WR_SEND, 5000);
		ts_recv(&pair->b, .wr_id = 50, .length = 100);
		ts_send(&pair->b, .wr_id = 2, .length = 100);
		ts_done(t, pair->b.send_cq, 2, IBV_WC_SEND);
		ts_received(t, pair->a.recv_cq, 60, 100);
		ts_send(&pair->a, .wr_id = 3, .length = 100);
		ts_done(t, pair->a.send_cq, 3, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50, 100);
	}
}

/* A send in error stops the sends behind it, and not the repetition of those before it. */
static void sends_before_a_failed_one_are_repeated(struct vt *t)
{
	struct ts_pair *pair = connected(t, IBV_QPT_RC);

	lose(&pair->b, TS_WRITE_ONLY, 1);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = ts_wrong_key(pair->a.mr->lkey));
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 8, 1);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_LOC_PROT_ERR);
	ts_flushed(t, pair->a.send_cq, 3);
}

/* --- quirks --- */

static void reset_frees_a_jammed_uc_qp(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "cut_writes_jam_uc", NULL);
	pair = ts_connected(t, IBV_QPT_UC);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	reconnect(pair);
	ts_transfer(pair, IBV_WR_SEND, 8);
}

/* Two sends were dropped by the first RESET, none by the second. */
static void ghosts_are_of_the_last_reset(struct vt *t)
{
	struct ts_pair *pair;
	struct ts_log *log;

	ts_quirks(t, "resets_leave_ghosts", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (int ghosts = 2; ghosts >= 0; ghosts -= 2) {
		vt_row(t, "%d ghosts", ghosts);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
		for (int i = 0; i < ghosts; i++)
			ts_send(&pair->a, .wr_id = 1, .length = 8);
		reconnect(pair);
	}
	log = ts_watch(t);
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
	VT_EQ(t, ts_count(log, TS_WRITE_ONLY, 0), 1);
}

#define FAULTS (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"nothing_of_a_cut_connection_is_left", TO_RESET, FAULTS | VT_NEEDS_MTU_1024,
	 nothing_of_a_cut_connection_is_left, VT_MAY_RECONNECT},
	{"old_ack_timer_is_stopped", "unsourced", FAULTS | VT_NEEDS_MTU_1024,
	 old_ack_timer_is_stopped, VT_MAY_RECONNECT},
	{"old_ack_timer_does_not_fire_in_an_idle_connection", "unsourced",
	 FAULTS | VT_NEEDS_MTU_1024, old_ack_timer_does_not_fire_in_an_idle_connection,
	 VT_MAY_RECONNECT},
	{"old_completions_free_no_new_slots", "unsourced", FAULTS,
	 old_completions_free_no_new_slots, VT_MAY_RECONNECT},
	{"old_receives_free_no_new_slots", "unsourced", VT_NEEDS_SIM,
	 old_receives_free_no_new_slots, VT_MAY_RECONNECT},
	{"reset_gives_both_queues_back", SRC_RVT "qp.c, rvt_init_qp: s_head, s_last", FAULTS,
	 reset_gives_both_queues_back, VT_MAY_RECONNECT},
	{"reset_ends_draining", "ibv_query_qp(3): sq_draining", FAULTS, reset_ends_draining},
	{"error_ends_draining", "ibv_query_qp(3): sq_draining", FAULTS, error_ends_draining},
	{"each_connection_is_established", "ibv_get_async_event(3): COMM_EST", 0,
	 each_connection_is_established, VT_MAY_RECONNECT},
	{"each_error_reaches_the_last_wqe", "ibv_get_async_event(3): QP_LAST_WQE_REACHED",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, each_error_reaches_the_last_wqe, VT_MAY_RECONNECT},
	{"drained_event_comes_each_time_it_is_asked_for", "ibv_get_async_event(3): SQ_DRAINED", 0,
	 drained_event_comes_each_time_it_is_asked_for},
	{"uc_goes_on_behind_a_failed_send", SRC_CORE "verbs.c, qp_state_table: SQE to RTS", 0,
	 uc_goes_on_behind_a_failed_send},
	{"sends_before_a_failed_one_are_repeated", "unsourced", FAULTS,
	 sends_before_a_failed_one_are_repeated},
	{"reset_frees_a_jammed_uc_qp", "unsourced", VT_NEEDS_SIM, reset_frees_a_jammed_uc_qp,
	 VT_MAY_RECONNECT},
	{"ghosts_are_of_the_last_reset", "unsourced", VT_NEEDS_SIM, ghosts_are_of_the_last_reset,
	 VT_MAY_RECONNECT},
	{NULL},
};

const struct vt_suite vt_suite_reconnect = {"reconnect", "QPs that are reset or recover", tests,
					    .simulator = true};
