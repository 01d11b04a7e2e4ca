/* SPDX-License-Identifier: MIT */
/*
 * Receiver not ready: how often and when a send is repeated, and how it ends.
 */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/support.h"

#include <verbena/sim.h>

/* Microseconds of each min_rnr_timer: enum ib_rnr_timeout of Linux include/rdma/ib_verbs.h. */
static const uint32_t timer_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

static struct ts_pair *rnr_pair(struct vt *t, uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.rnr_retry = rnr_retry;
	options.min_rnr_timer = min_rnr_timer;
	options.timeout = 20;
	return ts_pair(t, &options);
}

static struct vb_sim_counters counters(struct vt *t, struct vt_node *node)
{
	struct vb_sim_counters now;

	VT_OK(t, vb_sim_counters(node->ctx, &now));
	return now;
}

static void gives_up_after_its_retries(struct vt *t)
{
	struct ts_pair *pair;
	uint8_t retries;

	for (retries = 0; retries < 7; retries++) {
		vt_row(t, "rnr_retry %u", retries);
		pair = rnr_pair(t, retries, 1);
		ts_recv(&pair->a, .wr_id = 3, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_send(&pair->a, .wr_id = 2, .length = 100);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		ts_flushed(t, pair->a.send_cq, 2);
		ts_flushed(t, pair->a.recv_cq, 3);
		ts_state(&pair->a, IBV_QPS_ERR);
		ts_state(&pair->b, IBV_QPS_RTS);
		ts_no_event(t, &t->b);
	}
}

static void retries_exactly_rnr_retry_times(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair;
	uint8_t retries;

	for (retries = 0; retries < 7; retries++) {
		vt_row(t, "rnr_retry %u", retries);
		pair = rnr_pair(t, retries, 1);
		before = counters(t, &t->a);
		log->count = 0;
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		after = counters(t, &t->a);
		VT_EXPECT_EQ(t, ts_count(log, TS_SEND_ONLY, pair->b.qp->qp_num), retries + 1);
		VT_EXPECT_EQ(t, after.rnr_naks_received - before.rnr_naks_received, retries + 1);
	}
}

static void nak_carries_the_timer(struct vt *t)
{
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair;
	uint8_t timer;

	for (timer = 0; timer < 32; timer++) {
		vt_row(t, "min_rnr_timer %u", timer);
		pair = rnr_pair(t, 0, timer);
		log->count = 0;
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		VT_EQ(t, log->count, 2);
		VT_EXPECT_EQ(t, log->frames[1].opcode, TS_ACK);
		/* an RNR NAK has 001 in the top three bits of the syndrome */
		VT_EXPECT_EQ(t, log->frames[1].syndrome, 0x20 | timer);
	}
}

/* Returns after how long a send without a receive ends. */
static uint64_t time_of_failure_ns(struct vt *t, uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct ts_pair *pair;
	uint64_t since_ns;

	ts_prompt(t);
	pair = rnr_pair(t, rnr_retry, min_rnr_timer);
	since_ns = ts_now_ns(t);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	return ts_now_ns(t) - since_ns;
}

static void waits_as_long_as_the_timer_says(struct vt *t)
{
	uint64_t round_trip_ns = time_of_failure_ns(t, 0, 1);
	uint8_t timer;

	for (timer = 0; timer < 32; timer++) {
		vt_row(t, "min_rnr_timer %u", timer);
		VT_EXPECT_EQ(t, time_of_failure_ns(t, 2, timer),
			     2 * 1000ull * timer_us[timer] + 3 * round_trip_ns);
	}
}

static void rnr_retry_7_retries_for_ever(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 7, 1);
	struct ibv_wc wc;

	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 200000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_verify(t, pair->b.buffer, 100, 1);
}

static void late_receive_saves_the_send(struct vt *t)
{
	/* 7 times 81.92 ms: a busy machine may pause longer than asked. */
	struct ts_pair *pair = rnr_pair(t, 6, 26);

	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 120000000);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void long_message_is_repeated_whole(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 7, 12);

	ts_send(&pair->a, .wr_id = 1, .length = 30000);
	ts_pause(t, 2000000);
	ts_recv(&pair->b, .wr_id = 5, .length = 30000);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 30000);
	ts_verify(t, pair->b.buffer, 30000, 1);
}

static void write_needs_no_receive(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 0, 1);

	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_read(&pair->a, .wr_id = 2, .offset = 1000, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	ts_no_more(t, pair->b.recv_cq);
}

