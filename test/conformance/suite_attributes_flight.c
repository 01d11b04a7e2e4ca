/* SPDX-License-Identifier: MIT */
/*
 * Attributes that change while packets are under way, or between the packets of one message: the
 * change holds for the next packet that it concerns, and disturbs nothing else.
 *
 * That a change holds from the next packet on is unsourced, but for the rights: SoftRoCE asks the
 * QP's access flags for each packet.
 */
#include "test/conformance/sources.h"
#include "test/support/linked_pair.h"
#include "test/support/own_world.h"
#include "test/support/tap.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define LONG_BYTES  3000u /* three packets */
#define FIRST_BYTES 1024u

static const enum ts_type reliable_types[] = {TS_TYPE_RC, TS_TYPE_XRC_SEND};
static const enum ts_type all_types[] = {TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_UD, TS_TYPE_XRC_SEND};

static struct ibv_cq *send_cq(const struct ts_link *link)
{
	return link->ends[TS_A]->send_cq;
}

static uint32_t qpn(const struct ts_link *link, int which)
{
	return link->ends[which]->qp->qp_num;
}

static struct ts_link *warm_link(struct vt *t, enum ts_type type)
{
	struct ts_link *link = ts_link(t, type);

	vt_row(t, "%s", ts_type_names[type]);
	ts_link_connect(link);
	ts_link_warm(link);
	return link;
}

/* Delays, or loses, packets to an end behind the first `skip`. */
static unsigned int disturb(struct ts_link *link, int which, enum vb_fault_action action,
			    uint64_t skip, uint64_t count)
{
	return ts_fault(link->t, &(struct vb_fault_rule){.action = action,
							 .dest_qpn = qpn(link, which),
							 .skip = skip,
							 .count = count,
							 .delay_ns = 50000});
}

static void run_now(struct vt *t)
{
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
}

static const struct ts_packet *request(const struct ts_link *link, const struct ts_tap *tap,
				       unsigned int index)
{
	const struct ts_packet *packet = ts_tap_request(tap, qpn(link, TS_B), index);

	if (!packet)
		VT_FAIL(link->t, "request %u to B was not sent", index);
	return packet;
}

/* Modifies an end in its state; the other attributes stay. */
static void modify(struct ts_link *link, int which, enum ibv_qp_state state, int mask)
{
	ts_link_modify(link, which, state, state, &link->values[which], mask);
}

/* --- rights --- */

static void set_rights(struct ts_link *link, unsigned int rights)
{
	link->values[TS_B].qp_access_flags = rights;
	modify(link, TS_B, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS);
}

/* A WRITE whose second and third packet are under way. */
static void begin_write(struct ts_link *link)
{
	uint8_t *to = link->ends[TS_B]->buffer;

	memset(to, TS_BLANK, LONG_BYTES);
	disturb(link, TS_B, VB_FAULT_DELAY, 1, 2);
	TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 1, .length = LONG_BYTES);
	run_now(link->t);
	ts_verify(link->t, to, FIRST_BYTES, 1);
	ts_blank(link->t, to + FIRST_BYTES, LONG_BYTES - FIRST_BYTES);
}

static void rights_are_taken_away_under_a_write(struct vt *t)
{
	static const enum ts_type types[] = {TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_XRC_SEND};

	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_link *link = warm_link(t, types[i]);

		begin_write(link);
		set_rights(link, IBV_ACCESS_REMOTE_READ);
		if (link->reliable)
			ts_failed(t, send_cq(link), 1, IBV_WC_REM_INV_REQ_ERR);
		else
			ts_done(t, send_cq(link), 1, IBV_WC_RDMA_WRITE);
		ts_settle(t);
		ts_blank(t, link->ends[TS_B]->buffer + FIRST_BYTES, LONG_BYTES - FIRST_BYTES);
		ts_drain_events(&t->b);
	}
}

