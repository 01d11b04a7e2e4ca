/* SPDX-License-Identifier: MIT */
/*
 * A wire that loses, corrupts, repeats and reorders packets: each message arrives exactly once.
 */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/support.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define RESP SRC_RXE "rxe_resp.c, "

#define WIRE (VT_NEEDS_FAULTS | VT_NEEDS_SIM)
#define SEEN WIRE

/* The path MTU is 256: a message of 1000 bytes is FIRST, two MIDDLEs and LAST. */
static struct ts_pair *narrow(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	ts_prompt(t);
	options.mtu = IBV_MTU_256;
	options.timeout = 8;
	return ts_pair(t, &options);
}

static unsigned int once(struct vt *t, enum vb_fault_action action, uint8_t opcode, uint32_t qpn)
{
	return ts_fault(t, &(struct vb_fault_rule){.action = action,
						   .opcode_given = true,
						   .opcode = opcode,
						   .dest_qpn = qpn,
						   .count = 1});
}

/* A packet of a transfer, to which a fault happens. */
static const struct {
	const char *name;
	uint8_t bth;
	bool from_b;
	enum ibv_wr_opcode opcode;
	uint32_t length;
} packets[] = {
	{"SEND first", TS_SEND_FIRST, false, IBV_WR_SEND, 1000},
	{"SEND middle", TS_SEND_MIDDLE, false, IBV_WR_SEND, 1000},
	{"SEND last", TS_SEND_LAST, false, IBV_WR_SEND, 1000},
	{"SEND only", TS_SEND_ONLY, false, IBV_WR_SEND, 100},
	{"WRITE first", TS_WRITE_FIRST, false, IBV_WR_RDMA_WRITE, 1000},
	{"WRITE middle", TS_WRITE_MIDDLE, false, IBV_WR_RDMA_WRITE, 1000},
	{"WRITE last", TS_WRITE_LAST, false, IBV_WR_RDMA_WRITE, 1000},
	{"WRITE only", TS_WRITE_ONLY, false, IBV_WR_RDMA_WRITE, 100},
	{"READ request", TS_READ_REQUEST, false, IBV_WR_RDMA_READ, 1000},
	{"READ response first", TS_READ_FIRST, true, IBV_WR_RDMA_READ, 1000},
	{"READ response middle", TS_READ_MIDDLE, true, IBV_WR_RDMA_READ, 1000},
	{"READ response last", TS_READ_LAST, true, IBV_WR_RDMA_READ, 1000},
	{"READ response only", TS_READ_ONLY, true, IBV_WR_RDMA_READ, 100},
	{"ACK of a SEND", TS_ACK, true, IBV_WR_SEND, 1000},
	{"ACK of a WRITE", TS_ACK, true, IBV_WR_RDMA_WRITE, 1000},
};

/* Applies a fault to one packet of a transfer, and does another transfer behind it. */
static void each_packet_once(struct vt *t, enum vb_fault_action action)
{
	struct ts_pair *pair;
	unsigned int id;
	uint32_t qpn;
	size_t i;

	for (i = 0; i < TS_COUNT(packets); i++) {
		vt_row(t, "%s", packets[i].name);
		pair = narrow(t);
		qpn = packets[i].from_b ? pair->a.qp->qp_num : pair->b.qp->qp_num;
		id = once(t, action, packets[i].bth, qpn);
		ts_transfer(pair, packets[i].opcode, packets[i].length);
		VT_EXPECT_EQ(t, vb_fault_hits(ts_sim(t), id), 1);
		ts_transfer(pair, IBV_WR_SEND, 700);
		ts_no_more(t, pair->a.send_cq);
		ts_no_more(t, pair->b.recv_cq);
	}
}

static void lost_packet_is_sent_again(struct vt *t)
{
	each_packet_once(t, VB_FAULT_DROP);
}

static void corrupt_packet_counts_as_lost(struct vt *t)
{
	each_packet_once(t, VB_FAULT_CORRUPT);
}

static void packet_delivered_twice_counts_once(struct vt *t)
{
	each_packet_once(t, VB_FAULT_DUPLICATE);
}

