/* SPDX-License-Identifier: MIT */
/*
 * Packets that no correct peer sends: made byte by byte and given to a port, or changed on their way.
 * The devices have no quirks here.
 */
#include "test/conformance/sources.h"
#include "test/support/frame.h"
#include "test/support/quirks.h"
#include "test/support/xrc.h"

#include <verbena/fault.h>
#include <verbena/sim.h>

#define WIRE (VT_NEEDS_SIM | VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK)

#define MTU	    256u
#define AWAY	    4096u /* where RDMA goes in B's buffer */
#define RECV	    50
#define NAK_INVALID 0x61
#define ACK	    0x1f

static struct ts_options narrow_options(struct vt *t, enum ibv_qp_type type)
{
	struct ts_options options = ts_defaults(t, type);

	options.mtu = IBV_MTU_256;
	return options;
}

static struct ts_pair *narrow(struct vt *t, enum ibv_qp_type type)
{
	const struct ts_options options = narrow_options(t, type);

	return ts_pair(t, &options);
}

/* --- requests out of sequence, and of wrong lengths --- */

/* Packets in PSN order, the last of which is wrong. Addresses count from AWAY. */
struct row {
	const char *name;
	unsigned int count;
	struct ts_packet packets[2];
	bool takes; /* the message has taken a receive */
	bool on_uc; /* UC has the operation, too */
};

#define FIRST_OF_SEND                                         \
	{                                                     \
		.opcode = TS_SEND_FIRST, .payload_bytes = MTU \
	}
#define FIRST_OF_WRITE(bytes)                                                        \
	{                                                                            \
		.opcode = TS_WRITE_FIRST, .payload_bytes = MTU, .dma_bytes = (bytes) \
	}
#define PACKET(code, bytes, ...)                                        \
	{                                                               \
		.opcode = (code), .payload_bytes = (bytes), __VA_ARGS__ \
	}

static const struct row out_of_sequence[] = {
	{"SEND MIDDLE without FIRST", 1, {PACKET(TS_SEND_MIDDLE, MTU)}, false, true},
	{"SEND LAST without FIRST", 1, {PACKET(TS_SEND_LAST, 8)}, false, true},
	{"SEND LAST IMM without FIRST", 1, {PACKET(TS_SEND_LAST_IMM, 8)}, false, true},
	{"SEND LAST INV without FIRST", 1, {PACKET(TS_SEND_LAST_INV, 8)}, false, false},
	{"WRITE MIDDLE without FIRST", 1, {PACKET(TS_WRITE_MIDDLE, MTU)}, false, true},
	{"WRITE LAST without FIRST", 1, {PACKET(TS_WRITE_LAST, 8)}, false, true},
	{"WRITE LAST IMM without FIRST", 1, {PACKET(TS_WRITE_LAST_IMM, 8)}, false, true},
	{"SEND FIRST in a SEND", 2, {FIRST_OF_SEND, FIRST_OF_SEND}, true, true},
	{"SEND ONLY in a SEND", 2, {FIRST_OF_SEND, PACKET(TS_SEND_ONLY, 8)}, true, true},
	{"WRITE FIRST in a SEND", 2, {FIRST_OF_SEND, FIRST_OF_WRITE(512)}, true, true},
	{"WRITE MIDDLE in a SEND", 2, {FIRST_OF_SEND, PACKET(TS_WRITE_MIDDLE, MTU)}, true, true},
	{"READ in a SEND",
	 2,
	 {FIRST_OF_SEND, PACKET(TS_READ_REQUEST, 0, .dma_bytes = 8)},
	 true,
	 false},
	{"FETCH ADD in a SEND", 2, {FIRST_OF_SEND, PACKET(TS_FETCH_ADD, 0)}, true, false},
	{"SEND ONLY in a WRITE", 2, {FIRST_OF_WRITE(512), PACKET(TS_SEND_ONLY, 8)}, false, true},
	{"SEND MIDDLE in a WRITE",
	 2,
	 {FIRST_OF_WRITE(512), PACKET(TS_SEND_MIDDLE, MTU)},
	 false,
	 true},
	{"WRITE FIRST in a WRITE", 2, {FIRST_OF_WRITE(512), FIRST_OF_WRITE(512)}, false, true},
	{"READ in a WRITE",
	 2,
	 {FIRST_OF_WRITE(512), PACKET(TS_READ_REQUEST, 0, .dma_bytes = 8)},
	 false,
	 false},
};