/* Rights that the message does not need may go; the message is whole. */
static void other_rights_change_under_a_write(struct vt *t)
{
	static const enum ts_type types[] = {TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_XRC_SEND};

	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_link *link = warm_link(t, types[i]);

		begin_write(link);
		set_rights(link, IBV_ACCESS_REMOTE_WRITE);
		ts_done(t, send_cq(link), 1, IBV_WC_RDMA_WRITE);
		ts_settle(t);
		ts_verify(t, link->ends[TS_B]->buffer, LONG_BYTES, 1);
	}
}

static const struct {
	unsigned int right;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
} operations[] = {
	{IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
	{IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
	{IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
};

#define EVERY_RIGHT (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The request is on its way when B gives, or takes away, the right that it needs. */
static void rights_change_under_a_request(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++)
		for (size_t op = 0; op < TS_COUNT(operations); op++)
			for (int given = 0; given < 2; given++) {
				const unsigned int right = operations[op].right;
				struct ts_link *link = warm_link(t, reliable_types[i]);

				vt_row(t, "%s, operation %zu, the right is %s",
				       ts_type_names[reliable_types[i]], op,
				       given ? "given" : "taken");
				set_rights(link, given ? EVERY_RIGHT & ~right : EVERY_RIGHT);
				disturb(link, TS_B, VB_FAULT_DELAY, 0, 1);
				TS_LINK_POST(link, operations[op].opcode, .wr_id = 1,
					     .offset = 50000, .length = 8);
				run_now(t);
				set_rights(link, given ? EVERY_RIGHT : EVERY_RIGHT & ~right);
				if (given)
					ts_done(t, send_cq(link), 1, operations[op].done);
				else
					ts_failed(t, send_cq(link), 1, IBV_WC_REM_INV_REQ_ERR);
				ts_drain_events(&t->b);
			}
}

/* --- what a QP in RTR got used to --- */

/* B works in RTR, and gets other values on the way to RTS. */
static void values_change_behind_traffic_in_rtr(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_link *link = ts_link(t, reliable_types[i]);
		const enum ts_type type = link->types[TS_B];
		struct ts_tap *tap = ts_tap(t);

		vt_row(t, "%s", ts_type_names[type]);
		ts_link_reset(link);
		ts_link_walk(link, TS_A);
		for (int at = IBV_QPS_RESET; at < IBV_QPS_RTR; at++)
			ts_link_modify(link, TS_B, (enum ibv_qp_state)at,
				       (enum ibv_qp_state)(at + 1), &link->values[TS_B],
				       ts_required(type, (enum ibv_qp_state)at,
						   (enum ibv_qp_state)(at + 1)));
		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
		run_now(t);
		TS_LINK_RECV(link, .wr_id = 2, .length = 8);
		ts_done(t, send_cq(link), 1, IBV_WC_SEND);
		ts_received(t, link->ends[TS_B]->recv_cq, 2, 8);
		TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 3, .length = 8);
		ts_done(t, send_cq(link), 3, IBV_WC_RDMA_WRITE);
		link->values[TS_B].qp_access_flags = IBV_ACCESS_REMOTE_READ;
		link->values[TS_B].min_rnr_timer = 9;
		ts_link_modify(link, TS_B, IBV_QPS_RTR, IBV_QPS_RTS, &link->values[TS_B],
			       ts_required(type, IBV_QPS_RTR, IBV_QPS_RTS) | IBV_QP_ACCESS_FLAGS |
				       IBV_QP_MIN_RNR_TIMER);
		tap->count = 0;
		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 4, .length = 8);
		run_now(t);
		VT_EXPECT_EQ(t, ts_tap_word(ts_tap_answer(tap, qpn(link, TS_A), 0), 0) >> 24,
			     0x20 | 9);
		TS_LINK_RECV(link, .wr_id = 5, .length = 8);
		ts_done(t, send_cq(link), 4, IBV_WC_SEND);
		TS_LINK_POST(link, IBV_WR_RDMA_WRITE, .wr_id = 6, .length = 8);
		ts_failed(t, send_cq(link), 6, IBV_WC_REM_INV_REQ_ERR);
	}
}

