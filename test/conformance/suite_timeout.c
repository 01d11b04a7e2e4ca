/* SPDX-License-Identifier: MIT */
/*
 * The ack timeout: how long it is, how many retries follow, and which peers do not answer.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

static struct ts_options timeout_options(struct vt *t, uint8_t timeout, uint8_t retry_cnt)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.timeout = timeout;
	options.retry_cnt = retry_cnt;
	return options;
}

/* A pair whose B is in RESET and answers nothing. */
static struct ts_pair *deaf_peer(struct vt *t, uint8_t timeout, uint8_t retry_cnt)
{
	struct ts_options options = timeout_options(t, timeout, retry_cnt);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_connect(&pair->a);
	return pair;
}

static void expect_retry_exceeded(struct ts_pair *pair)
{
	struct vt *t = pair->a.t;

	/* First, since the retries may end soon. SoftRoCE does not flush what comes after. */
	ts_recv(&pair->a, .wr_id = 3, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
	ts_flushed(t, pair->a.recv_cq, 3);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void gives_up_after_its_retries(struct vt *t)
{
	uint8_t retries;

	for (retries = 0; retries < 7; retries++) {
		vt_row(t, "retry_cnt %u", retries);
		expect_retry_exceeded(deaf_peer(t, 8, retries));
	}
}

static void retry_cnt_7_is_seven_retries(struct vt *t)
{
	expect_retry_exceeded(deaf_peer(t, 8, 7));
}

static void retries_exactly_retry_cnt_times(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair;
	uint8_t retries;

	for (retries = 0; retries < 8; retries++) {
		vt_row(t, "retry_cnt %u", retries);
		pair = deaf_peer(t, 8, retries);
		log->count = 0;
		VT_OK(t, vb_sim_counters(t->a.ctx, &before));
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		VT_OK(t, vb_sim_counters(t->a.ctx, &after));
		VT_EXPECT_EQ(t, ts_count(log, TS_SEND_ONLY, pair->b.qp->qp_num), retries + 1);
		VT_EXPECT_EQ(t, after.ack_timeouts - before.ack_timeouts, retries + 1);
	}
}

/* One interval passes before the first retry and one after each, exact to the nanosecond. */
static void interval_is_4096_ns_shifted(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	uint8_t timeout;
	uint64_t all_ns;

	for (timeout = 1; timeout < 32; timeout++) {
		vt_row(t, "timeout %u", timeout);
		pair = deaf_peer(t, timeout, 2);
		all_ns = 3 * (4096ull << timeout);
		ts_send(&pair->a, .wr_id = 1, .length = 100);
		ts_pause(t, all_ns - 1);
		VT_EXPECT_STATE(t, ts_query_state(t, pair->a.qp), IBV_QPS_RTS);
		ts_pause(t, 1);
		VT_EXPECT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 1);
		VT_EXPECT_STATUS(t, wc.status, IBV_WC_RETRY_EXC_ERR);
	}
}

static void timeout_0_waits_for_ever(struct vt *t)
{
	struct ts_pair *pair = deaf_peer(t, 0, 2);
	struct ibv_wc wc;

	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 100000000);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_WR_FLUSH_ERR);
}

/* --- who does not answer --- */

static void peer_destroyed(struct ts_pair *pair)
{
	ts_destroy_qp(&pair->b);
}

static void peer_in_reset(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
}

static void peer_in_init(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_to_init(&pair->b);
}

static void peer_in_err(struct ts_pair *pair)
{
	VT_OK(pair->a.t, ts_to(&pair->b, IBV_QPS_ERR));
}

static void reconnect_to(struct ts_pair *pair, struct ts_end *end, uint32_t qpn)
{
	struct ibv_qp_attr attr;
	int mask;

	VT_OK(pair->a.t, ts_to(end, IBV_QPS_RESET));
	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	attr.dest_qp_num = qpn;
	VT_OK(pair->a.t, vb_modify_qp(end->qp, &attr, mask));
	ts_to_rts(end);
}

static void no_such_qp(struct ts_pair *pair)
{
	reconnect_to(pair, &pair->a, 0xfffff0);
}

static void connected_to_another(struct ts_pair *pair)
{
	struct ts_pair *other = ts_connected(pair->a.t, IBV_QPT_RC);

	reconnect_to(pair, &pair->b, other->a.qp->qp_num);
	reconnect_to(pair, &pair->a, other->b.qp->qp_num);
}

static void of_another_type(struct ts_pair *pair)
{
	struct ts_pair *other = ts_connected(pair->a.t, IBV_QPT_UC);

	reconnect_to(pair, &pair->a, other->b.qp->qp_num);
}

static const struct {
	const char *name;
	void (*spoil)(struct ts_pair *pair);
} silent_peers[] = {
	{"peer destroyed", peer_destroyed},
	{"peer in RESET", peer_in_reset},
	{"peer in INIT", peer_in_init},
	{"peer in ERR", peer_in_err},
	{"no QP of that number", no_such_qp},
	{"peer connected to another", connected_to_another},
	{"peer of another type", of_another_type},
};

static void silent_peer_ends_in_retry_exceeded(struct vt *t)
{
	struct ts_options options = timeout_options(t, 8, 2);
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(silent_peers); i++) {
		vt_row(t, "%s", silent_peers[i].name);
		pair = ts_pair(t, &options);
		silent_peers[i].spoil(pair);
		expect_retry_exceeded(pair);
	}
}

