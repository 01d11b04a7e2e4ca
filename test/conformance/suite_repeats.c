/* SPDX-License-Identifier: MIT */
/*
 * Packets that are sent again: every field and byte is that of the first time, and what follows from
 * the packet is the same. Retries that were used up are there again after each kind of progress.
 */
#include "test/conformance/sources.h"
#include "test/support/linked_pair.h"
#include "test/support/need.h"
#include "test/support/own_world.h"
#include "test/support/quirks.h"
#include "test/support/tap.h"
#include "test/support/window.h"

#include <arpa/inet.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define MTU_BYTES  1024u
#define LONG_BYTES 2501u /* three packets, the last with a pad */
#define PACKETS	   3u
#define RETH_BYTES 16u

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	uint32_t length;
	bool takes_receive;
} operations[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND, LONG_BYTES, true},
	{"SEND with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, LONG_BYTES, true},
	{"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, LONG_BYTES, false},
	{"WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, LONG_BYTES, true},
	{"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, LONG_BYTES, false},
	{"COMPARE SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 8, false},
	{"FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 8, false},
	{"ATOMIC WRITE", IBV_WR_ATOMIC_WRITE, IBV_WC_ATOMIC_WRITE, 8, false},
};

#define OPERATIONS TS_COUNT(operations)

static const enum ts_type types[] = {TS_TYPE_RC, TS_TYPE_XRC_SEND};

static bool is_read(const struct operation *op)
{
	return op->opcode == IBV_WR_RDMA_READ;
}

static struct ibv_cq *send_cq(const struct ts_link *link)
{
	return link->ends[TS_A]->send_cq;
}

static uint32_t qpn(const struct ts_link *link, int which)
{
	return link->ends[which]->qp->qp_num;
}

/* A connection whose attributes are not the usual ones. */
static struct ts_link *odd_link(struct vt *t, enum ts_type type)
{
	struct ts_link *link = ts_link(t, type);

	link->values[TS_A].pkey_index = link->values[TS_B].pkey_index = 2;
	link->values[TS_A].ah_attr.sl = 3;
	link->values[TS_A].ah_attr.grh.traffic_class = 0x44;
	ts_link_connect(link);
	return link;
}

/* Message `n` of an operation: its flags, immediate data and addresses depend on n. */
static void post(struct ts_link *link, const struct operation *op, unsigned int n, bool solicited)
{
	if (op->takes_receive)
		TS_LINK_RECV(link, .wr_id = 50 + n, .offset = 4096 * n, .length = 4096);
	TS_LINK_POST(link, op->opcode, .wr_id = n, .length = op->length,
		     .offset = (is_read(op) ? 32768 : 0) + 4096 * n,
		     .remote_offset = 16384 + 4096 * n, .flags = solicited ? IBV_SEND_SOLICITED : 0,
		     .imm = 0x11223344 + n, .compare_add = 5 + n, .swap = 77 + n);
}

static void finish(struct ts_link *link, const struct operation *op, unsigned int n)
{
	struct ibv_wc wc;

	ts_done(link->t, send_cq(link), n, op->done);
	if (!op->takes_receive)
		return;
	VT_EQ(link->t, ts_wait(link->t, link->ends[TS_B]->recv_cq, 1, &wc), 1);
	VT_EXPECT_EQ(link->t, wc.wr_id, 50 + n);
	VT_EXPECT_STATUS(link->t, wc.status, IBV_WC_SUCCESS);
	VT_EXPECT_EQ(link->t, wc.byte_len, op->length);
	VT_EXPECT_EQ(link->t, wc.pkey_index, 2);
	if (wc.wc_flags & IBV_WC_WITH_IMM)
		VT_EXPECT_EQ(link->t, ntohl(wc.imm_data), 0x11223344 + n);
	VT_EXPECT_EQ(link->t, wc.wc_flags & IBV_WC_WITH_IMM,
		     op->opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM);
}

/* Compares a packet with the first one that has its PSN. */
static void compare(struct vt *t, const struct ts_packet *first, const struct ts_packet *again)
{
	VT_EXPECT_EQ(t, again->opcode, first->opcode);
	VT_EXPECT_EQ(t, again->solicited, first->solicited);
	VT_EXPECT_EQ(t, again->migrated, first->migrated);
	VT_EXPECT_EQ(t, again->ack_request, first->ack_request);
	VT_EXPECT_EQ(t, again->pkey, first->pkey);
	VT_EXPECT_EQ(t, again->traffic_class, first->traffic_class);
	VT_EXPECT_EQ(t, again->sl, first->sl);
	VT_EXPECT_EQ(t, again->udp_source_port, first->udp_source_port);
	VT_EXPECT_EQ_MEM(t, again->source_gid, first->source_gid, 16);
	VT_EQ(t, again->length_bytes, first->length_bytes);
	VT_EXPECT_EQ_MEM(t, again->bytes, first->bytes, first->length_bytes);
}

/* Compares each request with the first one of its PSN. Returns how many were repeated. */
static unsigned int compare_requests(struct ts_link *link, const struct ts_tap *tap)
{
	const unsigned int count = ts_tap_requests(tap, qpn(link, TS_B));
	unsigned int repeated = 0;

	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < i; j++) {
			const struct ts_packet *again = ts_tap_request(tap, qpn(link, TS_B), i);
			const struct ts_packet *first = ts_tap_request(tap, qpn(link, TS_B), j);

			if (first->psn != again->psn)
				continue;
			repeated++;
			compare(link->t, first, again);
			break;
		}
	return repeated;
}

static bool is_read_response(const struct ts_packet *packet)
{
	const uint8_t operation = packet->opcode & (uint8_t)~TS_TRANSPORT;

	return operation >= TS_READ_FIRST && operation <= TS_READ_ONLY;
}

/* The payload of a READ response ends the packet; FIRST, LAST and ONLY have an AETH before it. */
static const uint8_t *payload(const struct ts_packet *packet, uint32_t *length)
{
	const uint8_t operation = packet->opcode & (uint8_t)~TS_TRANSPORT;
	const uint32_t headers = operation == TS_READ_MIDDLE ? 12 : 16;

	*length = packet->length_bytes - headers;
	return packet->bytes + headers;
}

/* READ responses of one PSN have one payload. Returns how many were repeated. */
static unsigned int compare_responses(struct ts_link *link, const struct ts_tap *tap)
{
	const unsigned int count = ts_tap_answers(tap, qpn(link, TS_A));
	unsigned int repeated = 0;

	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; j < i; j++) {
			const struct ts_packet *again = ts_tap_answer(tap, qpn(link, TS_A), i);
			const struct ts_packet *first = ts_tap_answer(tap, qpn(link, TS_A), j);
			uint32_t length, first_length;
			const uint8_t *bytes = payload(again, &length);
			const uint8_t *first_bytes = payload(first, &first_length);

			if (first->psn != again->psn || !is_read_response(first) ||
			    !is_read_response(again))
				continue;
			repeated++;
			VT_EXPECT_EQ(link->t, again->pkey, first->pkey);
			VT_EQ(link->t, length, first_length);
			VT_EXPECT_EQ_MEM(link->t, bytes, first_bytes, length);
			break;
		}
	return repeated;
}

/* A READ that begins again in its middle asks for the rest. */
static void check_rest_of_read(struct ts_link *link, const struct ts_tap *tap, uint32_t first_psn)
{
	const unsigned int count = ts_tap_requests(tap, qpn(link, TS_B));
	const struct ts_packet *first = ts_tap_request(tap, qpn(link, TS_B), 0);
	const unsigned int eth = link->xrc ? 4 : 0;

	for (unsigned int i = 1; i < count; i++) {
		const struct ts_packet *rest = ts_tap_request(tap, qpn(link, TS_B), i);
		const uint32_t done = (rest->psn - first_psn) * MTU_BYTES;

		if (done >= LONG_BYTES)
			continue;
		VT_EXPECT_EQ(link->t, ts_tap_word(rest, eth + 4),
			     ts_tap_word(first, eth + 4) + done);
		VT_EXPECT_EQ(link->t, ts_tap_word(rest, eth + 8), ts_tap_word(first, eth + 8));
		VT_EXPECT_EQ(link->t, ts_tap_word(rest, eth + 12), LONG_BYTES - done);
		VT_EXPECT_EQ(link->t, rest->ack_request, first->ack_request);
	}
}

/*
 * Two messages, of which one is solicited. One packet is lost, of the requests or of the answers;
 * at most this many of either are sent at first.
 */
#define AT_FIRST (2 * PACKETS)

static void lose_one(struct vt *t, enum ts_type type, const struct operation *op, int towards,
		     unsigned int lost, bool first_solicited)
{
	struct ts_link *link = odd_link(t, type);
	struct ts_tap *tap = ts_tap(t);
	unsigned int id = ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
							      .dest_qpn = qpn(link, towards),
							      .skip = lost,
							      .count = 1});
	unsigned int repeated;

	vt_row(t, "%s %s, packet %u towards %c is lost, message %d is solicited",
	       ts_type_names[type], op->name, lost, "AB"[towards], first_solicited ? 0 : 1);
	ts_fill(link->ends[TS_B]->buffer + 16384, 8192, 3);
	for (unsigned int n = 0; n < 2; n++)
		post(link, op, n, (n == 0) == first_solicited);
	for (unsigned int n = 0; n < 2; n++)
		finish(link, op, n);
	repeated = compare_requests(link, tap);
	if (is_read(op)) {
		repeated += compare_responses(link, tap);
		check_rest_of_read(link, tap, link->values[TS_A].sq_psn);
	}
	/* A READ may go on where it was. An ACK may cover a lost one. */
	if (vb_fault_hits(ts_sim(t), id) && towards == TS_B && !is_read(op))
		VT_EXPECT(t, repeated > 0);
	VT_OK(t, vb_fault_remove(ts_sim(t), id));
}

static void try_losses(struct vt *t, int towards)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (size_t op = 0; op < OPERATIONS; op++)
			for (unsigned int lost = 0; lost < AT_FIRST; lost++)
				for (int solicited = 0; solicited < 2; solicited++)
					lose_one(t, types[i], &operations[op], towards, lost,
						 solicited);
	vt_row(t, NULL);
}