static const struct row wrong_lengths[] = {
	{"SEND FIRST below the MTU", 1, {PACKET(TS_SEND_FIRST, MTU - 4)}, true, true},
	{"SEND FIRST above the MTU", 1, {PACKET(TS_SEND_FIRST, MTU + 4)}, true, true},
	{"SEND MIDDLE below the MTU",
	 2,
	 {FIRST_OF_SEND, PACKET(TS_SEND_MIDDLE, MTU - 1)},
	 true,
	 true},
	{"SEND MIDDLE above the MTU",
	 2,
	 {FIRST_OF_SEND, PACKET(TS_SEND_MIDDLE, MTU + 1)},
	 true,
	 true},
	{"SEND LAST of nothing", 2, {FIRST_OF_SEND, PACKET(TS_SEND_LAST, 0)}, true, true},
	{"SEND LAST above the MTU", 2, {FIRST_OF_SEND, PACKET(TS_SEND_LAST, MTU + 4)}, true, true},
	{"SEND ONLY above the MTU", 1, {PACKET(TS_SEND_ONLY, MTU + 4)}, true, true},
	{"WRITE FIRST below the MTU",
	 1,
	 {PACKET(TS_WRITE_FIRST, MTU - 4, .dma_bytes = 512)},
	 false,
	 true},
	{"WRITE FIRST above the MTU",
	 1,
	 {PACKET(TS_WRITE_FIRST, MTU + 4, .dma_bytes = 512)},
	 false,
	 true},
	{"WRITE FIRST of the whole message", 1, {FIRST_OF_WRITE(MTU)}, false, true},
	{"WRITE MIDDLE below the MTU",
	 2,
	 {FIRST_OF_WRITE(768), PACKET(TS_WRITE_MIDDLE, MTU - 4)},
	 false,
	 true},
	{"WRITE MIDDLE that ends the message",
	 2,
	 {FIRST_OF_WRITE(512), PACKET(TS_WRITE_MIDDLE, MTU)},
	 false,
	 true},
	{"WRITE LAST that ends below the RETH",
	 2,
	 {FIRST_OF_WRITE(300), PACKET(TS_WRITE_LAST, 43)},
	 false,
	 true},
	{"WRITE LAST that ends above the RETH",
	 2,
	 {FIRST_OF_WRITE(300), PACKET(TS_WRITE_LAST, 45)},
	 false,
	 true},
	{"WRITE ONLY below the RETH",
	 1,
	 {PACKET(TS_WRITE_ONLY, 96, .dma_bytes = 100)},
	 false,
	 true},
	{"WRITE ONLY above the RETH",
	 1,
	 {PACKET(TS_WRITE_ONLY, 104, .dma_bytes = 100)},
	 false,
	 true},
	{"WRITE ONLY above the MTU",
	 1,
	 {PACKET(TS_WRITE_ONLY, MTU + 4, .dma_bytes = MTU + 4)},
	 false,
	 true},
	{"WRITE of more than 2^31 bytes", 1, {FIRST_OF_WRITE(0x80000001)}, false, true},
	{"READ of more than 2^31 bytes",
	 1,
	 {PACKET(TS_READ_REQUEST, 0, .dma_bytes = 0x80000001)},
	 false,
	 false},
	{"READ with a payload", 1, {PACKET(TS_READ_REQUEST, 8, .dma_bytes = 8)}, false, false},
	{"FETCH ADD with a payload", 1, {PACKET(TS_FETCH_ADD, 8)}, false, false},
	{"FETCH ADD to an odd address",
	 1,
	 {PACKET(TS_FETCH_ADD, 0, .remote_addr = 4)},
	 false,
	 false},
};

/* Where the packets of a row go. */
struct target {
	struct ts_end *a, *b;
	uint8_t transport; /* the upper bits of the opcode */
	uint8_t *buffer;   /* of receives and RDMA */
	uint32_t rkey;
	uint32_t srqn;
	struct ibv_cq *recv_cq;
};

static struct target target_of(struct ts_pair *pair, uint8_t transport)
{
	return (struct target){&pair->a,	 &pair->b, transport,	   pair->b.buffer,
			       pair->b.mr->rkey, 0,	   pair->b.recv_cq};
}

/* Injects the packets of a row. Returns the bytes of those before the last. */
static uint32_t inject_row(const struct target *target, const struct row *row)
{
	uint32_t before_bytes = 0;

	for (unsigned int i = 0; i < row->count; i++) {
		struct ts_packet packet = row->packets[i];

		packet.opcode |= target->transport;
		packet.psn = target->a->send_psn + i;
		packet.remote_addr += (uintptr_t)target->buffer + AWAY;
		packet.rkey = target->rkey;
		packet.xrc_srqn = target->srqn;
		packet.ack_request = true;
		ts_inject_at(VT_HERE, target->a, target->b, &packet);
		if (i + 1 < row->count)
			before_bytes += packet.payload_bytes;
	}
	return before_bytes;
}

/* Loses all that A sends to B. */
static void cut(const struct target *target)
{
	ts_fault(target->b->t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						       .from = target->a->node->ctx->device->name,
						       .dest_qpn = target->b->qp->qp_num});
}

/* B has sent one NAK with the syndrome and PSN, and no other answer. */
static void expect_nak(struct vt *t, const struct ts_log *log, unsigned int from, uint32_t qpn,
		       uint8_t opcode, uint32_t psn)
{
	unsigned int answers = 0;

	for (unsigned int i = from; i < log->count; i++) {
		if (log->frames[i].dest_qpn != qpn || log->frames[i].opcode != opcode ||
		    log->frames[i].syndrome == ACK)
			continue;
		answers++;
		VT_EXPECT_EQ(t, log->frames[i].syndrome, NAK_INVALID);
		VT_EXPECT_EQ(t, log->frames[i].psn, psn);
	}
	VT_EXPECT_EQ(t, answers, 1);
}

/*
 * A's message of three packets is lost, and the packets of the row come in its place. The NAK for the
 * last of them ends A's message.
 */
static void expect_refused(struct vt *t, const struct ts_log *log, const struct target *target,
			   const struct row *row)
{
	const unsigned int from = log->count;
	const uint32_t before_bytes = inject_row(target, row);

	ts_failed(t, target->a->send_cq, 1, IBV_WC_REM_INV_REQ_ERR);
	ts_state(target->a, IBV_QPS_ERR);
	ts_state(target->b, IBV_QPS_ERR);
	expect_nak(t, log, from, target->a->qp->qp_num, TS_ACK | target->transport,
		   target->a->send_psn + row->count - 1);
	ts_blank(t, target->buffer + before_bytes, 1024);
	ts_blank(t, target->buffer + AWAY + before_bytes, 1024);
	if (row->takes) {
		ts_failed(t, target->recv_cq, RECV, IBV_WC_REM_INV_REQ_ERR);
		ts_no_event(t, target->b->node);
	} else {
		ts_event(t, target->b->node, IBV_EVENT_QP_REQ_ERR, target->b->qp);
	}
}

