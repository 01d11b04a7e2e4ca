/* SPDX-License-Identifier: MIT */
/*
 * One operation from A to B, checked at both ends.
 */
#include "test/support/support.h"

#include <arpa/inet.h>

#define MARGIN 64 /* bytes before and behind the target that must not change */
#define IMM    0x12345678

/* What a transfer expects of each opcode. */
struct operation {
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode done;
	bool takes_receive;
	bool has_imm;
	enum ibv_wc_opcode received;
};

static const struct operation operations[] = {
	{IBV_WR_SEND, IBV_WC_SEND, true, false, IBV_WC_RECV},
	{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, true, IBV_WC_RECV},
	{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, false, 0},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, true, IBV_WC_RECV_RDMA_WITH_IMM},
	{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, false, 0},
};

static const struct operation *find(struct vt *t, enum ibv_wr_opcode opcode)
{
	size_t i;

	for (i = 0; i < TS_COUNT(operations); i++)
		if (operations[i].opcode == opcode)
			return &operations[i];
	VT_FAIL(t, "no transfer with opcode %d", opcode);
}

static void check_receive(struct ts_pair *pair, const struct operation *op, uint32_t size_bytes)
{
	struct vt *t = pair->a.t;
	uint32_t grh = pair->a.options.type == IBV_QPT_UD ? TS_GRH : 0;
	struct ibv_wc wc =
		ts_received_at(t, VT_HERE, pair->b.recv_cq, 7, op->received, size_bytes + grh);

	VT_EQ(t, wc.qp_num, pair->b.qp->qp_num);
	VT_EQ(t, !!(wc.wc_flags & IBV_WC_WITH_IMM), op->has_imm);
	if (op->has_imm)
		VT_EQ(t, ntohl(wc.imm_data), IMM);
}

/* Waits until B has received a later message of the QP. The packets that A sent before that message
 * have arrived or are lost. */
static void wait_for_arrival(struct ts_pair *pair)
{
	if (ts_virtual(pair->a.t)) {
		ts_settle(pair->a.t);
		return;
	}
	ts_recv(&pair->b, .wr_id = 8);
	ts_send(&pair->a, .wr_id = 4);
	ts_done(pair->a.t, pair->a.send_cq, 4, IBV_WC_SEND);
	ts_received(pair->a.t, pair->b.recv_cq, 8, 0);
}

void ts_transfer(struct ts_pair *pair, enum ibv_wr_opcode opcode, uint32_t size_bytes)
{
	struct vt *t = pair->a.t;
	const struct operation *op = find(t, opcode);
	bool read = opcode == IBV_WR_RDMA_READ;
	uint8_t *source = read ? pair->b.buffer : pair->a.buffer;
	uint8_t *target = read ? pair->a.buffer : pair->b.buffer;
	uint32_t grh = pair->a.options.type == IBV_QPT_UD ? TS_GRH : 0;
	struct ibv_wc wc;

	ts_fill(source + MARGIN, size_bytes, size_bytes + 1);
	memset(target, TS_BLANK, size_bytes + 2 * MARGIN);
	if (op->takes_receive)
		ts_recv(&pair->b, .wr_id = 7, .offset = MARGIN - grh, .length = size_bytes + grh);
	TS_POST(&pair->a, opcode, .wr_id = 3, .offset = MARGIN, .remote_offset = MARGIN,
		.length = size_bytes, .imm = IMM);
	wc = ts_done(t, pair->a.send_cq, 3, op->done);
	VT_EQ(t, wc.qp_num, pair->a.qp->qp_num);
	if (op->takes_receive)
		check_receive(pair, op, size_bytes);
	else if (pair->a.options.type != IBV_QPT_RC)
		wait_for_arrival(pair);
	ts_blank(t, target, MARGIN - grh);
	ts_verify(t, target + MARGIN, size_bytes, size_bytes + 1);
	ts_blank(t, target + MARGIN + size_bytes, MARGIN);
}
