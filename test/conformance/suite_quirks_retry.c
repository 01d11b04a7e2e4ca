/* SPDX-License-Identifier: MIT */
/* Quirks of retries and waiting for a receive. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

static void retry_7_is_endless(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_quirks(t, "retry_7_is_endless", NULL);
	options.timeout = 8;
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	/* With seven retries the write would end after 8 timeouts of 1 ms. */
	ts_pause(t, 3000000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_connect(&pair->b);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 8, 1);
}

/* Posts a send that nobody answers, and behind it a send with a local error. */
static struct ts_pair *fail_behind(struct vt *t, uint8_t retry_cnt)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "local_errors_end_repeats", NULL);
	options.timeout = 14; /* 67 ms: on a busy machine, too, the second send is in time */
	options.retry_cnt = retry_cnt;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	return pair;
}

static void local_errors_end_repeats(struct vt *t)
{
	struct ts_pair *pair = fail_behind(t, 2);

	/* With the repeats it would end after 3 timeouts. */
	ts_pause(t, 1000000000);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 2);
}

static void last_retry_ends_in_spite_of_a_local_error(struct vt *t)
{
	struct ts_pair *pair = fail_behind(t, 0);

	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
}

/* The first send waits for a receive when the second fails. */
static void local_errors_end_rnr_waits(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "local_errors_end_repeats", "rnr_naks_stop_nothing");
	options.rnr_retry = 7;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 100000);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_pause(t, 100000000);
	ts_no_more(t, pair->b.recv_cq);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

/* The retries left go down from 9 to 7, where retry_7_is_endless keeps them. */
static void retry_9_is_endless(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	int mask;

	ts_quirks(t, "retry_ranges_unchecked", "retry_7_is_endless");
	options.timeout = 8;
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	ts_to_rtr(&pair->a);
	mask = ts_rts_attr(&pair->a, &attr);
	attr.retry_cnt = 9;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 3000000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_state(&pair->a, IBV_QPS_RTS);
}

/* Posts two SENDs in one call: both leave before the RNR timer of the first can expire. */
static void send_two(struct ts_pair *pair, uint64_t first_wr_id)
{
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_sge sges[2];

	for (int i = 0; i < 2; i++)
		ts_fill_wr(&pair->a,
			   &(struct ts_wr){
				   .wr_id = first_wr_id + i, .opcode = IBV_WR_SEND, .length = 8},
			   &sges[i], &wrs[i]);
	wrs[0].next = &wrs[1];
	VT_OK(pair->a.t, ibv_post_send(pair->a.qp, wrs, &bad));
}

/* Without the quirk, the sequence NAK for send 4 would end the QP, since retry_cnt is 0. */
static void repeats_outlive_reset(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "repeats_outlive_reset", "rnr_naks_stop_nothing");
	options.rnr_retry = 1;
	options.retry_cnt = 7;
	pair = ts_pair(t, &options);
	send_two(pair, 1);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	pair->a.options.retry_cnt = 0;
	ts_connect_both(pair);
	send_two(pair, 3);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 4);
}

static void rnr_naks_stop_nothing(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "rnr_naks_stop_nothing", NULL);
	options.retry_cnt = 0;
	options.timeout = 0;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 100000);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
}

static void message_arrives_once_a_receive_is_posted(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "rnr_naks_stop_nothing", NULL);
	options.timeout = 0;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_pause(t, 5000000);
	ts_recv(&pair->b, .wr_id = 5, .length = 4 * ts_mtu_bytes(pair->a.options.mtu));
	ts_recv(&pair->b, .wr_id = 6, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_received(t, pair->b.recv_cq, 6, 8);
}

static void rnr_waits_time_out(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "rnr_waits_time_out", NULL);
	options.retry_cnt = 1;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

/* B is in ERR and answers nothing. */
static void repeated_fences_wait_for_all(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_sge sges[2];
	struct ts_pair *pair;

	ts_quirks(t, "repeated_fences_wait_for_all", NULL);
	options.timeout = 8;
	options.retry_cnt = 2;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sges[0], &wrs[0]);
	wrs[0].send_flags |= IBV_SEND_FENCE;
	wrs[0].next = &wrs[1];
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8, .rkey = pair->b.mr->rkey},
		   &sges[1], &wrs[1]);
	wrs[1].opcode = IBV_WR_RDMA_READ;
	VT_OK(t, ibv_post_send(pair->a.qp, wrs, &bad));
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

