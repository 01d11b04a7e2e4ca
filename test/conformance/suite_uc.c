/* SPDX-License-Identifier: MIT */
/*
 * Unreliable connection: what it carries, and what it loses without an error.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <arpa/inet.h>
#include <verbena/fault.h>

#define MIB (1024 * 1024)

static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
					     IBV_WR_RDMA_WRITE_WITH_IMM};

#define OPCODES TS_COUNT(opcodes)

static void each_size_at(struct vt *t, enum ibv_mtu mtu)
{
	uint32_t bytes = ts_mtu_bytes(mtu);
	const uint32_t sizes[] = {0, 1, bytes - 1, bytes, bytes + 1, MIB};
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair;
	size_t i, op;

	options.mtu = mtu;
	options.buffer_bytes = MIB + 4096;
	pair = ts_pair(t, &options);
	for (op = 0; op < OPCODES; op++)
		for (i = 0; i < TS_COUNT(sizes); i++) {
			vt_row(t, "opcode %d, path MTU %u, %u bytes", opcodes[op], bytes, sizes[i]);
			ts_transfer(pair, opcodes[op], sizes[i]);
		}
}

static void each_operation_of_each_size(struct vt *t)
{
	enum ibv_mtu mtu;

	for (mtu = IBV_MTU_256; mtu <= t->a.port_attr.active_mtu; mtu++)
		each_size_at(t, mtu);
}

static void psn_wraps(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair;
	size_t i;

	options.mtu = IBV_MTU_256;
	options.a_psn = 0xfffffe;
	for (i = 0; i < OPCODES; i++) {
		vt_row(t, "opcode %d", opcodes[i]);
		pair = ts_pair(t, &options);
		ts_transfer(pair, opcodes[i], 2000);
		ts_transfer(pair, opcodes[i], 100);
	}
}

/* The sender sees success, the receiver sees nothing, and the next message arrives. */
static void expect_lost(struct ts_pair *pair, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct vt *t = pair->a.t;

	ts_done(t, pair->a.send_cq, wr_id, opcode);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_state(&pair->b, IBV_QPS_RTS);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void send_without_receive_is_lost(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);

	ts_send(&pair->a, .wr_id = 1, .length = 9000);
	expect_lost(pair, 1, IBV_WC_SEND);
}

static void write_with_bad_rkey_is_lost(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);

	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_settle(t);
	ts_blank(t, pair->b.buffer, 200);
	ts_no_event(t, &t->b);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void write_past_the_region_is_lost(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);
	size_t last = pair->b.options.buffer_bytes - 99;

	ts_write(&pair->a, .wr_id = 1, .length = 100, .remote_offset = last);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_settle(t);
	ts_blank(t, pair->b.buffer + last, 99);
	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
}

static void write_without_the_right_is_lost(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair;

	options.qp_access = 0;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	expect_lost(pair, 1, IBV_WC_RDMA_WRITE);
}

/* If one packet is lost the message is lost: its receive stays posted for the next message. */
static void lost_packet_loses_the_message(struct vt *t)
{
	static const struct {
		const char *name;
		uint8_t opcode;
	} rows[] = {
		{"first", TS_UC + TS_SEND_FIRST},
		{"middle", TS_UC + TS_SEND_MIDDLE},
		{"last", TS_UC + TS_SEND_LAST},
	};
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair;
	size_t i;

	options.mtu = IBV_MTU_256;
	for (i = 0; i < 3; i++) {
		vt_row(t, "%s packet", rows[i].name);
		pair = ts_pair(t, &options);
		ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP,
						    .opcode_given = true,
						    .opcode = rows[i].opcode,
						    .dest_qpn = pair->b.qp->qp_num,
						    .count = 1});
		ts_recv(&pair->b, .wr_id = 5, .length = 1000);
		ts_send(&pair->a, .wr_id = 1, .length = 1000);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_no_more(t, pair->b.recv_cq);
		ts_send(&pair->a, .wr_id = 2, .length = 600);
		ts_received(t, pair->b.recv_cq, 5, 600);
		ts_verify(t, pair->b.buffer, 600, 1);
	}
}

/* ibv_post_send(3) lists SEND with Invalidate for UC, but UC has no packet for it. */
static void send_with_invalidate_is_refused(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);
	const struct ts_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND_WITH_INV, .length = 8};
	int error = ts_post(&pair->a, &wr);

	if (error)
		VT_EQ(t, error, EINVAL);
	else
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