/* --- RNR timers --- */

/* B gets another min_rnr_timer between two RNR NAKs of one message. */
static void rnr_timer_changes_between_two_naks(struct vt *t)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RTS, IBV_QPS_SQD};

	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++)
		for (size_t j = 0; j < TS_COUNT(states); j++) {
			struct ts_link *link = warm_link(t, reliable_types[i]);
			struct ts_tap *tap = ts_tap(t);

			vt_row(t, "%s in %s", ts_type_names[link->types[TS_B]],
			       vt_qp_state_name(states[j]));
			TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
			run_now(t);
			if (states[j] == IBV_QPS_SQD)
				VT_OK(t, ts_to(link->ends[TS_B], IBV_QPS_SQD));
			link->values[TS_B].min_rnr_timer = 12;
			modify(link, TS_B, states[j], IBV_QP_MIN_RNR_TIMER);
			ts_failed(t, send_cq(link), 1, IBV_WC_RNR_RETRY_EXC_ERR);
			VT_EXPECT_EQ(t,
				     request(link, tap, 1)->now_ns - request(link, tap, 0)->now_ns,
				     10000);
			VT_EXPECT_EQ(t,
				     request(link, tap, 2)->now_ns - request(link, tap, 1)->now_ns,
				     640000);
		}
}

/* --- A repeats --- */

/* A has sent a message into a wire that loses everything, and is draining. */
static struct ts_link *repeating(struct vt *t, enum ts_type type)
{
	struct ts_link *link = warm_link(t, type);

	disturb(link, TS_B, VB_FAULT_DROP, 0, 0);
	TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
	run_now(t);
	VT_OK(t, ts_to(link->ends[TS_A], IBV_QPS_SQD));
	return link;
}

static void timeout_changes_while_repeating(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_tap *tap = ts_tap(t);
		struct ts_link *link = repeating(t, reliable_types[i]);
		unsigned int first = ts_tap_requests(tap, qpn(link, TS_B)) - 1;

		link->values[TS_A].timeout = 11;
		modify(link, TS_A, IBV_QPS_SQD, IBV_QP_TIMEOUT);
		ts_failed(t, send_cq(link), 1, IBV_WC_RETRY_EXC_ERR);
		VT_EXPECT_EQ(t,
			     request(link, tap, first + 2)->now_ns -
				     request(link, tap, first + 1)->now_ns,
			     UINT64_C(4096) << 11);
		vb_fault_clear(ts_sim(t));
	}
}

static void retry_cnt_changes_while_repeating(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_tap *tap = ts_tap(t);
		struct ts_link *link = repeating(t, reliable_types[i]);
		unsigned int before = ts_tap_requests(tap, qpn(link, TS_B));

		link->values[TS_A].retry_cnt = 6;
		modify(link, TS_A, IBV_QPS_SQD, IBV_QP_RETRY_CNT);
		ts_failed(t, send_cq(link), 1, IBV_WC_RETRY_EXC_ERR);
		VT_EXPECT_EQ(t, ts_tap_requests(tap, qpn(link, TS_B)) - before, 6);
		vb_fault_clear(ts_sim(t));
	}
}

/* One NAK came before the change; after it come as many retries as the new value allows. */
static void rnr_retry_changes_while_waiting(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_link *link = warm_link(t, reliable_types[i]);
		struct ts_tap *tap = ts_tap(t);

		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
		run_now(t);
		VT_OK(t, ts_to(link->ends[TS_A], IBV_QPS_SQD));
		link->values[TS_A].rnr_retry = 5;
		modify(link, TS_A, IBV_QPS_SQD, IBV_QP_RNR_RETRY);
		ts_failed(t, send_cq(link), 1, IBV_WC_RNR_RETRY_EXC_ERR);
		VT_EXPECT_EQ(t, ts_tap_requests(tap, qpn(link, TS_B)), 1 + 1 + 5);
	}
}