static void lost_request_is_repeated_as_it_was(struct vt *t)
{
	try_losses(t, TS_B);
}

static void lost_answer_repeats_the_request_as_it_was(struct vt *t)
{
	try_losses(t, TS_A);
}

/* The message finds no receive at first. */
static void refused_message_is_repeated_as_it_was(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct ts_link *link;
			struct ts_tap *tap;

			if (!operations[op].takes_receive)
				continue;
			link = odd_link(t, types[i]);
			tap = ts_tap(t);
			vt_row(t, "%s %s", ts_type_names[types[i]], operations[op].name);
			TS_LINK_POST(link, operations[op].opcode, .wr_id = 0, .length = LONG_BYTES,
				     .remote_offset = 16384, .flags = IBV_SEND_SOLICITED,
				     .imm = 0x11223344);
			VT_OK(t, vb_sim_run(ts_sim(t), 0));
			TS_LINK_RECV(link, .wr_id = 50, .length = 4096);
			finish(link, &operations[op], 0);
			VT_EXPECT(t, compare_requests(link, tap) >= 1);
		}
}

/* SEND with invalidate: the key is on the last packet. */
static void invalidation_is_repeated_as_it_was(struct vt *t)
{
	ts_world(t);
	ts_need_windows(t, IBV_MW_TYPE_2);
	for (unsigned int lost = 0; lost < PACKETS; lost++) {
		struct ts_options options = ts_defaults(t, IBV_QPT_RC);
		struct ts_link link = {.t = t};
		struct ts_tap *tap = ts_tap(t);
		struct ibv_mw *mw;
		struct ibv_wc wc;

		vt_row(t, "packet %u is lost", lost);
		options.mr_access |= IBV_ACCESS_MW_BIND;
		options.mtu = IBV_MTU_1024;
		link.pair = ts_pair(t, &options);
		link.ends[TS_A] = &link.pair->a;
		link.ends[TS_B] = &link.pair->b;
		mw = ts_mw(&link.pair->b, IBV_MW_TYPE_2);
		ts_bound(&link.pair->b, mw, .wr_id = 9);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .dest_qpn = qpn(&link, TS_B),
						    .skip = lost,
						    .count = 1});
		tap->count = 0;
		ts_recv(&link.pair->b, .wr_id = 2, .length = LONG_BYTES);
		ts_send_inv(&link.pair->a, .wr_id = 1, .length = LONG_BYTES,
			    .flags = IBV_SEND_SOLICITED, .invalidate_rkey = mw->rkey);
		ts_done(t, link.pair->a.send_cq, 1, IBV_WC_SEND);
		wc = ts_received(t, link.pair->b.recv_cq, 2, LONG_BYTES);
		VT_EXPECT(t, wc.wc_flags & IBV_WC_WITH_INV);
		VT_EXPECT_EQ(t, wc.invalidated_rkey, mw->rkey);
		VT_EXPECT(t, compare_requests(&link, tap) >= 1);
		ts_refused(link.pair, mw->rkey, 0);
		ts_drain_events(&t->b);
	}
}