static void refuse_on_rc(struct vt *t, const struct row *rows, size_t count)
{
	struct ts_log *log = ts_watch(t);

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < count; i++) {
		struct ts_pair *pair = narrow(t, IBV_QPT_RC);
		const struct target target = target_of(pair, 0);

		vt_row(t, "%s", rows[i].name);
		cut(&target);
		ts_recv(&pair->b, .wr_id = RECV, .length = 1000);
		ts_send(&pair->a, .wr_id = 1, .length = 600);
		ts_pause(t, 1000);
		expect_refused(t, log, &target, &rows[i]);
		if (!rows[i].takes)
			ts_flushed(t, pair->b.recv_cq, RECV);
		ts_no_more(t, pair->b.recv_cq);
	}
}

static void rc_opcodes_out_of_sequence(struct vt *t)
{
	refuse_on_rc(t, out_of_sequence, TS_COUNT(out_of_sequence));
}

static void rc_wrong_lengths(struct vt *t)
{
	refuse_on_rc(t, wrong_lengths, TS_COUNT(wrong_lengths));
}

/* The SRQ keeps a receive that no message has taken. */
static void refuse_on_xrc(struct vt *t, const struct row *rows, size_t count)
{
	const struct ts_options options = narrow_options(t, IBV_QPT_RC);
	struct ts_log *log;

	ts_need_xrc(t);
	ts_quirks(t, "", NULL);
	log = ts_watch(t);
	for (size_t i = 0; i < count; i++) {
		struct ts_xrc *xrc = ts_xrc_with(t, &options);
		struct target target = target_of(xrc->pair, TS_XRC);

		vt_row(t, "%s", rows[i].name);
		target.buffer = xrc->shared[0]->buffer;
		target.rkey = xrc->shared[0]->mr->rkey;
		target.srqn = xrc->srqn[0];
		target.recv_cq = xrc->cq[0];
		cut(&target);
		ts_srq_recv(xrc->shared[0], .wr_id = RECV, .length = 1000);
		TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_SEND, .wr_id = 1, .length = 600);
		ts_pause(t, 1000);
		expect_refused(t, log, &target, &rows[i]);
		ts_no_more(t, xrc->cq[0]);
	}
}

static void xrc_opcodes_out_of_sequence(struct vt *t)
{
	refuse_on_xrc(t, out_of_sequence, TS_COUNT(out_of_sequence));
}

static void xrc_wrong_lengths(struct vt *t)
{
	refuse_on_xrc(t, wrong_lengths, TS_COUNT(wrong_lengths));
}

/* The message is lost, its receive is the next message's, and the QP stays. */
static void drop_on_uc(struct vt *t, const struct row *rows, size_t count)
{
	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < count; i++) {
		const uint64_t before = ts_drops(t, &t->b, "bad_request");
		struct ts_pair *pair;
		struct target target;

		if (!rows[i].on_uc)
			continue;
		vt_row(t, "%s", rows[i].name);
		pair = narrow(t, IBV_QPT_UC);
		target = target_of(pair, TS_UC);
		ts_recv(&pair->b, .wr_id = RECV, .length = 1000);
		inject_row(&target, &rows[i]);
		ts_no_more(t, pair->b.recv_cq);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, "bad_request") - before, 1);
		ts_send(&pair->a, .wr_id = 1, .length = 600);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, RECV, 600);
		ts_verify(t, pair->b.buffer, 600, 1);
		ts_no_more(t, pair->b.recv_cq);
		ts_no_event(t, &t->b);
		ts_state(&pair->b, IBV_QPS_RTS);
	}
}

static void uc_opcodes_out_of_sequence(struct vt *t)
{
	drop_on_uc(t, out_of_sequence, TS_COUNT(out_of_sequence));
}

static void uc_wrong_lengths(struct vt *t)
{
	drop_on_uc(t, wrong_lengths, TS_COUNT(wrong_lengths));
}

/* A gap in the PSNs costs the rest of the message; a wrong rkey costs its own message. */
static void uc_losses_have_their_causes(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_UC);
	const uint32_t psn = pair->a.send_psn;

	ts_quirks(t, "", NULL);
	ts_recv(&pair->b, .wr_id = RECV, .length = 1000);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_FIRST | TS_UC, .psn = psn,
		  .payload_bytes = MTU);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_MIDDLE | TS_UC, .psn = psn + 2,
		  .payload_bytes = MTU);
	VT_EQ(t, ts_drops(t, &t->b, "cut_message"), 1);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_LAST | TS_UC, .psn = psn + 3,
		  .payload_bytes = 8);
	VT_EQ(t, ts_drops(t, &t->b, "cut_message"), 2);
	ts_no_more(t, pair->b.recv_cq);
	ts_inject(&pair->a, &pair->b, .opcode = TS_WRITE_ONLY | TS_UC, .psn = psn + 4,
		  .payload_bytes = 8, .dma_bytes = 8, .rkey = ts_wrong_key(pair->b.mr->rkey),
		  .remote_addr = (uintptr_t)pair->b.buffer + AWAY);
	VT_EQ(t, ts_drops(t, &t->b, "access"), 1);
	ts_blank(t, pair->b.buffer + AWAY, 8);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY | TS_UC, .psn = psn + 5,
		  .payload_bytes = 8);
	ts_received(t, pair->b.recv_cq, RECV, 8);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY | TS_UC, .psn = psn + 6);
	VT_EQ(t, ts_drops(t, &t->b, "no_receive"), 1);
	VT_EQ(t, ts_drops(t, &t->b, NULL), 4);
}