/* The packet that is sent again has the address and the P_Key of the time when it is sent. */
static void repeated_packet_has_the_new_address_and_pkey(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_tap *tap = ts_tap(t);
		struct ts_link *link = warm_link(t, reliable_types[i]);
		const int mask = IBV_QP_AV | IBV_QP_PKEY_INDEX;
		const struct ts_packet *again;

		tap->count = 0;
		disturb(link, TS_B, VB_FAULT_DROP, 0, 1);
		TS_LINK_RECV(link, .wr_id = 2, .length = 8);
		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
		run_now(t);
		VT_OK(t, ts_to(link->ends[TS_A], IBV_QPS_SQD));
		VT_OK(t, ts_to(link->ends[TS_B], IBV_QPS_SQD));
		link->values[TS_A].pkey_index = link->values[TS_B].pkey_index = 1;
		link->values[TS_A].ah_attr.sl = 4;
		link->values[TS_A].ah_attr.grh.traffic_class = 0x24;
		modify(link, TS_A, IBV_QPS_SQD, mask);
		modify(link, TS_B, IBV_QPS_SQD, IBV_QP_PKEY_INDEX);
		ts_done(t, send_cq(link), 1, IBV_WC_SEND);
		VT_EXPECT_EQ(t, ts_received(t, link->ends[TS_B]->recv_cq, 2, 8).pkey_index, 1);
		again = request(link, tap, 1);
		VT_EXPECT_EQ(t, again->pkey, ts_world_pkeys[1]);
		VT_EXPECT_EQ(t, ts_tap_answer(tap, qpn(link, TS_A), 0)->pkey, ts_world_pkeys[1]);
		if (t->have & VT_NEEDS_ETHERNET)
			VT_EXPECT_EQ(t, again->traffic_class, 0x24);
		else
			VT_EXPECT_EQ(t, again->sl, 4);
	}
}

static void change_table(struct vt *t, unsigned int index, uint16_t pkey)
{
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, 1, index, pkey));
	VT_OK(t, vb_sim_set_pkey(t->b.ctx, 1, index, pkey));
}

/* The subnet manager writes another P_Key into the entry that the QPs use. */
static void repeated_packet_has_the_pkey_of_the_table(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_link *link = ts_link(t, reliable_types[i]);
		struct ts_tap *tap = ts_tap(t);

		vt_row(t, "%s", ts_type_names[reliable_types[i]]);
		link->values[TS_A].pkey_index = link->values[TS_B].pkey_index = 3;
		ts_link_connect(link);
		ts_link_warm(link);
		tap->count = 0;
		disturb(link, TS_B, VB_FAULT_DROP, 0, 1);
		TS_LINK_RECV(link, .wr_id = 2, .length = 8);
		TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
		run_now(t);
		change_table(t, 3, 0x8999);
		ts_done(t, send_cq(link), 1, IBV_WC_SEND);
		ts_received(t, link->ends[TS_B]->recv_cq, 2, 8);
		VT_EXPECT_EQ(t, request(link, tap, 0)->pkey, ts_world_pkeys[3]);
		VT_EXPECT_EQ(t, request(link, tap, 1)->pkey, 0x8999);
		VT_EXPECT_EQ(t, ts_tap_answer(tap, qpn(link, TS_A), 0)->pkey, 0x8999);
		change_table(t, 3, ts_world_pkeys[3]);
		ts_link_send(link, 8);
	}
}

/* --- READs --- */

#define READS 6u