/*
 * A retransmission that was the last retry before the reset makes A ignore sequence NAKs after it.
 */
static void last_retry_outlives_reset(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "repeats_outlive_reset", "rnr_naks_stop_nothing");
	options.timeout = 8;
	options.retry_cnt = 1;
	options.rnr_retry = 1;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	pair->a.options.retry_cnt = 0;
	pair->a.options.timeout = 14;
	ts_connect_both(pair);
	send_two(pair, 3);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 4);
}

/* Returns after how long a write to a peer that does not answer ends. */
static uint64_t time_of_failure_ns(struct vt *t, uint8_t timeout, uint8_t retry_cnt)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	uint64_t since_ns;

	options.timeout = timeout;
	options.retry_cnt = retry_cnt;
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	since_ns = ts_now_ns(t);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	return ts_now_ns(t) - since_ns;
}

#define TICK_NS 4000000ull

/* Each row: what Linux does with CONFIG_HZ=250, from a tick on, and what was measured in ms. */
static const struct {
	uint8_t timeout, retry_cnt;
	unsigned int ticks;
	double measured_ms;
} tick_rows[] = {{1, 2, 6, 23.17},   {8, 0, 2, 8.03},	  {8, 1, 4, 12.29},
		 {8, 2, 6, 23.26},   {10, 2, 6, 23.93},	  {12, 2, 15, 59.12},
		 {14, 1, 34, 135.0}, {14, 2, 51, 200.32}, {16, 1, 144, 572.09}};

static void timers_tick(struct vt *t)
{
	uint64_t ns, tick;
	size_t i;

	ts_quirks(t, "timers_tick", NULL);
	for (i = 0; i < TS_COUNT(tick_rows); i++) {
		vt_row(t, "timeout %u, retry_cnt %u", tick_rows[i].timeout, tick_rows[i].retry_cnt);
		/* From a bucket of 8 ticks on, and in the middle of one. */
		for (tick = 0; tick < 2; tick++) {
			ts_pause(t, 8 * TICK_NS - ts_now_ns(t) % (8 * TICK_NS) +
					    tick * 3 * TICK_NS / 2);
			ns = time_of_failure_ns(t, tick_rows[i].timeout, tick_rows[i].retry_cnt);
			if (tick == 0)
				VT_EQ(t, ns, tick_rows[i].ticks * TICK_NS);
			VT_EQ(t, ts_now_ns(t) % TICK_NS, 0);
			VT_CHECK(t, ns > tick_rows[i].retry_cnt * TICK_NS);
		}
		/* The first wait begins anywhere within a tick, or within 8 ticks if it is long. */
		VT_CHECK(t, tick_rows[i].measured_ms * 1e6 <= (tick_rows[i].ticks + 0.1) * TICK_NS);
		VT_CHECK(t, tick_rows[i].measured_ms * 1e6 >=
				    (tick_rows[i].ticks - (tick_rows[i].timeout > 14 ? 8 : 1)) *
					    TICK_NS);
	}
}

/* min_rnr_timer 12 is 640 us, 20 is 10.24 ms: 1 and 3 ticks, and the tick that has begun. */
static void rnr_timer_ticks(struct vt *t)
{
	static const struct {
		uint8_t timer;
		unsigned int ticks;
	} rows[] = {{1, 2}, {12, 2}, {20, 4}};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	uint64_t since_ns;
	size_t i;

	ts_quirks(t, "timers_tick", NULL);
	options.rnr_retry = 3;
	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "min_rnr_timer %u", rows[i].timer);
		options.min_rnr_timer = rows[i].timer;
		pair = ts_pair(t, &options);
		ts_pause(t, TICK_NS - ts_now_ns(t) % TICK_NS);
		since_ns = ts_now_ns(t);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		VT_EQ(t, ts_now_ns(t) - since_ns, 3 * rows[i].ticks * TICK_NS);
	}
}