static void xrc_srq_of_nobody(struct vt *t)
{
	static const struct row row = {
		"an SRQ number of nobody", 1, {PACKET(TS_SEND_ONLY, 8)}, false, false};
	const struct ts_options options = narrow_options(t, IBV_QPT_RC);
	struct target target;
	struct ts_xrc *xrc;
	struct ts_log *log;

	ts_need_xrc(t);
	ts_quirks(t, "", NULL);
	log = ts_watch(t);
	xrc = ts_xrc_with(t, &options);
	target = target_of(xrc->pair, TS_XRC);
	target.srqn = 0xfffff0;
	target.recv_cq = xrc->cq[0];
	cut(&target);
	TS_XRC_POST(xrc, xrc->srqn[0], IBV_WR_SEND, .wr_id = 1, .length = 600);
	ts_pause(t, 1000);
	expect_refused(t, log, &target, &row);
}

/* --- answers --- */

/* Answers to nothing: the requester has nothing outstanding. */
static void answers_to_nothing_have_no_effect(struct vt *t)
{
	static const struct {
		const char *name;
		struct ts_packet packet;
	} rows[] = {
		{"READ response ONLY", PACKET(TS_READ_ONLY, 8, .syndrome = ACK)},
		{"READ response FIRST", PACKET(TS_READ_FIRST, MTU, .syndrome = ACK)},
		{"READ response MIDDLE", PACKET(TS_READ_MIDDLE, MTU)},
		{"READ response LAST", PACKET(TS_READ_LAST, 8, .syndrome = ACK)},
		{"ATOMIC ACK", PACKET(TS_ATOMIC_ACK, 0, .syndrome = ACK)},
		{"ACK", PACKET(TS_ACK, 0, .syndrome = ACK)},
		{"RNR NAK", PACKET(TS_ACK, 0, .syndrome = 0x21)},
		{"sequence NAK", PACKET(TS_ACK, 0, .syndrome = 0x60)},
		{"invalid request NAK", PACKET(TS_ACK, 0, .syndrome = NAK_INVALID)},
		{"remote access NAK", PACKET(TS_ACK, 0, .syndrome = 0x62)},
		{"remote operation NAK", PACKET(TS_ACK, 0, .syndrome = 0x63)},
	};

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct ts_pair *pair = narrow(t, IBV_QPT_RC);

		vt_row(t, "%s", rows[i].name);
		for (int ahead = -1; ahead <= 1; ahead++) {
			struct ts_packet packet = rows[i].packet;

			packet.psn = pair->a.send_psn + (uint32_t)ahead;
			ts_inject_at(VT_HERE, &pair->b, &pair->a, &packet);
		}
		ts_no_more(t, pair->a.send_cq);
		ts_no_event(t, &t->a);
		ts_state(&pair->a, IBV_QPS_RTS);
		ts_transfer(pair, IBV_WR_SEND, 700);
		ts_no_more(t, pair->a.send_cq);
	}
}

/* An answer that does not fit the request ends the request and the QP. */
static void wrong_answers_end_the_request(struct vt *t)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		uint32_t length;
		struct ts_packet packet;
	} rows[] = {
		{"READ response to a SEND", IBV_WR_SEND, 8,
		 PACKET(TS_READ_ONLY, 8, .syndrome = ACK)},
		{"READ response to a WRITE", IBV_WR_RDMA_WRITE, 8,
		 PACKET(TS_READ_ONLY, 8, .syndrome = ACK)},
		{"ATOMIC ACK to a SEND", IBV_WR_SEND, 8, PACKET(TS_ATOMIC_ACK, 0, .syndrome = ACK)},
		{"ATOMIC ACK to a READ", IBV_WR_RDMA_READ, 8,
		 PACKET(TS_ATOMIC_ACK, 0, .syndrome = ACK)},
		{"READ response to a FETCH ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
		 PACKET(TS_READ_ONLY, 8, .syndrome = ACK)},
		{"READ response ONLY below the length", IBV_WR_RDMA_READ, 100,
		 PACKET(TS_READ_ONLY, 96, .syndrome = ACK)},
		{"READ response ONLY above the length", IBV_WR_RDMA_READ, 100,
		 PACKET(TS_READ_ONLY, 104, .syndrome = ACK)},
		{"READ response ONLY of a longer READ", IBV_WR_RDMA_READ, 600,
		 PACKET(TS_READ_ONLY, MTU, .syndrome = ACK)},
		{"READ response FIRST below the MTU", IBV_WR_RDMA_READ, 600,
		 PACKET(TS_READ_FIRST, MTU - 4, .syndrome = ACK)},
		{"READ response FIRST above the MTU", IBV_WR_RDMA_READ, 600,
		 PACKET(TS_READ_FIRST, MTU + 4, .syndrome = ACK)},
		{"READ response FIRST of a READ of one packet", IBV_WR_RDMA_READ, MTU,
		 PACKET(TS_READ_FIRST, MTU, .syndrome = ACK)},
	};

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct ts_pair *pair = narrow(t, IBV_QPT_RC);
		const struct target target = target_of(pair, 0);
		struct ts_packet packet = rows[i].packet;

		vt_row(t, "%s", rows[i].name);
		cut(&target);
		memset(pair->a.buffer, TS_BLANK, 1024);
		TS_POST(&pair->a, rows[i].opcode, .wr_id = 1, .length = rows[i].length);
		ts_pause(t, 1000);
		packet.psn = pair->a.send_psn;
		ts_inject_at(VT_HERE, &pair->b, &pair->a, &packet);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_BAD_RESP_ERR);
		ts_state(&pair->a, IBV_QPS_ERR);
		ts_blank(t, pair->a.buffer, 1024);
	}
}