static void corrupt_packet_is_counted_as_dropped(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_CORRUPT, TS_WRITE_ONLY, pair->b.qp->qp_num);
	VT_OK(t, vb_sim_counters(t->b.ctx, &before));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_OK(t, vb_sim_counters(t->b.ctx, &after));
	VT_EQ(t, after.dropped_packets - before.dropped_packets, 1);
}

static void lost_packet_is_counted(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_DROP, TS_WRITE_ONLY, pair->b.qp->qp_num);
	VT_OK(t, vb_sim_counters(t->a.ctx, &before));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_OK(t, vb_sim_counters(t->a.ctx, &after));
	VT_EQ(t, after.lost_packets - before.lost_packets, 1);
	VT_EQ(t, after.ack_timeouts - before.ack_timeouts, 1);
	VT_EQ(t, after.retransmitted_packets - before.retransmitted_packets, 1);
}

/* --- what must not happen twice --- */

static void add(struct ts_pair *pair, uint64_t before)
{
	struct vt *t = pair->a.t;
	uint64_t value;

	ts_fetch_add(&pair->a, .wr_id = 1, .compare_add = 5);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	memcpy(&value, pair->a.buffer, sizeof(value));
	VT_EQ(t, value, before);
	memcpy(&value, pair->b.buffer, sizeof(value));
	VT_EQ(t, value, before + 5);
}

static void lost_atomic_answer_is_given_again(struct vt *t)
{
	struct ts_pair *pair = narrow(t);
	uint64_t value = 100;

	memcpy(pair->b.buffer, &value, sizeof(value));
	once(t, VB_FAULT_DROP, TS_ATOMIC_ACK, pair->a.qp->qp_num);
	add(pair, 100);
	once(t, VB_FAULT_DROP, TS_FETCH_ADD, pair->b.qp->qp_num);
	add(pair, 105);
	once(t, VB_FAULT_DUPLICATE, TS_FETCH_ADD, pair->b.qp->qp_num);
	add(pair, 110);
	add(pair, 115);
}

static void lost_swap_answer_is_given_again(struct vt *t)
{
	struct ts_pair *pair = narrow(t);
	uint64_t value = 100;

	memcpy(pair->b.buffer, &value, sizeof(value));
	once(t, VB_FAULT_DROP, TS_ATOMIC_ACK, pair->a.qp->qp_num);
	ts_swap(&pair->a, .wr_id = 1, .compare_add = 100, .swap = 200);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_COMP_SWAP);
	memcpy(&value, pair->a.buffer, sizeof(value));
	VT_EQ(t, value, 100);
	memcpy(&value, pair->b.buffer, sizeof(value));
	VT_EQ(t, value, 200);
}

/*
 * The ACK of a write is lost. The repeated write must not overwrite what B's program writes then.
 */
static void repeated_write_is_not_executed_again(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_DROP, TS_ACK, pair->a.qp->qp_num);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 100000); /* before the timeout of 1 ms */
	ts_verify(t, pair->b.buffer, 100, 1);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_blank(t, pair->b.buffer, 100);
}

static void repeated_send_takes_no_second_receive(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_DROP, TS_ACK, pair->a.qp->qp_num);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_recv(&pair->b, .wr_id = 6, .length = 100);
	VT_OK(t, vb_sim_counters(t->b.ctx, &before));
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_OK(t, vb_sim_counters(t->b.ctx, &after));
	VT_EQ(t, after.duplicate_requests - before.duplicate_requests, 1);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_no_more(t, pair->b.recv_cq);
}

/* --- how it is repaired --- */

static void gap_draws_one_sequence_nak(struct vt *t)
{
	struct vb_sim_counters before, after;
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_DROP, TS_WRITE_FIRST, pair->b.qp->qp_num);
	VT_OK(t, vb_sim_counters(t->b.ctx, &before));
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 5000);
	VT_OK(t, vb_sim_counters(t->b.ctx, &after));
	VT_EQ(t, after.sequence_naks_sent - before.sequence_naks_sent, 1);
	VT_CHECK(t, after.out_of_sequence_requests > before.out_of_sequence_requests);
}

static void gap_is_repaired_without_a_timeout(struct vt *t)
{
	struct ts_pair *pair = narrow(t);
	uint64_t since_ns = ts_now_ns(t);

	once(t, VB_FAULT_DROP, TS_SEND_MIDDLE, pair->b.qp->qp_num);
	ts_transfer(pair, IBV_WR_SEND, 5000);
	VT_CHECK(t, ts_now_ns(t) - since_ns < 4096ull << 8);
}