/* --- what follows from a repeated packet --- */

static struct ts_pair *pair_with_channels(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.channels = true;
	options.mtu = IBV_MTU_1024;
	options.timeout = 8;
	options.min_rnr_timer = 1;
	return ts_pair(t, &options);
}

/* A CQ that waits for solicited completions gets its event for a message whose packets came again. */
static void solicited_event(struct vt *t, const struct operation *op, unsigned int lost,
			    bool late_receive, bool solicited)
{
	struct ts_pair *pair = pair_with_channels(t);

	vt_row(t, "%s, packet %u is lost, %s receive, %ssolicited", op->name, lost,
	       late_receive ? "a late" : "an early", solicited ? "" : "not ");
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .dest_qpn = pair->b.qp->qp_num,
					    .skip = lost,
					    .count = 1});
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	if (!late_receive)
		ts_recv(&pair->b, .wr_id = 2, .length = 4096);
	TS_POST(&pair->a, op->opcode, .wr_id = 1, .length = op->length,
		.flags = solicited ? IBV_SEND_SOLICITED : 0);
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	if (late_receive)
		ts_recv(&pair->b, .wr_id = 2, .length = 4096);
	ts_done(t, pair->a.send_cq, 1, op->done);
	VT_EXPECT_EQ(t, ts_cq_event(t, pair->b.recv_channel, NULL), solicited);
}