/* The requester takes the answers of a peer that is played by the test. */
static void right_answers_are_taken(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	const struct target target = target_of(pair, 0);
	const uint32_t psn = pair->a.send_psn;
	uint64_t value;

	ts_quirks(t, "", NULL);
	cut(&target);
	memset(pair->a.buffer, TS_BLANK, 1024);
	ts_read(&pair->a, .wr_id = 1, .length = 300);
	ts_fetch_add(&pair->a, .wr_id = 2, .offset = 1024);
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_pause(t, 1000);
	ts_inject(&pair->b, &pair->a, .opcode = TS_READ_FIRST, .psn = psn, .payload_bytes = MTU,
		  .syndrome = ACK, .msn = 1);
	ts_inject(&pair->b, &pair->a, .opcode = TS_READ_LAST, .psn = psn + 1,
		  .payload_bytes = 300 - MTU, .syndrome = ACK, .msn = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer, MTU, 1);
	ts_verify(t, pair->a.buffer + MTU, 300 - MTU, 1);
	ts_inject(&pair->b, &pair->a, .opcode = TS_ATOMIC_ACK, .psn = psn + 2, .syndrome = ACK,
		  .msn = 2, .original = 0x1122334455667788);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_FETCH_ADD);
	memcpy(&value, pair->a.buffer + 1024, sizeof(value));
	VT_EQ(t, value, 0x1122334455667788);
	ts_inject(&pair->b, &pair->a, .opcode = TS_ACK, .psn = psn + 3, .syndrome = ACK, .msn = 3);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
}

/* --- what a port drops, by cause --- */

/* Changes of a WRITE of 100 bytes or, with `empty`, of none. */
static const struct {
	const char *cause;
	struct vb_fault_rule rule;
	bool empty;
} spoilt[] = {
	{"icrc", {.change = VB_CHANGE_ANY_BIT}, false},
	{"icrc", {.change = VB_CHANGE_RKEY, .flip = 1}, false},
	{"icrc", {.change = VB_CHANGE_BTH_BYTE, .offset = 40, .flip = 0x80}, false},
	{"version", {.change = VB_CHANGE_VERSION, .value = 1, .right_icrc = true}, false},
	{"opcode", {.change = VB_CHANGE_OPCODE, .value = 0x1f, .right_icrc = true}, false},
	{"transport", {.change = VB_CHANGE_OPCODE, .value = 0x2a, .right_icrc = true}, false},
	{"transport", {.change = VB_CHANGE_OPCODE, .value = 0x64, .right_icrc = true}, false},
	{"pad", {.change = VB_CHANGE_PAD, .value = 1, .right_icrc = true}, true},
	{"truncated", {.change = VB_CHANGE_LENGTH, .value = 8, .right_icrc = true}, false},
	{"truncated", {.change = VB_CHANGE_LENGTH, .value = 12, .right_icrc = true}, false},
	{"truncated", {.change = VB_CHANGE_LENGTH, .value = 24, .right_icrc = true}, false},
	{"pkey", {.change = VB_CHANGE_PKEY, .value = 0x9234, .right_icrc = true}, false},
	{"no_qp", {.change = VB_CHANGE_DEST_QPN, .value = 0xfffff0, .right_icrc = true}, false},
};

/* The requester sends the packet again after its timeout. */
static void spoilt_packet_counts_as_lost(struct vt *t)
{
	struct ts_options options = narrow_options(t, IBV_QPT_RC);

	ts_quirks(t, "", NULL);
	options.timeout = 8;
	for (size_t i = 0; i < TS_COUNT(spoilt); i++) {
		struct ts_pair *pair = ts_pair(t, &options);
		const uint64_t before = ts_drops(t, &t->b, spoilt[i].cause);
		const uint64_t all = ts_drops(t, &t->b, NULL);
		struct vb_fault_rule rule = spoilt[i].rule;
		unsigned int id;

		vt_row(t, "%s, row %zu", spoilt[i].cause, i);
		rule.action = VB_FAULT_CORRUPT;
		rule.dest_qpn = pair->b.qp->qp_num;
		rule.count = 1;
		id = ts_fault(t, &rule);
		ts_transfer(pair, IBV_WR_RDMA_WRITE, spoilt[i].empty ? 0 : 100);
		VT_EXPECT_EQ(t, vb_fault_hits(ts_sim(t), id), 1);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, spoilt[i].cause) - before, 1);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, NULL) - all, 1);
		ts_transfer(pair, IBV_WR_SEND, 700);
	}
}

/* A packet with a right ICRC says what its bytes say. */
static void changed_packet_is_believed(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_quirks(t, "", NULL);
	pair = narrow(t, IBV_QPT_RC);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					    .change = VB_CHANGE_IMM_DATA,
					    .mask = 0xff,
					    .value = 0x55,
					    .flip = 0x80000000,
					    .right_icrc = true,
					    .count = 1});
	ts_recv(&pair->b, .wr_id = RECV, .length = 100);
	ts_send_imm(&pair->a, .wr_id = 1, .length = 8, .imm = 0x01020304);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	wc = ts_received(t, pair->b.recv_cq, RECV, 8);
	VT_EQ(t, be32toh(wc.imm_data), 0x81020355);

	/* The rule waits for a packet that has an AETH. */
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					    .change = VB_CHANGE_SYNDROME,
					    .value = 0x63,
					    .right_icrc = true,
					    .count = 1});
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_OP_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);

	pair = narrow(t, IBV_QPT_RC);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
					    .change = VB_CHANGE_RKEY,
					    .flip = 0xffff00,
					    .right_icrc = true,
					    .count = 1});
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
	ts_state(&pair->b, IBV_QPS_ERR);
}