static void every_operation_times_out(struct vt *t)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	     IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < TS_COUNT(opcodes); i++) {
		vt_row(t, "opcode %d", opcodes[i]);
		pair = deaf_peer(t, 8, 1);
		TS_POST(&pair->a, opcodes[i], .wr_id = 1, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		ts_state(&pair->a, IBV_QPS_ERR);
	}
}

static void peer_in_rtr_answers(struct vt *t)
{
	struct ts_options options = timeout_options(t, 14, 7);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_to_rtr(&pair->b);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 100, 1);
}

static void late_peer_is_found_by_a_retry(struct vt *t)
{
	struct ts_pair *pair = deaf_peer(t, 14, 7);

	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 100000000); /* past the first retry at 67 ms */
	ts_connect(&pair->b);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 100, 1);
}

static void unexpected_first_psn(struct vt *t)
{
	static const struct {
		const char *name;
		int offset;
	} rows[] = {{"one ahead", -1}, {"five ahead", -5}};
	struct ts_options options = timeout_options(t, 8, 2);
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "the responder expects %s", rows[i].name);
		pair = ts_pair_reset(t, &options);
		pair->a.send_psn = (uint32_t)((int)options.a_psn - rows[i].offset);
		ts_connect_both(pair);
		ts_recv(&pair->b, .wr_id = 5, .length = 100);
		expect_retry_exceeded(pair);
		ts_no_more(t, pair->b.recv_cq);
		ts_state(&pair->b, IBV_QPS_RTS);
	}
}

/* Each of many messages loses as many packets as retry_cnt allows. */
static void progress_restores_the_retries(struct vt *t)
{
	struct ts_options options = timeout_options(t, 8, 2);
	struct ts_pair *pair = ts_pair(t, &options);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		vt_row(t, "message %u", i);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = pair->b.qp->qp_num,
						    .count = 2});
		ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	}
}

/* The wire loses the first packet of the first message `losses` times. */
static void lose_first_packet(struct ts_pair *pair, uint64_t count)
{
	ts_fault(pair->a.t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = pair->b.qp->qp_num,
						    .psn_given = true,
						    .psn = pair->a.options.a_psn,
						    .count = count});
}

static void one_loss_more_than_retry_cnt(struct vt *t)
{
	struct ts_options options = timeout_options(t, 8, 2);
	struct ts_pair *pair = ts_pair(t, &options);

	lose_first_packet(pair, 3);
	expect_retry_exceeded(pair);
}

/* The second message draws a NAK, whose retry is one more than retry_cnt allows. */
static void sequence_nak_costs_a_retry(struct vt *t)
{
	struct ts_options options = timeout_options(t, 8, 0);
	struct ts_pair *pair = ts_pair(t, &options);

	lose_first_packet(pair, 1);
	expect_retry_exceeded(pair);
}

static const struct vt_test tests[] = {
	{"gives_up_after_its_retries",
	 "ibv_query_qp(3): retry_cnt, timeout; " SRC_QIB "qib_rc.c, qib_restart_rc", 0,
	 gives_up_after_its_retries},
	{"retry_cnt_7_is_seven_retries",
	 SRC_QIB "qib_rc.c, qib_restart_rc: counts s_retry down from any value", 0,
	 retry_cnt_7_is_seven_retries},
	{"retries_exactly_retry_cnt_times", SRC_QIB "qib_rc.c, qib_restart_rc: s_retry",
	 VT_NEEDS_SIM, retries_exactly_retry_cnt_times},
	{"interval_is_4096_ns_shifted", SRC_RXE "rxe_qp.c, rxe_qp_from_attr: 4096 ns << timeout",
	 VT_NEEDS_VIRTUAL_CLOCK, interval_is_4096_ns_shifted},
	{"timeout_0_waits_for_ever", SRC_RXE "rxe_qp.c, rxe_qp_from_attr: timeout 0, no timer", 0,
	 timeout_0_waits_for_ever},
	{"silent_peer_ends_in_retry_exceeded", SRC_QIB "qib_rc.c, qib_restart_rc: RETRY_EXC_ERR", 0,
	 silent_peer_ends_in_retry_exceeded, VT_MAY_MISADDRESS},
	{"every_operation_times_out", SRC_QIB "qib_rc.c, qib_restart_rc: RETRY_EXC_ERR",
	 VT_NEEDS_ATOMICS, every_operation_times_out},
	{"peer_in_rtr_answers", SRC_STATE_OPS ": RTR", 0, peer_in_rtr_answers},
	{"late_peer_is_found_by_a_retry", SRC_QIB "qib_rc.c, qib_restart_rc: reset_psn", 0,
	 late_peer_is_found_by_a_retry},
	{"unexpected_first_psn", SRC_RXE "rxe_resp.c, check_psn: PSN_OUT_OF_SEQ", 0,
	 unexpected_first_psn, VT_MAY_MISTAKE_PSN},
	{"progress_restores_the_retries", SRC_RXE "rxe_comp.c, reset_retry_counters",
	 VT_NEEDS_FAULTS, progress_restores_the_retries},
	{"one_loss_more_than_retry_cnt", "ibv_query_qp(3): retry_cnt", VT_NEEDS_FAULTS,
	 one_loss_more_than_retry_cnt},
	{"sequence_nak_costs_a_retry", SRC_RXE "rxe_comp.c, ERROR_RETRY", VT_NEEDS_FAULTS,
	 sequence_nak_costs_a_retry},
	{NULL},
};

const struct vt_suite vt_suite_timeout = {"timeout", "ack timeouts and retries", tests};