static void solicited_event_comes_after_a_repetition(struct vt *t)
{
	for (size_t op = 0; op < OPERATIONS; op++)
		for (unsigned int i = 0; i < PACKETS * 4; i++)
			if (operations[op].takes_receive)
				solicited_event(t, &operations[op], i % PACKETS, i / PACKETS & 1,
						i / PACKETS & 2);
	vt_row(t, NULL);
}

/* Loses the next answers to A. */
static void lose_answers(struct ts_link *link, uint64_t count)
{
	ts_fault(link->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						  .dest_qpn = qpn(link, TS_A),
						  .count = count});
}

/* The answer is lost and B changes the memory; the request that comes again leaves it alone. */
static void repeated_request_changes_nothing(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct ts_link *link = odd_link(t, types[i]);
			uint8_t *target = link->ends[TS_B]->buffer;
			uint8_t found[8];

			if (is_read(&operations[op]))
				continue;
			vt_row(t, "%s %s", ts_type_names[types[i]], operations[op].name);
			memset(target, TS_BLANK, 32768);
			lose_answers(link, 1);
			post(link, &operations[op], 0, false);
			VT_OK(t, vb_sim_run(ts_sim(t), 0));
			memset(target, TS_BLANK, 32768);
			finish(link, &operations[op], 0);
			ts_no_more(t, link->ends[TS_B]->recv_cq);
			ts_blank(t, target, 32768);
			memset(found, TS_BLANK, sizeof(found));
			if (operations[op].done == IBV_WC_FETCH_ADD)
				VT_EXPECT_EQ_MEM(t, link->ends[TS_A]->buffer, found, 8);
		}
}