static void packet_for_another_qp_type_is_dropped(struct vt *t)
{
	static const struct {
		enum ibv_qp_type type;
		uint8_t opcode;
		const char *cause;
	} rows[] = {
		{IBV_QPT_UD, TS_SEND_ONLY, "transport"},
		{IBV_QPT_UD, TS_WRITE_ONLY, "transport"},
		{IBV_QPT_UD, TS_READ_REQUEST, "transport"},
		{IBV_QPT_UD, TS_ACK, "transport"},
		{IBV_QPT_UD, TS_SEND_ONLY | TS_UC, "transport"},
		{IBV_QPT_UD, TS_SEND_FIRST | TS_UD, "opcode"},
		{IBV_QPT_UD, TS_WRITE_ONLY | TS_UD, "opcode"},
		{IBV_QPT_RC, TS_SEND_ONLY | TS_UD, "transport"},
		{IBV_QPT_RC, TS_SEND_ONLY | TS_UC, "transport"},
		{IBV_QPT_RC, TS_SEND_ONLY | TS_XRC, "transport"},
		{IBV_QPT_UC, TS_SEND_ONLY, "transport"},
		{IBV_QPT_UC, TS_READ_REQUEST | TS_UC, "opcode"},
		{IBV_QPT_UC, TS_ACK | TS_UC, "opcode"},
	};

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct ts_pair *pair = ts_connected(t, rows[i].type);
		const uint64_t before = ts_drops(t, &t->b, rows[i].cause);

		vt_row(t, "opcode 0x%02x to QP type %d", rows[i].opcode, rows[i].type);
		ts_recv(&pair->b, .wr_id = RECV, .length = 1000);
		ts_inject(&pair->a, &pair->b, .opcode = rows[i].opcode, .psn = pair->a.send_psn,
			  .payload_bytes = 8, .dma_bytes = 8, .qkey = TS_QKEY, .source_qpn = 2,
			  .rkey = pair->b.mr->rkey, .remote_addr = (uintptr_t)pair->b.buffer);
		ts_no_more(t, pair->b.recv_cq);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, rows[i].cause) - before, 1);
		ts_state(&pair->b, IBV_QPS_RTS);
		ts_blank(t, pair->b.buffer, 64);
	}
}

/* A datagram whose Q_Key is wrong, or that finds no receive that it fits, takes no receive. */
static void datagrams_are_dropped_by_cause(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	const struct ts_packet right = {.opcode = TS_SEND_ONLY | TS_UD,
					.payload_bytes = 8,
					.qkey = TS_QKEY,
					.source_qpn = 0x1234};
	struct ts_packet packet = right;
	struct ibv_wc wc;

	ts_quirks(t, "", NULL);
	ts_inject_at(VT_HERE, &pair->a, &pair->b, &right);
	VT_EQ(t, ts_drops(t, &t->b, "no_receive"), 1);
	ts_recv(&pair->b, .wr_id = RECV, .length = TS_GRH + 8);
	packet.qkey++;
	ts_inject_at(VT_HERE, &pair->a, &pair->b, &packet);
	VT_EQ(t, ts_drops(t, &t->b, "qkey"), 1);
	packet = right;
	packet.payload_bytes = 9;
	ts_inject_at(VT_HERE, &pair->a, &pair->b, &packet);
	VT_EQ(t, ts_drops(t, &t->b, "short_receive"), 1);
	ts_inject_at(VT_HERE, &pair->a, &pair->b, &right);
	wc = ts_received(t, pair->b.recv_cq, RECV, TS_GRH + 8);
	VT_EQ(t, wc.src_qp, 0x1234);
	VT_EQ(t, ts_drops(t, &t->b, NULL), 3);
}

/* Frames that are wrong in one place, given to B as from A. */
static void wrong_frames_are_dropped_by_cause(struct vt *t)
{
	static const struct {
		const char *cause;
		struct ts_packet packet;
	} rows[] = {
		{"icrc", {.wrong_icrc = true}},
		{"version", {.version = 1}},
		{"version", {.version = 8}},
		{"pkey", {.pkey = 0x8001}},
		{"no_qp", {.dest_qpn = 0xfffff0}},
		/* Without its payload and its RETH, and without its BTH. */
		{"truncated", {.cut_bytes = 8 + 16}},
		{"truncated", {.cut_bytes = 8 + 16 + 12}},
	};
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	uint64_t all = 0;

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		const uint64_t before = ts_drops(t, &t->b, rows[i].cause);
		struct ts_packet packet = rows[i].packet;

		vt_row(t, "%s, row %zu", rows[i].cause, i);
		packet.opcode = TS_WRITE_ONLY;
		packet.psn = pair->a.send_psn;
		packet.payload_bytes = packet.dma_bytes = 5;
		packet.rkey = pair->b.mr->rkey;
		packet.remote_addr = (uintptr_t)pair->b.buffer;
		ts_inject_at(VT_HERE, &pair->a, &pair->b, &packet);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, rows[i].cause) - before, 1);
		VT_EXPECT_EQ(t, ts_drops(t, &t->b, NULL), ++all);
	}
	ts_blank(t, pair->b.buffer, 64);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void wrong_vcrc_is_dropped(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);

	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY, .psn = pair->a.send_psn,
		  .wrong_vcrc = true);
	VT_EQ(t, ts_drops(t, &t->b, "vcrc"), 1);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

/* A packet from an address that is not the peer's, or to one that is not the port's. */
static void addresses_are_checked(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	union ibv_gid nobody = t->a.gid;

	ts_quirks(t, "", NULL);
	nobody.raw[15] ^= 0x40;
	ts_recv(&pair->b, .wr_id = RECV, .length = 100);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY, .psn = pair->a.send_psn,
		  .payload_bytes = 8, .source = &nobody);
	VT_EQ(t, ts_drops(t, &t->b, "stranger"), 1);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY, .psn = pair->a.send_psn,
		  .payload_bytes = 8, .dest = &nobody);
	VT_EQ(t, ts_drops(t, &t->b, "address"), 1);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_received(t, pair->b.recv_cq, RECV, 8);
}