static void write_with_imm_needs_a_receive(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 1, 1);

	ts_write_imm(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void empty_send_needs_a_receive(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 1, 1);

	ts_send(&pair->a, .wr_id = 1);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void later_sends_wait_behind(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 7, 12);
	struct ibv_wc wc;
	unsigned int i;

	for (i = 0; i < 4; i++)
		ts_send(&pair->a, .wr_id = i, .offset = 100 * i, .length = 100);
	ts_write(&pair->a, .wr_id = 4, .length = 100, .remote_offset = 20000);
	ts_pause(t, 3000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_blank(t, pair->b.buffer + 20000, 100);
	for (i = 0; i < 4; i++)
		ts_recv(&pair->b, .wr_id = 50 + i, .offset = 100 * i, .length = 100);
	for (i = 0; i < 4; i++) {
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50 + i, 100);
	}
	ts_done(t, pair->a.send_cq, 4, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 400, 1);
	ts_verify(t, pair->b.buffer + 20000, 100, 1);
}

static void later_sends_draw_no_sequence_nak(struct vt *t)
{
	struct ts_pair *pair = rnr_pair(t, 3, 12);
	struct vb_sim_counters before = counters(t, &t->b), after;
	unsigned int i;

	for (i = 0; i < 4; i++)
		ts_send(&pair->a, .wr_id = i, .length = 100);
	ts_failed(t, pair->a.send_cq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	after = counters(t, &t->b);
	VT_EQ(t, after.rnr_naks_sent - before.rnr_naks_sent, 4);
	VT_EQ(t, after.sequence_naks_sent - before.sequence_naks_sent, 0);
}

static void progress_restores_the_retries(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int i;

	ts_prompt(t);
	pair = rnr_pair(t, 2, 12);
	for (i = 0; i < 5; i++) {
		vt_row(t, "message %u", i);
		ts_send(&pair->a, .wr_id = i, .length = 100);
		/* NAKs came at once and after 0.64 ms, so the second retry is due */
		ts_pause(t, 700000);
		ts_recv(&pair->b, .wr_id = 50 + i, .length = 100);
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 50 + i, 100);
	}
}

static void rnr_wait_is_no_ack_timeout(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct vb_sim_counters before, after;
	struct ts_pair *pair;

	options.timeout = 5; /* 131 us, below the RNR wait */
	options.retry_cnt = 1;
	options.rnr_retry = 3;
	options.min_rnr_timer = 12;
	pair = ts_pair(t, &options);
	before = counters(t, &t->a);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	after = counters(t, &t->a);
	VT_EQ(t, after.ack_timeouts - before.ack_timeouts, 0);
}

static const struct vt_test tests[] = {
	{"gives_up_after_its_retries", SRC_RXE "rxe_comp.c, RNR_RETRY", 0,
	 gives_up_after_its_retries},
	{"retries_exactly_rnr_retry_times", SRC_RXE "rxe_comp.c, RNR_RETRY", VT_NEEDS_SIM,
	 retries_exactly_rnr_retry_times},
	{"nak_carries_the_timer", SRC_RXE "rxe_hdr.h, AETH_RNR_NAK", VT_NEEDS_SIM,
	 nak_carries_the_timer},
	{"waits_as_long_as_the_timer_says", "Linux include/rdma/ib_verbs.h, enum ib_rnr_timeout",
	 VT_NEEDS_VIRTUAL_CLOCK, waits_as_long_as_the_timer_says},
	{"rnr_retry_7_retries_for_ever", SRC_RXE "rxe_comp.c, RNR_RETRY: 7", 0,
	 rnr_retry_7_retries_for_ever},
	{"late_receive_saves_the_send", SRC_RXE "rxe_comp.c, rxe_completer: RNR_RETRY", 0,
	 late_receive_saves_the_send},
	{"long_message_is_repeated_whole", SRC_QIB "qib_rc.c, do_rc_ack: RNR NAK, reset_psn", 0,
	 long_message_is_repeated_whole},
	{"write_needs_no_receive", SRC_RXE "rxe_resp.c, check_resource", 0, write_needs_no_receive},
	{"write_with_imm_needs_a_receive", SRC_RXE "rxe_resp.c, check_resource", 0,
	 write_with_imm_needs_a_receive},
	{"empty_send_needs_a_receive", SRC_RXE "rxe_resp.c, check_resource", 0,
	 empty_send_needs_a_receive},
	{"later_sends_wait_behind", SRC_QIB "qib_rc.c, qib_make_rc_req: RVT_S_WAIT_RNR", 0,
	 later_sends_wait_behind},
	{"later_sends_draw_no_sequence_nak",
	 SRC_QIB "qib_rc.c, qib_rc_rcv_error: none while r_nak_state", VT_NEEDS_SIM,
	 later_sends_draw_no_sequence_nak},
	{"progress_restores_the_retries", SRC_RXE "rxe_comp.c, reset_retry_counters",
	 VT_NEEDS_VIRTUAL_CLOCK, progress_restores_the_retries},
	{"rnr_wait_is_no_ack_timeout", SRC_QIB "qib_rc.c, do_rc_ack: RNR NAK, rvt_stop_rc_timers",
	 VT_NEEDS_VIRTUAL_CLOCK, rnr_wait_is_no_ack_timeout},
	{NULL},
};

const struct vt_suite vt_suite_rnr = {"rnr", "receiver not ready", tests};