/* B binds its window again under the same key while A's invalidation waits for its answer. */
static void repeated_invalidation_spares_a_new_binding(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_prompt(t);
	ts_need_windows(t, IBV_MW_TYPE_2);
	options.mr_access |= IBV_ACCESS_MW_BIND;
	options.timeout = 8;
	pair = ts_pair(t, &options);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
					    .opcode_given = true,
					    .opcode = TS_ACK,
					    .dest_qpn = pair->a.qp->qp_num,
					    .count = 1});
	ts_recv(&pair->b, .wr_id = 2, .offset = 8192, .length = 8);
	ts_send_inv(&pair->a, .wr_id = 1, .length = 8, .invalidate_rkey = mw->rkey);
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 8, .rkey = mw->rkey}));
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	ts_done(t, pair->b.send_cq, 8, IBV_WC_BIND_MW);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_reaches(pair, mw->rkey, 0);
}

/* --- retries come back --- */

static struct ts_link *one_retry(struct vt *t, enum ts_type type)
{
	struct ts_link *link = ts_link(t, type);

	link->values[TS_A].retry_cnt = 1;
	link->values[TS_A].rnr_retry = 1;
	ts_link_connect(link);
	return link;
}

/* Loses transmission `nth` (from 0) of the packet with a PSN. */
static void lose_nth(struct ts_link *link, int towards, uint32_t psn, uint64_t nth)
{
	ts_fault(link->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						  .dest_qpn = qpn(link, towards),
						  .psn_given = true,
						  .psn = psn,
						  .skip = nth,
						  .count = 1});
}

/*
 * Three messages at once. The first round loses message 0, the second message 1, the third message
 * 2: each round brings progress by the answer of one message, and needs one more retry.
 */
static void restored_by(struct vt *t, enum ts_type type, const struct operation *op)
{
	struct ts_link *link = one_retry(t, type);
	uint32_t psn = link->values[TS_A].sq_psn;

	vt_row(t, "%s %s", ts_type_names[type], op->name);
	for (unsigned int n = 0; n < 3; n++) {
		if (op->takes_receive)
			TS_LINK_RECV(link, .wr_id = 50, .offset = 4096 * n, .length = 8);
		TS_LINK_POST(link, op->opcode, .wr_id = n, .offset = 32768, .length = 8,
			     .remote_offset = 16384);
		lose_nth(link, TS_B, psn + n, n);
	}
	for (unsigned int n = 0; n < 3; n++)
		ts_done(t, send_cq(link), n, op->done);
	vb_fault_clear(ts_sim(t));
}

static void retry_cnt_is_restored_by_each_answer(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (size_t op = 0; op < OPERATIONS; op++)
			restored_by(t, types[i], &operations[op]);
}

/* Each response of a READ is lost once; the one before it was progress. */
static void retry_cnt_is_restored_by_each_response(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_link *link = one_retry(t, types[i]);

		vt_row(t, "%s", ts_type_names[types[i]]);
		for (unsigned int n = 0; n < PACKETS; n++)
			lose_nth(link, TS_A, link->values[TS_A].sq_psn + n, n);
		ts_fill(link->ends[TS_B]->buffer, LONG_BYTES, 4);
		TS_LINK_POST(link, IBV_WR_RDMA_READ, .wr_id = 1, .offset = 32768,
			     .length = LONG_BYTES);
		ts_done(t, send_cq(link), 1, IBV_WC_RDMA_READ);
		ts_verify(t, link->ends[TS_A]->buffer + 32768, LONG_BYTES, 4);
		vb_fault_clear(ts_sim(t));
	}
}

/* A sequence NAK acknowledges the packets before its PSN. */
static void retry_cnt_is_restored_by_a_sequence_nak(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_link *link = one_retry(t, types[i]);
		const uint32_t psn = link->values[TS_A].sq_psn;

		vt_row(t, "%s", ts_type_names[types[i]]);
		lose_nth(link, TS_B, psn, 0);
		lose_nth(link, TS_B, psn + 1, 1);
		TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = LONG_BYTES);
		ts_done(t, send_cq(link), 1, IBV_WC_RDMA_WRITE);
		vb_fault_clear(ts_sim(t));
	}
}

/*
 * A SEND uses the only RNR retry up. Its acknowledgement is in the answer of the operation behind
 * it, or in the RNR NAK of the next SEND, which needs a retry of its own.
 */