static void states_are_checked(struct vt *t)
{
	const struct ts_options options = narrow_options(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_quirks(t, "", NULL);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY);
	VT_EQ(t, ts_drops(t, &t->b, "state"), 1);
	ts_to_init(&pair->b);
	ts_inject(&pair->a, &pair->b, .opcode = TS_SEND_ONLY);
	VT_EQ(t, ts_drops(t, &t->b, "state"), 2);
	/* A QP in RTR sends nothing, so it takes no answer. */
	ts_to_rtr(&pair->b);
	ts_inject(&pair->a, &pair->b, .opcode = TS_ACK, .syndrome = ACK);
	VT_EQ(t, ts_drops(t, &t->b, "state"), 3);
}

/* An XRC initiator takes no requests, and an XRC target no answers. */
static void directions_of_xrc_are_checked(struct vt *t)
{
	struct ts_xrc *xrc = ts_xrc(t);

	ts_inject(&xrc->pair->a, &xrc->pair->b, .opcode = TS_ACK | TS_XRC, .syndrome = ACK);
	VT_EQ(t, ts_drops(t, &t->b, "direction"), 1);
	ts_inject(&xrc->pair->b, &xrc->pair->a, .opcode = TS_SEND_ONLY | TS_XRC);
	VT_EQ(t, ts_drops(t, &t->a, "direction"), 1);
}

/*
 * A sends to B, and B is connected to another QP of A's port. No header of RC and UC names the QP that
 * sends, so B takes the message. B's ACK goes to the QP that B is connected to.
 */
static void qp_of_the_peers_port_is_the_peer(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_RC};

	ts_quirks(t, "", NULL);
	for (size_t i = 0; i < TS_COUNT(types); i++) {
		struct ts_options options = ts_defaults(t, types[i]);
		struct ibv_qp_attr attr;
		struct ts_end *other;
		struct ts_pair *pair;
		struct ibv_wc wc;
		int mask;

		vt_row(t, "QP type %d", types[i]);
		options.timeout = 8;
		options.retry_cnt = 2;
		pair = ts_pair_reset(t, &options);
		other = ts_end(t, &t->a, &options);
		ts_connect(&pair->a);
		ts_to_init(&pair->b);
		mask = ts_rtr_attr(&pair->b, &attr);
		attr.dest_qp_num = other->qp->qp_num;
		VT_OK(t, vb_modify_qp(pair->b.qp, &attr, mask));
		ts_to_rts(&pair->b);
		ts_recv(&pair->b, .wr_id = RECV, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 16);
		if (types[i] == IBV_QPT_UC)
			ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		else
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		wc = ts_received(t, pair->b.recv_cq, RECV, 16);
		VT_EXPECT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
		ts_no_more(t, pair->b.recv_cq);
		ts_state(&pair->b, IBV_QPS_RTS);
	}
}

/* --- vb_sim_inject() and vb_sim_drops() --- */

static void noise_is_dropped_and_counted(struct vt *t)
{
	struct ts_pair *pair = narrow(t, IBV_QPT_RC);
	uint8_t frame[TS_FRAME_BYTES_MAX];
	uint64_t packets, sum = 0;
	const char *cause;

	for (unsigned int i = 0; i < 1000; i++) {
		const size_t frame_bytes = vt_random_below(t, sizeof(frame) + 1);

		vt_random_fill(t, frame, frame_bytes);
		VT_OK(t, vb_sim_inject(t->b.ctx, t->b.port, frame, frame_bytes));
	}
	for (unsigned int i = 0; (cause = vb_sim_drop_cause(i, NULL)); i++) {
		VT_OK(t, vb_sim_drops(t->b.ctx, cause, &packets));
		sum += packets;
	}
	VT_EQ(t, sum, 1000);
	VT_EQ(t, ts_drops(t, &t->b, NULL), 1000);
	ts_transfer(pair, IBV_WR_SEND, 700);
}

static void causes_are_named(struct vt *t)
{
	uint64_t packets = 1;
	const char *about;
	unsigned int i;

	for (i = 0; vb_sim_drop_cause(i, &about); i++) {
		VT_CHECK(t, about && *about);
		VT_OK(t, vb_sim_drops(t->a.ctx, vb_sim_drop_cause(i, NULL), &packets));
		VT_EQ(t, packets, 0);
	}
	VT_CHECK(t, i > 10 && !about);
	VT_ERRNO(t, vb_sim_drops(t->a.ctx, "icrcs", &packets), EINVAL);
}

static void wrong_injections_are_refused(struct vt *t)
{
	static const uint8_t frame[TS_FRAME_BYTES_MAX + 1];

	VT_ERRNO(t, vb_sim_inject(t->b.ctx, 9, frame, 64), EINVAL);
	VT_ERRNO(t, vb_sim_inject(t->b.ctx, t->b.port, frame, sizeof(frame)), EINVAL);
	VT_ERRNO(t, vb_sim_inject(t->b.ctx, t->b.port, NULL, 64), EFAULT);
	VT_OK(t, vb_sim_inject(t->b.ctx, t->b.port, frame, 0));
	VT_OK(t, vb_sim_port_state(t->b.ctx, t->b.port, false));
	VT_ERRNO(t, vb_sim_inject(t->b.ctx, t->b.port, frame, 64), ENETDOWN);
	VT_EQ(t, ts_drops(t, &t->b, NULL), 1);
}