static void max_rd_atomic_changes_under_waiting_reads(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_link *link = ts_link(t, reliable_types[i]);
		struct ts_tap *tap = ts_tap(t);
		unsigned int id;

		vt_row(t, "%s", ts_type_names[reliable_types[i]]);
		link->values[TS_A].max_rd_atomic = 2;
		ts_link_connect(link);
		ts_link_warm(link);
		id = disturb(link, TS_A, VB_FAULT_DELAY, 0, 0);
		for (unsigned int n = 0; n < READS; n++)
			TS_LINK_POST(link, IBV_WR_RDMA_READ, .wr_id = n, .offset = 50000,
				     .length = 8);
		tap->count = 0;
		run_now(t);
		VT_EXPECT_EQ(t, ts_tap_requests(tap, qpn(link, TS_B)), 2);
		VT_OK(t, ts_to(link->ends[TS_A], IBV_QPS_SQD));
		for (unsigned int n = 0; n < 2; n++)
			ts_done(t, send_cq(link), n, IBV_WC_RDMA_READ);
		ts_drained(link->ends[TS_A]);
		link->values[TS_A].max_rd_atomic = 4;
		modify(link, TS_A, IBV_QPS_SQD, IBV_QP_MAX_QP_RD_ATOMIC);
		tap->count = 0;
		VT_OK(t, ts_to(link->ends[TS_A], IBV_QPS_RTS));
		run_now(t);
		VT_EXPECT_EQ(t, ts_tap_requests(tap, qpn(link, TS_B)), 4);
		for (unsigned int n = 2; n < READS; n++)
			ts_done(t, send_cq(link), n, IBV_WC_RDMA_READ);
		VT_OK(t, vb_fault_remove(ts_sim(t), id));
	}
}

/* --- datagrams --- */

/* B's Q_Key changes while a datagram with the old one, and one with the new one, are under way. */
static void qkey_changes_under_datagrams(struct vt *t)
{
	const uint32_t new_qkey = 0x3333333;
	struct ts_link *link;

	ts_world(t);
	link = warm_link(t, TS_TYPE_UD);
	for (uint64_t i = 0; i < 2; i++)
		TS_LINK_RECV(link, .wr_id = 10 + i, .length = 100);
	disturb(link, TS_B, VB_FAULT_DELAY, 0, 2);
	TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = 8);
	TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 2, .length = 16, .remote_qkey = new_qkey);
	run_now(t);
	link->values[TS_B].qkey = new_qkey;
	modify(link, TS_B, IBV_QPS_RTS, IBV_QP_QKEY);
	ts_done(t, send_cq(link), 1, IBV_WC_SEND);
	ts_done(t, send_cq(link), 2, IBV_WC_SEND);
	ts_received(t, link->ends[TS_B]->recv_cq, 10, 16 + TS_GRH);
	ts_no_more(t, link->ends[TS_B]->recv_cq);
}

/* --- nothing else changes --- */

/* A and B are modified, by the values that they have, between the packets of a message. */
static void same_values_disturb_no_message(struct vt *t)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_RTS, IBV_QPS_SQD};

	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(all_types); i++)
		for (size_t j = 0; j < TS_COUNT(states); j++)
			for (int which = 0; which < 2; which++) {
				struct ts_link *link = warm_link(t, all_types[i]);
				const enum ts_type type = link->types[which];
				const uint32_t bytes = type == TS_TYPE_UD ? 500 : LONG_BYTES;
				const uint32_t grh = type == TS_TYPE_UD ? TS_GRH : 0;
				int mask = 0;

				vt_row(t, "%s %c in %s", ts_type_names[type], "AB"[which],
				       vt_qp_state_name(states[j]));
				for (size_t k = 0; k < ts_transition_count; k++)
					if (ts_transitions[k].types & 1u << type &&
					    ts_transitions[k].from == states[j] &&
					    ts_transitions[k].to == states[j])
						mask |= ts_transitions[k].optional;
				TS_LINK_RECV(link, .wr_id = 2, .length = LONG_BYTES + grh);
				disturb(link, TS_B, VB_FAULT_DELAY, type == TS_TYPE_UD ? 0 : 1, 2);
				TS_LINK_POST(link, IBV_WR_SEND, .wr_id = 1, .length = bytes);
				run_now(t);
				if (states[j] == IBV_QPS_SQD)
					VT_OK(t, ts_to(link->ends[which], IBV_QPS_SQD));
				modify(link, which, states[j], mask);
				ts_done(t, send_cq(link), 1, IBV_WC_SEND);
				ts_received(t, link->ends[TS_B]->recv_cq, 2, bytes + grh);
				ts_verify(t, link->ends[TS_B]->buffer + grh, bytes, 1);
				ts_drained(link->ends[which]);
				if (states[j] == IBV_QPS_SQD)
					VT_OK(t, ts_to(link->ends[which], IBV_QPS_RTS));
				ts_link_warm(link);
			}
}