static void lost_nak_is_repaired_by_the_timeout(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	once(t, VB_FAULT_DROP, TS_WRITE_FIRST, pair->b.qp->qp_num);
	once(t, VB_FAULT_DROP, TS_ACK, pair->a.qp->qp_num);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 5000);
}

/* The repeated READ request asks only for the missing rest. */
static void read_resumes_in_its_middle(struct vt *t)
{
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair = narrow(t);
	uint32_t psn = pair->a.options.a_psn;
	uint32_t asked[2] = {0};
	unsigned int i, n = 0;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = pair->a.qp->qp_num,
					    .psn_given = true,
					    .psn = psn + 5,
					    .count = 1});
	ts_transfer(pair, IBV_WR_RDMA_READ, 2560); /* ten packets */
	for (i = 0; i < log->count; i++)
		if (log->frames[i].opcode == TS_READ_REQUEST && n < 2)
			asked[n++] = log->frames[i].psn;
	VT_EQ(t, n, 2);
	VT_EQ(t, asked[0], psn);
	VT_EQ(t, asked[1], psn + 5);
	VT_EQ(t, ts_count(log, TS_READ_REQUEST, 0), 2);
}

/* Responses under way show the same loss again: only one request may be sent for it. */
static void loss_on_a_long_wire_costs_one_retry(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair;
	uint32_t i;

	options.mtu = IBV_MTU_256;
	options.retry_cnt = 1;
	pair = ts_pair(t, &options);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = pair->a.qp->qp_num,
					    .psn_given = true,
					    .psn = options.a_psn + 5,
					    .count = 1});
	for (i = 0; i < 20; i++)
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
						    .dest_qpn = pair->a.qp->qp_num,
						    .psn_given = true,
						    .psn = options.a_psn + i,
						    .delay_ns = 100000 + 1000 * i});
	ts_transfer(pair, IBV_WR_RDMA_READ, 5120);
	VT_EQ(t, ts_count(log, TS_READ_REQUEST, pair->b.qp->qp_num), 2);
}

static void requester_goes_back_to_the_oldest(struct vt *t)
{
	struct ts_log *log = ts_watch(t);
	struct ts_pair *pair = narrow(t);
	unsigned int i, first = 0;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = pair->b.qp->qp_num,
					    .psn_given = true,
					    .psn = pair->a.options.a_psn + 1,
					    .count = 1});
	for (i = 0; i < 4; i++)
		ts_write(&pair->a, .wr_id = i, .length = 100);
	for (i = 0; i < 4; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	/* the first was received, and is sent once */
	for (i = 0; i < log->count; i++)
		first += log->frames[i].dest_qpn == pair->b.qp->qp_num &&
			 log->frames[i].psn == pair->a.options.a_psn;
	VT_EQ(t, first, 1);
}

static void overtaken_packet(struct vt *t)
{
	static const uint64_t delays_ns[] = {1000, 100000, 5000000};
	struct ts_pair *pair;
	size_t i, packet;

	for (packet = 0; packet < TS_COUNT(packets); packet++)
		for (i = 0; i < 3; i++) {
			vt_row(t, "%s late by %llu ns", packets[packet].name,
			       (unsigned long long)delays_ns[i]);
			pair = narrow(t);
			ts_fault(t, &(struct vb_fault_rule){
					    .action = VB_FAULT_DELAY,
					    .opcode_given = true,
					    .opcode = packets[packet].bth,
					    .dest_qpn = packets[packet].from_b ? pair->a.qp->qp_num
									       : pair->b.qp->qp_num,
					    .count = 1,
					    .delay_ns = delays_ns[i]});
			ts_transfer(pair, packets[packet].opcode, packets[packet].length);
			ts_transfer(pair, IBV_WR_SEND, 700);
			ts_no_more(t, pair->a.send_cq);
			ts_no_more(t, pair->b.recv_cq);
		}
}