static void rnr_retry_is_restored_by_each_answer(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (size_t op = 0; op < OPERATIONS; op++) {
			struct ts_link *link = one_retry(t, types[i]);

			vt_row(t, "%s %s", ts_type_names[types[i]], operations[op].name);
			TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
			VT_OK(t, vb_sim_run(ts_sim(t), 0));
			TS_LINK_RECV(link, .wr_id = 51, .length = 8);
			if (operations[op].takes_receive)
				TS_LINK_RECV(link, .wr_id = 52, .length = 8);
			TS_LINK_POST(link, operations[op].opcode, .wr_id = 2, .offset = 32768,
				     .length = 8);
			TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 3, .length = 8);
			ts_done(t, send_cq(link), 1, IBV_WC_SEND);
			TS_LINK_RECV(link, .wr_id = 53, .length = 8);
			ts_done(t, send_cq(link), 2, operations[op].done);
			ts_done(t, send_cq(link), 3, IBV_WC_SEND);
		}
}

/* A loss costs no RNR retry, and an RNR NAK no other retry. */
static void two_counts_are_apart(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++)
		for (int first = 0; first < 2; first++) {
			struct ts_link *link = one_retry(t, types[i]);

			vt_row(t, "%s, the loss comes %s", ts_type_names[types[i]],
			       first ? "first" : "second");
			lose_nth(link, TS_B, link->values[TS_A].sq_psn, first ? 0 : 1);
			TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
			/* The ack timeout is 1.05 ms, the RNR timer 10 us. */
			VT_OK(t, vb_sim_run(ts_sim(t), first ? 1050000 : 0));
			TS_LINK_RECV(link, .wr_id = 2, .length = 8);
			ts_done(t, send_cq(link), 1, IBV_WC_SEND);
			vb_fault_clear(ts_sim(t));
		}
}

#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)
#define SAME	SRC_RXE "rxe_req.c, rxe_requester: req_retry makes the packets again from the WQE"
#define RESET	SRC_RXE "rxe_comp.c, reset_retry_counters"

static const struct vt_test tests[] = {
	{"lost_request_is_repeated_as_it_was", SAME, VIRTUAL, lost_request_is_repeated_as_it_was},
	{"lost_answer_repeats_the_request_as_it_was", SAME, VIRTUAL,
	 lost_answer_repeats_the_request_as_it_was},
	{"refused_message_is_repeated_as_it_was", SAME, VIRTUAL,
	 refused_message_is_repeated_as_it_was},
	{"invalidation_is_repeated_as_it_was", SAME, VIRTUAL, invalidation_is_repeated_as_it_was},
	{"solicited_event_comes_after_a_repetition", "ibv_req_notify_cq(3): solicited_only",
	 VIRTUAL, solicited_event_comes_after_a_repetition},
	{"repeated_request_changes_nothing", SRC_RXE "rxe_resp.c, duplicate_request", VIRTUAL,
	 repeated_request_changes_nothing},
	{"repeated_invalidation_spares_a_new_binding", SRC_RXE "rxe_resp.c, duplicate_request",
	 VIRTUAL, repeated_invalidation_spares_a_new_binding},
	{"retry_cnt_is_restored_by_each_answer", RESET, VIRTUAL,
	 retry_cnt_is_restored_by_each_answer},
	{"retry_cnt_is_restored_by_each_response", RESET, VIRTUAL,
	 retry_cnt_is_restored_by_each_response},
	{"retry_cnt_is_restored_by_a_sequence_nak", RESET, VIRTUAL,
	 retry_cnt_is_restored_by_a_sequence_nak},
	{"rnr_retry_is_restored_by_each_answer", RESET, VIRTUAL,
	 rnr_retry_is_restored_by_each_answer},
	{"two_counts_are_apart",
	 SRC_RXE "rxe_comp.c: retry_cnt and rnr_retry of struct rxe_comp_info", VIRTUAL,
	 two_counts_are_apart},
	{NULL},
};

const struct vt_suite vt_suite_repeats = {"repeats", "packets that are sent again", tests,
					  .simulator = true};