static void wrong_changes_are_refused(struct vt *t)
{
	static const struct vb_fault_rule rows[] = {
		{.change = VB_CHANGE_PKEY, .value = 0x10000},
		{.change = VB_CHANGE_VERSION, .flip = 0x10},
		{.change = VB_CHANGE_DEST_QPN, .mask = 0x1000000},
		{.change = VB_CHANGE_BTH_BYTE, .value = 0x100},
		{.change = VB_CHANGE_XRC_SRQN + 1},
	};

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct vb_fault_rule rule = rows[i];

		vt_row(t, "row %zu", i);
		rule.action = VB_FAULT_CORRUPT;
		VT_EXPECT_ERRNO(t, vb_fault_add(ts_sim(t), &rule, NULL), EINVAL);
	}
}

#define SEQUENCE SRC_RXE "rxe_resp.c, check_op_seq"
#define LENGTHS \
	SRC_QIB "qib_rc.c, qib_rc_rcv: nack_inv; " SRC_RXE "rxe_resp.c, rxe_resp_check_length"
#define HEADERS SRC_RXE "rxe_recv.c, rxe_rcv, hdr_check; pad, truncation: unsourced"

static const struct vt_test tests[] = {
	{"rc_opcodes_out_of_sequence", SEQUENCE, WIRE | VT_NEEDS_ATOMICS,
	 rc_opcodes_out_of_sequence, VT_MAY_CORRUPT},
	{"rc_wrong_lengths", LENGTHS, WIRE | VT_NEEDS_ATOMICS, rc_wrong_lengths, VT_MAY_CORRUPT},
	{"uc_opcodes_out_of_sequence", SEQUENCE, WIRE, uc_opcodes_out_of_sequence, VT_MAY_CORRUPT},
	{"uc_wrong_lengths", SRC_QIB "qib_uc.c, qib_uc_rcv: goto rewind, goto drop", WIRE,
	 uc_wrong_lengths, VT_MAY_CORRUPT},
	{"uc_losses_have_their_causes", SRC_QIB "qib_uc.c, qib_uc_rcv: goto rewind, goto drop",
	 WIRE, uc_losses_have_their_causes, VT_MAY_CORRUPT},
	{"xrc_opcodes_out_of_sequence", SEQUENCE, WIRE | VT_NEEDS_ATOMICS,
	 xrc_opcodes_out_of_sequence, VT_MAY_CORRUPT},
	{"xrc_wrong_lengths", LENGTHS, WIRE | VT_NEEDS_ATOMICS, xrc_wrong_lengths, VT_MAY_CORRUPT},
	{"xrc_srq_of_nobody", "unsourced", WIRE, xrc_srq_of_nobody, VT_MAY_CORRUPT},
	{"answers_to_nothing_have_no_effect",
	 "Linux drivers/infiniband/hw/hfi1/rc.c, rc_rcv_resp: \"Ignore invalid responses\"", WIRE,
	 answers_to_nothing_have_no_effect, VT_MAY_CORRUPT},
	{"wrong_answers_end_the_request", "unsourced", WIRE | VT_NEEDS_ATOMICS,
	 wrong_answers_end_the_request, VT_MAY_CORRUPT},
	{"right_answers_are_taken", SRC_RXE "rxe_comp.c, do_read, do_atomic",
	 WIRE | VT_NEEDS_ATOMICS, right_answers_are_taken, VT_MAY_CORRUPT},
	{"spoilt_packet_counts_as_lost", HEADERS, WIRE, spoilt_packet_counts_as_lost,
	 VT_MAY_CORRUPT},
	{"changed_packet_is_believed", "verbena/fault.h", WIRE, changed_packet_is_believed,
	 VT_MAY_CORRUPT},
	{"packet_for_another_qp_type_is_dropped", SRC_RXE "rxe_recv.c, check_type_state", WIRE,
	 packet_for_another_qp_type_is_dropped, VT_MAY_CORRUPT},
	{"datagrams_are_dropped_by_cause",
	 SRC_RXE "rxe_recv.c, check_keys; " SRC_QIB "qib_ud.c, qib_ud_rcv", WIRE,
	 datagrams_are_dropped_by_cause, VT_MAY_CORRUPT},
	{"wrong_frames_are_dropped_by_cause", HEADERS, WIRE, wrong_frames_are_dropped_by_cause,
	 VT_MAY_CORRUPT},
	{"wrong_vcrc_is_dropped", "unsourced", WIRE | VT_NEEDS_INFINIBAND, wrong_vcrc_is_dropped,
	 VT_MAY_CORRUPT},
	{"addresses_are_checked", SRC_RXE "rxe_recv.c, check_addr", WIRE | VT_NEEDS_ETHERNET,
	 addresses_are_checked, VT_MAY_CORRUPT},
	{"states_are_checked", SRC_RXE "rxe_recv.c, check_type_state", WIRE, states_are_checked,
	 VT_MAY_CORRUPT},
	{"directions_of_xrc_are_checked", "unsourced", WIRE, directions_of_xrc_are_checked,
	 VT_MAY_CORRUPT},
	{"qp_of_the_peers_port_is_the_peer",
	 SRC_RXE "rxe_hdr.h, struct rxe_bth; rxe_recv.c, check_addr", VT_NEEDS_SIM,
	 qp_of_the_peers_port_is_the_peer, VT_MAY_MISADDRESS},
	{"noise_is_dropped_and_counted", "verbena/sim.h", WIRE, noise_is_dropped_and_counted,
	 VT_MAY_CORRUPT},
	{"causes_are_named", "verbena/sim.h", VT_NEEDS_SIM, causes_are_named},
	{"wrong_injections_are_refused", "verbena/sim.h", VT_NEEDS_SIM,
	 wrong_injections_are_refused, VT_MAY_CORRUPT},
	{"wrong_changes_are_refused", "verbena/fault.h", VT_NEEDS_SIM | VT_NEEDS_FAULTS,
	 wrong_changes_are_refused},
	{NULL},
};

const struct vt_suite vt_suite_injected = {"injected", "packets that no correct peer sends", tests,
					   .simulator = true};