/* A late answer to the last retry of a request must not end a later request. */
static void late_ack_does_no_harm(struct vt *t)
{
	struct ts_pair *pair = narrow(t);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DELAY,
					    .opcode_given = true,
					    .opcode = TS_ACK,
					    .dest_qpn = pair->a.qp->qp_num,
					    .count = 1,
					    .delay_ns = 3000000});
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_write(&pair->a, .wr_id = 9, .length = 100);
	ts_failed(t, pair->a.send_cq, 9, IBV_WC_RETRY_EXC_ERR);
}

/* --- at random --- */

#define MESSAGES 12

static void post_message(struct ts_pair *pair, unsigned int i, uint32_t length)
{
	size_t at = 4096 * (size_t)i;

	if (i % 3 == 0) {
		ts_recv(&pair->b, .wr_id = 100 + i, .offset = at, .length = 4096);
		ts_send(&pair->a, .wr_id = i, .offset = at, .length = length);
	} else if (i % 3 == 1) {
		ts_write(&pair->a, .wr_id = i, .offset = at, .remote_offset = at, .length = length);
	} else {
		ts_fill(pair->b.buffer + at, length, i);
		memset(pair->a.buffer + at, 0, length);
		ts_read(&pair->a, .wr_id = i, .offset = at, .remote_offset = at, .length = length);
	}
}

static void check_message(struct ts_pair *pair, unsigned int i, uint32_t length)
{
	static const enum ibv_wc_opcode done[] = {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
	struct vt *t = pair->a.t;
	size_t at = 4096 * (size_t)i;

	ts_done(t, pair->a.send_cq, i, done[i % 3]);
	if (i % 3 == 0)
		ts_received(t, pair->b.recv_cq, 100 + i, length);
	if (i % 3 == 2)
		ts_verify(t, pair->a.buffer + at, length, i);
	VT_EQ_MEM(t, pair->b.buffer + at, pair->a.buffer + at, length);
}

static void random_faults(struct vt *t, enum vb_fault_action action, double probability)
{
	uint32_t lengths[MESSAGES];
	struct ts_pair *pair;
	unsigned int round, i;

	ts_fault(t, &(struct vb_fault_rule){
			    .action = action, .probability = probability, .delay_ns = 20000});
	for (round = 0; round < 20; round++) {
		vt_row(t, "round %u", round);
		pair = narrow(t);
		for (i = 0; i < MESSAGES; i++) {
			lengths[i] = (uint32_t)vt_random_below(t, 4096);
			post_message(pair, i, lengths[i]);
		}
		for (i = 0; i < MESSAGES; i++)
			check_message(pair, i, lengths[i]);
		ts_no_more(t, pair->a.send_cq);
		ts_no_more(t, pair->b.recv_cq);
	}
}

static void one_in_ten_lost(struct vt *t)
{
	random_faults(t, VB_FAULT_DROP, 0.1);
}

static void one_in_ten_corrupt(struct vt *t)
{
	random_faults(t, VB_FAULT_CORRUPT, 0.1);
}

static void one_in_three_twice(struct vt *t)
{
	random_faults(t, VB_FAULT_DUPLICATE, 0.3);
}

static void one_in_ten_late(struct vt *t)
{
	random_faults(t, VB_FAULT_DELAY, 0.1);
}

static void atomics_under_loss_add_up(struct vt *t)
{
	struct ts_pair *pair;
	unsigned int round, i;
	uint64_t value;

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.1});
	for (round = 0; round < 20; round++) {
		vt_row(t, "round %u", round);
		pair = narrow(t);
		memset(pair->b.buffer, 0, 8);
		for (i = 0; i < MESSAGES; i++)
			ts_fetch_add(&pair->a, .wr_id = i, .offset = 8 * i, .compare_add = 1);
		for (i = 0; i < MESSAGES; i++) {
			ts_done(t, pair->a.send_cq, i, IBV_WC_FETCH_ADD);
			memcpy(&value, pair->a.buffer + 8 * i, sizeof(value));
			VT_EQ(t, value, i);
		}
		memcpy(&value, pair->b.buffer, sizeof(value));
		VT_EQ(t, value, MESSAGES);
	}
}

/* The wire is dead for a while: once it works again, everything must arrive. */
static void wire_that_comes_back(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;

	options.timeout = 10;
	pair = ts_pair(t, &options);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP});
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	ts_pause(t, 10000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	vb_fault_clear(ts_sim(t));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_transfer(pair, IBV_WR_SEND, 5000);
}