/* READs and atomics under way, to which the values that B has are set again. */
static void same_values_disturb_no_read(struct vt *t)
{
	ts_world(t);
	for (size_t i = 0; i < TS_COUNT(reliable_types); i++) {
		struct ts_link *link = warm_link(t, reliable_types[i]);

		ts_fill(link->ends[TS_B]->buffer, LONG_BYTES, 9);
		disturb(link, TS_A, VB_FAULT_DELAY, 1, 2);
		TS_LINK_POST(link, IBV_WR_RDMA_READ, .wr_id = 1, .offset = 50000,
			     .length = LONG_BYTES);
		run_now(t);
		modify(link, TS_B, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER);
		modify(link, TS_A, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS);
		ts_done(t, send_cq(link), 1, IBV_WC_RDMA_READ);
		ts_verify(t, link->ends[TS_A]->buffer + 50000, LONG_BYTES, 9);
		ts_link_warm(link);
	}
}

#define VIRTUAL (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK | VT_NEEDS_MTU_1024)
#define RIGHTS	SRC_RXE "rxe_resp.c, check_op_valid: for each packet"

static const struct vt_test tests[] = {
	{"rights_are_taken_away_under_a_write", RIGHTS, VIRTUAL,
	 rights_are_taken_away_under_a_write},
	{"other_rights_change_under_a_write", RIGHTS, VIRTUAL, other_rights_change_under_a_write},
	{"rights_change_under_a_request", RIGHTS, VIRTUAL, rights_change_under_a_request},
	{"values_change_behind_traffic_in_rtr", SRC_CORE "verbs.c, qp_state_table", VIRTUAL,
	 values_change_behind_traffic_in_rtr},
	{"rnr_timer_changes_between_two_naks", "unsourced", VIRTUAL,
	 rnr_timer_changes_between_two_naks},
	{"timeout_changes_while_repeating", "unsourced", VIRTUAL, timeout_changes_while_repeating},
	{"retry_cnt_changes_while_repeating", "unsourced", VIRTUAL,
	 retry_cnt_changes_while_repeating},
	{"rnr_retry_changes_while_waiting", "unsourced", VIRTUAL, rnr_retry_changes_while_waiting},
	{"repeated_packet_has_the_new_address_and_pkey", "unsourced", VIRTUAL,
	 repeated_packet_has_the_new_address_and_pkey},
	{"repeated_packet_has_the_pkey_of_the_table", "unsourced", VIRTUAL,
	 repeated_packet_has_the_pkey_of_the_table},
	{"max_rd_atomic_changes_under_waiting_reads", "unsourced", VIRTUAL,
	 max_rd_atomic_changes_under_waiting_reads},
	{"qkey_changes_under_datagrams", "unsourced", VIRTUAL, qkey_changes_under_datagrams},
	{"same_values_disturb_no_message", "unsourced", VIRTUAL, same_values_disturb_no_message},
	{"same_values_disturb_no_read", "unsourced", VIRTUAL, same_values_disturb_no_read},
	{NULL},
};

const struct vt_suite vt_suite_attributes_flight = {
	"attributes_flight", "attributes that change under packets", tests, .simulator = true};
