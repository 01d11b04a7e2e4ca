/* SPDX-License-Identifier: MIT */
/* Quirks of what a responder accepts. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

static void send_between_mtus(struct vt *t, enum ibv_mtu a, enum ibv_mtu b)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	pair->a.options.mtu = a;
	pair->b.options.mtu = b;
	ts_connect_both(pair);
	ts_transfer(pair, IBV_WR_SEND, 3000);
	/* The sizes of the packets of an RDMA WRITE are checked. */
	ts_write(&pair->a, .wr_id = 7, .length = 3000, .rkey = pair->b.mr->rkey);
	ts_failed(t, pair->a.send_cq, 7, IBV_WC_REM_INV_REQ_ERR);
}

static void packet_sizes_unchecked(struct vt *t)
{
	ts_quirks(t, "packet_sizes_unchecked", NULL);
	vt_row(t, "1024 to 256");
	send_between_mtus(t, IBV_MTU_1024, IBV_MTU_256);
	vt_row(t, "256 to 1024");
	send_between_mtus(t, IBV_MTU_256, IBV_MTU_1024);
}

static void empty_accesses_checked(struct vt *t)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct ts_pair *pair;
	size_t i;

	ts_quirks(t, "empty_accesses_checked", NULL);
	for (i = 0; i < TS_COUNT(opcodes); i++) {
		vt_row(t, "opcode %d", opcodes[i]);
		pair = ts_connected(t, IBV_QPT_RC);
		TS_POST(&pair->a, opcodes[i], .wr_id = 1);
		TS_POST(&pair->a, opcodes[i], .wr_id = 2, .rkey = ts_wrong_key(pair->b.mr->rkey));
		ts_done(t, pair->a.send_cq, 1,
			opcodes[i] == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
		ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

static void cut_writes_jam_uc(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "cut_writes_jam_uc", NULL);
	pair = ts_connected(t, IBV_QPT_UC);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
}

/* The region ends behind the first packet and a half. */
static void writes_checked_by_packet(struct vt *t)
{
	struct ts_pair *pair;
	size_t packet, at, end;

	ts_quirks(t, "writes_checked_by_packet", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	packet = ts_mtu_bytes(pair->a.options.mtu);
	end = pair->b.options.buffer_bytes;
	at = end - packet - packet / 2;
	ts_write(&pair->a, .wr_id = 1, .length = (uint32_t)(3 * packet), .remote_offset = at);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_blank(t, pair->b.buffer, at);
	ts_verify(t, pair->b.buffer + at, packet, 1);
	ts_blank(t, pair->b.buffer + at + packet, end - at - packet);
}

static const struct vt_test tests[] = {
	{"packet_sizes_unchecked", MEASURED_6_1, VT_NEEDS_SIM | VT_NEEDS_MTU_1024,
	 packet_sizes_unchecked},
	{"empty_accesses_checked", "unsourced", VT_NEEDS_SIM, empty_accesses_checked},
	{"writes_checked_by_packet", SRC_STUDY "docs/experiments/05, 5.3", VT_NEEDS_SIM,
	 writes_checked_by_packet},
	{"cut_writes_jam_uc", FOUND_BOTH "; " SRC_RXE "rxe_resp.c, check_op_seq", VT_NEEDS_SIM,
	 cut_writes_jam_uc},
	{NULL},
};

const struct vt_suite vt_suite_quirks_responder = {
	"quirks_responder", "quirks: what a responder accepts", tests, .simulator = true};