static const struct vt_test tests[] = {
	{"lost_packet_is_sent_again", SRC_RXE "rxe_comp.c, rxe_completer: ERROR_RETRY", WIRE,
	 lost_packet_is_sent_again},
	{"corrupt_packet_counts_as_lost", SRC_RXE "rxe_icrc.c, rxe_icrc_check", WIRE,
	 corrupt_packet_counts_as_lost, VT_MAY_CORRUPT},
	{"packet_delivered_twice_counts_once", RESP "duplicate_request", WIRE,
	 packet_delivered_twice_counts_once},
	{"corrupt_packet_is_counted_as_dropped", "unsourced", WIRE,
	 corrupt_packet_is_counted_as_dropped, VT_MAY_CORRUPT},
	{"lost_packet_is_counted", "unsourced", WIRE, lost_packet_is_counted},
	{"lost_atomic_answer_is_given_again", RESP "duplicate_request: saved results",
	 WIRE | VT_NEEDS_ATOMICS, lost_atomic_answer_is_given_again},
	{"lost_swap_answer_is_given_again", RESP "duplicate_request: saved results",
	 WIRE | VT_NEEDS_ATOMICS, lost_swap_answer_is_given_again},
	{"repeated_write_is_not_executed_again", RESP "duplicate_request",
	 WIRE | VT_NEEDS_VIRTUAL_CLOCK, repeated_write_is_not_executed_again},
	{"repeated_send_takes_no_second_receive", RESP "duplicate_request", WIRE,
	 repeated_send_takes_no_second_receive},
	{"gap_draws_one_sequence_nak", RESP "check_psn: sent_psn_nak", WIRE,
	 gap_draws_one_sequence_nak},
	{"gap_is_repaired_without_a_timeout",
	 SRC_RXE "rxe_comp.c, check_ack: AETH_NAK_PSN_SEQ_ERROR", WIRE | VT_NEEDS_VIRTUAL_CLOCK,
	 gap_is_repaired_without_a_timeout},
	{"lost_nak_is_repaired_by_the_timeout", SRC_RXE "rxe_comp.c, retransmit_timer", WIRE,
	 lost_nak_is_repaired_by_the_timeout},
	{"read_resumes_in_its_middle", SRC_RXE "rxe_req.c, req_retry: WR_READ_MASK", SEEN,
	 read_resumes_in_its_middle},
	{"loss_on_a_long_wire_costs_one_retry", SRC_RXE "rxe_comp.c, ERROR_RETRY: started_retry",
	 SEEN | VT_NEEDS_VIRTUAL_CLOCK, loss_on_a_long_wire_costs_one_retry},
	{"requester_goes_back_to_the_oldest", SRC_RXE "rxe_req.c, req_retry: comp.psn", SEEN,
	 requester_goes_back_to_the_oldest},
	{"overtaken_packet", SRC_RXE "rxe_resp.c, check_psn", WIRE | VT_NEEDS_VIRTUAL_CLOCK,
	 overtaken_packet},
	{"late_ack_does_no_harm",
	 SRC_QIB "qib_rc.c, qib_rc_rcv_resp: \"Ignore duplicate responses\"",
	 WIRE | VT_NEEDS_VIRTUAL_CLOCK, late_ack_does_no_harm},
	{"one_in_ten_lost", "unsourced", WIRE, one_in_ten_lost},
	{"one_in_ten_corrupt", "unsourced", WIRE, one_in_ten_corrupt, VT_MAY_CORRUPT},
	{"one_in_three_twice", "unsourced", WIRE, one_in_three_twice},
	{"one_in_ten_late", "unsourced", WIRE | VT_NEEDS_VIRTUAL_CLOCK, one_in_ten_late},
	{"atomics_under_loss_add_up", "unsourced", WIRE | VT_NEEDS_ATOMICS,
	 atomics_under_loss_add_up},
	{"wire_that_comes_back", "unsourced", WIRE | VT_NEEDS_VIRTUAL_CLOCK, wire_that_comes_back},
	{NULL},
};

const struct vt_suite vt_suite_faults = {
	"faults", "a wire that loses, corrupts and reorders packets", tests, .simulator = true};