#define LONG_BYTES    65536u
#define LONG_MESSAGES 60u

/* The messages that arrive are whole and in order. */
static void long_messages_under_loss(struct vt *t, bool with_write)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UC);
	struct ts_pair *pair;
	uint64_t recv_id = 0;
	uint32_t last = 0;
	struct ibv_wc wc;

	options.mtu = IBV_MTU_256;
	options.buffer_bytes = 2 * LONG_BYTES;
	pair = ts_pair(t, &options);
	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .probability = 0.005});
	ts_recv(&pair->b, .wr_id = recv_id, .length = LONG_BYTES);
	for (uint32_t i = 1; i <= LONG_MESSAGES; i++) {
		vt_row(t, "message %u", i);
		ts_fill(pair->a.buffer, LONG_BYTES, i);
		TS_POST(&pair->a, with_write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM,
			.wr_id = i, .length = LONG_BYTES, .imm = i);
		ts_done(t, pair->a.send_cq, i, with_write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
		if (!ts_wait(t, pair->b.recv_cq, 1, &wc))
			continue;
		VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
		VT_EQ(t, wc.wr_id, recv_id);
		VT_EQ(t, wc.byte_len, LONG_BYTES);
		VT_EQ(t, ntohl(wc.imm_data), i);
		ts_verify(t, pair->b.buffer, LONG_BYTES, i);
		ts_recv(&pair->b, .wr_id = ++recv_id, .length = LONG_BYTES);
		last = i;
	}
	vt_row(t, NULL);
	VT_CHECK(t, last > 0 && recv_id < LONG_MESSAGES);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void long_sends_under_loss(struct vt *t)
{
	long_messages_under_loss(t, false);
}

static void long_writes_under_loss(struct vt *t)
{
	long_messages_under_loss(t, true);
}

static void nothing_is_acknowledged(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);
	struct ts_log *log = ts_watch(t);

	ts_transfer(pair, IBV_WR_SEND, 20000);
	ts_settle(t);
	VT_CHECK(t, ts_count(log, 0xff, pair->b.qp->qp_num) > 0);
	VT_EQ(t, ts_count(log, 0xff, pair->a.qp->qp_num), 0);
}

static void send_to_a_qp_in_reset_succeeds(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UC);

	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static const struct vt_test tests[] = {
	{"each_operation_of_each_size", "ibv_post_send(3), ibv_poll_cq(3)", 0,
	 each_operation_of_each_size},
	{"psn_wraps", SRC_PSN, 0, psn_wraps},
	{"send_without_receive_is_lost", SRC_RXE "rxe_resp.c, ERR_RNR on UC", 0,
	 send_without_receive_is_lost},
	{"write_with_bad_rkey_is_lost", SRC_RXE "rxe_resp.c, ERR_RKEY on UC", 0,
	 write_with_bad_rkey_is_lost},
	{"write_past_the_region_is_lost", SRC_RXE "rxe_resp.c, ERR_RKEY on UC", 0,
	 write_past_the_region_is_lost},
	{"write_without_the_right_is_lost",
	 SRC_RXE "rxe_resp.c, check_op_valid: UC drops the message", 0,
	 write_without_the_right_is_lost},
	{"lost_packet_loses_the_message", SRC_RXE "rxe_resp.c, check_psn: UC drops the message",
	 VT_NEEDS_FAULTS, lost_packet_loses_the_message},
	{"send_with_invalidate_is_refused", SRC_RXE "rxe_opcode.c: RC only", 0,
	 send_with_invalidate_is_refused},
	{"long_sends_under_loss", SRC_RXE "rxe_resp.c, check_psn",
	 VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK, long_sends_under_loss},
	{"long_writes_under_loss", SRC_RXE "rxe_resp.c, check_psn",
	 VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK, long_writes_under_loss},
	{"nothing_is_acknowledged", SRC_RXE "rxe_resp.c, acknowledge: RC only", VT_NEEDS_SIM,
	 nothing_is_acknowledged},
	{"send_to_a_qp_in_reset_succeeds", SRC_RVT "qp.c, loopback_qp_drop: SUCCESS unless RC", 0,
	 send_to_a_qp_in_reset_succeeds},
	{NULL},
};

const struct vt_suite vt_suite_uc = {"uc", "unreliable connection", tests};