/* The measured times are in suite_mlx5.c; here, what a program can rely on. */
static void ack_timeout_floor(struct vt *t)
{
	uint64_t lowest_ns;

	ts_quirks(t, "ack_timeout_floor", NULL);
	lowest_ns = time_of_failure_ns(t, 16, 7);
	VT_EQ(t, time_of_failure_ns(t, 1, 7), lowest_ns);
	VT_EQ(t, time_of_failure_ns(t, 15, 7), lowest_ns);
	VT_CHECK(t, time_of_failure_ns(t, 17, 7) > lowest_ns);
	VT_EQ(t, time_of_failure_ns(t, 8, 0), time_of_failure_ns(t, 8, 4));
}

static void first_timeout_repeats_nothing(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_log *log = ts_watch(t);
	uint64_t ns;

	ts_quirks(t, "first_timeout_repeats_nothing", NULL);
	VT_OK(t, vb_sim_counters(t->a.ctx, &before));
	ns = time_of_failure_ns(t, 14, 3);
	VT_OK(t, vb_sim_counters(t->a.ctx, &after));
	VT_CHECK(t, ns > 4 * (4096ull << 14) && ns < 5 * (4096ull << 14));
	VT_EQ(t, ts_count(log, TS_WRITE_ONLY, 0), 4);
	VT_EQ(t, after.ack_timeouts - before.ack_timeouts, 5);
}

#define WAITS SRC_STUDY "harness/ack_timeout/NOTES.md"

static const struct vt_test tests[] = {
	{"timers_tick",
	 MEASURED_6_1 "; Linux kernel/time/timer.c, calc_index; " SRC_RXE
		      "rxe_qp.c, rxe_qp_from_attr: nsecs_to_jiffies",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, timers_tick},
	{"rnr_timer_ticks",
	 SRC_RXE
	 "rxe_comp.c, rnrnak_jiffies: usecs_to_jiffies; Linux kernel/time/timer.c, calc_index",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, rnr_timer_ticks},
	{"ack_timeout_floor", WAITS ", A1 and A2", VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK,
	 ack_timeout_floor},
	{"first_timeout_repeats_nothing", WAITS ", B: R + 2 increments, R + 1 transmissions",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, first_timeout_repeats_nothing},
	{"retry_7_is_endless", MEASURED_BOTH, VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK,
	 retry_7_is_endless},
	{"retry_9_is_endless", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, COMPST_ERROR_RETRY",
	 VT_NEEDS_SIM, retry_9_is_endless},
	{"rnr_naks_stop_nothing", FOUND_BOTH "; " SRC_RXE "rxe_resp.c, check_psn, and rxe_req.c",
	 VT_NEEDS_SIM, rnr_naks_stop_nothing},
	{"message_arrives_once_a_receive_is_posted", SRC_RXE "rxe_comp.c", VT_NEEDS_SIM,
	 message_arrives_once_a_receive_is_posted},
	{"rnr_waits_time_out", MEASURED_6_12 "; " SRC_RXE "rxe_comp.c, rxe_completer", VT_NEEDS_SIM,
	 rnr_waits_time_out},
	{"repeated_fences_wait_for_all", FOUND_BOTH "; " SRC_RXE "rxe_req.c, rxe_wqe_is_fenced",
	 VT_NEEDS_SIM, repeated_fences_wait_for_all},
	{"local_errors_end_repeats",
	 FOUND_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 local_errors_end_repeats},
	{"last_retry_ends_in_spite_of_a_local_error",
	 FOUND_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_comp.c, COMPST_ERROR_RETRY",
	 VT_NEEDS_SIM, last_retry_ends_in_spite_of_a_local_error},
	{"local_errors_end_rnr_waits", FOUND_6_1 "; " SRC_RXE "rxe_req.c, rxe_requester",
	 VT_NEEDS_SIM, local_errors_end_rnr_waits},
	{"repeats_outlive_reset", FOUND_BOTH "; " SRC_RXE "rxe_comp.c, started_retry", VT_NEEDS_SIM,
	 repeats_outlive_reset, VT_MAY_RECONNECT},
	{"last_retry_outlives_reset", FOUND_6_1 "; " SRC_RXE "rxe_comp.c, COMPST_ERROR_RETRY",
	 VT_NEEDS_SIM, last_retry_outlives_reset, VT_MAY_RECONNECT},
	{NULL},
};

const struct vt_suite vt_suite_quirks_retry = {
	"quirks_retry", "quirks: retries and waiting for a receive", tests, .simulator = true};
