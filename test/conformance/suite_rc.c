/* SPDX-License-Identifier: MIT */
/*
 * Reliable connection: every operation, every path MTU, and sizes around multiples of the path MTU.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#define MIB (1024 * 1024)

static const enum ibv_wr_opcode opcodes[] = {
	IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,
};

#define OPCODES TS_COUNT(opcodes)

static void each_size_at(struct vt *t, enum ibv_mtu mtu, enum ibv_wr_opcode opcode)
{
	uint32_t bytes = ts_mtu_bytes(mtu);
	const uint32_t sizes[] = {0, 1, bytes - 1, bytes, bytes + 1, 2 * bytes, MIB};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	size_t i;

	options.mtu = mtu;
	options.buffer_bytes = MIB + 4096;
	pair = ts_pair(t, &options);
	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "opcode %d, path MTU %u, %u bytes", opcode, bytes, sizes[i]);
		ts_transfer(pair, opcode, sizes[i]);
	}
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);
}

static void each_size(struct vt *t, enum ibv_wr_opcode opcode)
{
	enum ibv_mtu mtu;

	for (mtu = IBV_MTU_256; mtu <= t->a.port_attr.active_mtu; mtu++)
		each_size_at(t, mtu, opcode);
}

static void send_of_each_size(struct vt *t)
{
	each_size(t, IBV_WR_SEND);
}

static void send_imm_of_each_size(struct vt *t)
{
	each_size(t, IBV_WR_SEND_WITH_IMM);
}

static void write_of_each_size(struct vt *t)
{
	each_size(t, IBV_WR_RDMA_WRITE);
}

static void write_imm_of_each_size(struct vt *t)
{
	each_size(t, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void read_of_each_size(struct vt *t)
{
	each_size(t, IBV_WR_RDMA_READ);
}

static void set64(void *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static uint64_t get64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void compare_and_swap(struct vt *t)
{
	static const struct {
		const char *name;
		uint64_t before, compare, after;
	} rows[] = {
		{"equal", 0x1122334455667788, 0x1122334455667788, 0x99aabbccddeeff00},
		{"one bit off", 0x1122334455667788, 0x1122334455667789, 0x1122334455667788},
		{"high half off", 0x1122334455667788, 0x55667788, 0x1122334455667788},
		{"zero", 0, 0, 0x99aabbccddeeff00},
	};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		set64(pair->b.buffer + 8, rows[i].before);
		ts_swap(&pair->a, .wr_id = 1, .remote_offset = 8, .compare_add = rows[i].compare,
			.swap = 0x99aabbccddeeff00);
		wc = ts_done(t, pair->a.send_cq, 1, IBV_WC_COMP_SWAP);
		VT_EXPECT_EQ(t, wc.byte_len, 8);
		VT_EXPECT_EQ(t, get64(pair->a.buffer), rows[i].before);
		VT_EXPECT_EQ(t, get64(pair->b.buffer + 8), rows[i].after);
		ts_blank(t, pair->b.buffer, 8);
		ts_blank(t, pair->b.buffer + 16, 8);
	}
}

static void fetch_and_add(struct vt *t)
{
	static const struct {
		const char *name;
		uint64_t before, add, after;
	} rows[] = {
		{"one", 41, 1, 42},
		{"carry into the high half", 0xffffffff, 1, 0x100000000},
		{"wraps", UINT64_MAX, 2, 1},
		{"nothing", 7, 0, 7},
	};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		set64(pair->b.buffer, rows[i].before);
		ts_fetch_add(&pair->a, .wr_id = 1, .compare_add = rows[i].add);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
		VT_EXPECT_EQ(t, get64(pair->a.buffer), rows[i].before);
		VT_EXPECT_EQ(t, get64(pair->b.buffer), rows[i].after);
	}
}

static void many_atomics_add_up(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	set64(pair->b.buffer, 0);
	for (i = 0; i < 12; i++)
		ts_fetch_add(&pair->a, .wr_id = i, .offset = 8 * i, .compare_add = 3);
	for (i = 0; i < 12; i++) {
		ts_done(t, pair->a.send_cq, i, IBV_WC_FETCH_ADD);
		VT_EQ(t, get64(pair->a.buffer + 8 * i), 3 * i);
	}
	VT_EQ(t, get64(pair->b.buffer), 36);
}

/* Splits `length` bytes from `base` into uneven SGEs, one of them empty. */
static void uneven(struct ts_end *end, size_t offset, uint32_t length, struct ibv_sge sges[4])
{
	const uint32_t lengths[4] = {1, 0, length / 3, length - 1 - length / 3};
	int i;

	for (i = 0; i < 4; i++) {
		sges[i] = (struct ibv_sge){(uintptr_t)end->buffer + offset, lengths[i],
					   end->mr->lkey};
		offset += lengths[i] + 10; /* not adjacent */
	}
}

/* scatter() copies bytes to the pieces that uneven() made, gather() copies them back. */
static void scatter(struct ibv_sge sges[4], const uint8_t *bytes)
{
	int i;

	for (i = 0; i < 4; i++) {
		memcpy((void *)(uintptr_t)sges[i].addr, bytes, sges[i].length);
		bytes += sges[i].length;
	}
}

static void gather(struct ibv_sge sges[4], uint8_t *bytes)
{
	int i;

	for (i = 0; i < 4; i++) {
		memcpy(bytes, (void *)(uintptr_t)sges[i].addr, sges[i].length);
		bytes += sges[i].length;
	}
}

static void uneven_lists_on_both_sides(struct vt *t)
{
	static const uint32_t lengths[] = {2, 100, 4095, 4097, 20000};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_sge from[4], to[4];
	uint8_t bytes[20000];
	size_t i;

	for (i = 0; i < TS_COUNT(lengths); i++) {
		vt_row(t, "%u bytes", lengths[i]);
		uneven(&pair->a, 3, lengths[i], from);
		uneven(&pair->b, 77, lengths[i], to);
		to[0].length = lengths[i] - to[2].length;
		to[3].length = 0;
		to[2].addr += to[0].length;
		ts_fill(bytes, lengths[i], lengths[i]);
		scatter(from, bytes);
		ts_recv(&pair->b, .wr_id = 5, .sge = to, .num_sge = 4);
		ts_send(&pair->a, .wr_id = 1, .sge = from, .num_sge = 4);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, 5, lengths[i]);
		memset(bytes, 0, sizeof(bytes));
		gather(to, bytes);
		ts_verify(t, bytes, lengths[i], lengths[i]);
	}
}

static void read_into_an_uneven_list(struct vt *t)
{
	static const uint32_t lengths[] = {2, 100, 4097, 20000};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_sge to[4];
	uint8_t bytes[20000];
	size_t i;

	for (i = 0; i < TS_COUNT(lengths); i++) {
		vt_row(t, "%u bytes", lengths[i]);
		uneven(&pair->a, 3, lengths[i], to);
		ts_fill(pair->b.buffer, lengths[i], 9);
		ts_read(&pair->a, .wr_id = 1, .sge = to, .num_sge = 4);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
		gather(to, bytes);
		ts_verify(t, bytes, lengths[i], 9);
	}
}

static void inline_list_of_pieces(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_sge from[4];
	uint8_t bytes[60];

	uneven(&pair->a, 3, 60, from);
	ts_fill(bytes, 60, 4);
	scatter(from, bytes);
	ts_write(&pair->a, .wr_id = 1, .sge = from, .num_sge = 4, .flags = IBV_SEND_INLINE);
	memset(pair->a.buffer, 0, 200);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 60, 4);
	ts_blank(t, pair->b.buffer + 60, 64);
}

static void receive_may_be_longer(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 1000);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_verify(t, pair->b.buffer, 100, 1);
	ts_blank(t, pair->b.buffer + 100, 900);
}

static void write_imm_leaves_the_receive_buffer_alone(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .offset = 1000, .length = 10);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 100, .imm = 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_written(t, pair->b.recv_cq, 5, 100);
	ts_verify(t, pair->b.buffer, 100, 1);
	ts_blank(t, pair->b.buffer + 100, 1000);
}

static void unsignalled_completes_nothing(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 100, .unsignalled = true);
	ts_read(&pair->a, .wr_id = 2, .offset = 200, .length = 100, .unsignalled = true);
	ts_write(&pair->a, .wr_id = 3, .length = 0);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
	ts_verify(t, pair->b.buffer, 100, 1);
	ts_verify(t, pair->a.buffer + 200, 100, 1);
}

/* One queue with work of every kind, long and short. */
static void completions_come_in_posting_order(struct vt *t)
{
	static const enum ibv_wc_opcode done[] = {IBV_WC_SEND, IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE,
						  IBV_WC_FETCH_ADD};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	set64(pair->b.buffer + 32768, 0);
	for (i = 0; i < 12; i++) {
		if (i % 4 == 0) {
			ts_recv(&pair->b, .wr_id = 50 + i, .offset = 40000, .length = 5000);
			ts_send(&pair->a, .wr_id = i, .length = 5000);
		}
		if (i % 4 == 1)
			ts_read(&pair->a, .wr_id = i, .offset = 20000, .length = 9000);
		if (i % 4 == 2)
			ts_write(&pair->a, .wr_id = i, .length = 1);
		if (i % 4 == 3)
			ts_fetch_add(&pair->a, .wr_id = i, .offset = 32768, .remote_offset = 32768,
				     .compare_add = 1);
	}
	for (i = 0; i < 12; i++)
		ts_done(t, pair->a.send_cq, i, done[i % 4]);
	for (i = 0; i < 12; i += 4)
		ts_received(t, pair->b.recv_cq, 50 + i, 5000);
}

/* A send behind a read must not carry what the buffer held before the read. */
static void fence_waits_for_reads(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	int i;

	ts_fill(pair->b.buffer, 10000, 6);
	for (i = 0; i < 4; i++) {
		memset(pair->a.buffer, 0, 10000);
		ts_read(&pair->a, .wr_id = 1, .length = 10000);
		ts_write(&pair->a, .wr_id = 2, .length = 10000, .remote_offset = 20000,
			 .flags = IBV_SEND_FENCE);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
		ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
		ts_verify(t, pair->b.buffer + 20000, 10000, 6);
	}
}

static void fence_waits_for_atomics(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	set64(pair->b.buffer, 0x1234);
	ts_fetch_add(&pair->a, .wr_id = 1, .compare_add = 1);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .remote_offset = 64, .flags = IBV_SEND_FENCE);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_EQ(t, get64(pair->b.buffer + 64), 0x1234);
}

static void psn_wraps(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	size_t i;

	options.mtu = IBV_MTU_256;
	options.a_psn = 0xfffffe;
	options.b_psn = 0xfffffd;
	for (i = 0; i < OPCODES; i++) {
		vt_row(t, "opcode %d", opcodes[i]);
		pair = ts_pair(t, &options);
		ts_transfer(pair, opcodes[i], 2000);
		ts_transfer(pair, opcodes[i], 100);
	}
}

static void atomics_across_the_wrap(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	options.a_psn = 0xfffffe;
	pair = ts_pair(t, &options);
	set64(pair->b.buffer, 0);
	for (i = 0; i < 5; i++)
		ts_fetch_add(&pair->a, .wr_id = i, .compare_add = 1);
	for (i = 0; i < 5; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_FETCH_ADD);
	VT_EQ(t, get64(pair->b.buffer), 5);
}

static void qp_connected_to_itself(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_end(t, &t->a, &options);

	ts_connect(end);
	ts_recv(end, .wr_id = 5, .offset = 10000, .length = 5000);
	ts_send(end, .wr_id = 1, .length = 5000);
	ts_done(t, end->send_cq, 1, IBV_WC_SEND);
	ts_received(t, end->recv_cq, 5, 5000);
	ts_verify(t, end->buffer + 10000, 5000, 1);
	ts_read(end, .wr_id = 2, .offset = 20000, .length = 5000);
	ts_write(end, .wr_id = 3, .length = 5000, .remote_offset = 30000);
	ts_done(t, end->send_cq, 2, IBV_WC_RDMA_READ);
	ts_done(t, end->send_cq, 3, IBV_WC_RDMA_WRITE);
	ts_verify(t, end->buffer + 20000, 5000, 1);
	ts_verify(t, end->buffer + 30000, 5000, 1);
}

#define MANY 64

static void many_pairs_at_once(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pairs[MANY];
	unsigned int i;

	options.buffer_bytes = 8192;
	for (i = 0; i < MANY; i++) {
		pairs[i] = ts_pair(t, &options);
		ts_fill(pairs[i]->a.buffer, 8192, 100 + i);
	}
	for (i = 0; i < MANY; i++) {
		ts_recv(&pairs[i]->b, .wr_id = i, .length = 8192);
		ts_send(&pairs[i]->a, .wr_id = 1000 + i, .length = 8192);
	}
	for (i = 0; i < MANY; i++) {
		vt_row(t, "pair %u", i);
		ts_done(t, pairs[i]->a.send_cq, 1000 + i, IBV_WC_SEND);
		ts_received(t, pairs[i]->b.recv_cq, i, 8192);
		ts_verify(t, pairs[i]->b.buffer, 8192, 100 + i);
	}
}

static void both_directions_at_once(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	ts_fill(pair->b.buffer, 8000, 2);
	for (i = 0; i < 8; i++) {
		ts_recv(&pair->a, .wr_id = 100 + i, .offset = 20000, .length = 8000);
		ts_recv(&pair->b, .wr_id = 100 + i, .offset = 20000, .length = 8000);
	}
	for (i = 0; i < 8; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 8000);
		ts_send(&pair->b, .wr_id = i, .length = 8000);
	}
	for (i = 0; i < 8; i++) {
		ts_done(t, pair->a.send_cq, i, IBV_WC_SEND);
		ts_done(t, pair->b.send_cq, i, IBV_WC_SEND);
		ts_received(t, pair->a.recv_cq, 100 + i, 8000);
		ts_received(t, pair->b.recv_cq, 100 + i, 8000);
	}
	ts_verify(t, pair->b.buffer + 20000, 8000, 1);
	ts_verify(t, pair->a.buffer + 20000, 8000, 2);
}

static void reads_beyond_max_rd_atomic_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	options.max_rd_atomic = 1;
	options.max_dest_rd_atomic = 1;
	pair = ts_pair(t, &options);
	ts_fill(pair->b.buffer, 12000, 5);
	for (i = 0; i < 12; i++)
		ts_read(&pair->a, .wr_id = i, .offset = 1000 * i, .remote_offset = 1000 * i,
			.length = 1000);
	for (i = 0; i < 12; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_READ);
	ts_verify(t, pair->a.buffer, 12000, 5);
}

/* Returns the largest number of READs that were outstanding at once. */
static unsigned int most_outstanding(const struct ts_log *log)
{
	unsigned int i, now = 0, most = 0;

	for (i = 0; i < log->count; i++) {
		if (log->frames[i].opcode == TS_READ_REQUEST)
			now++;
		if (log->frames[i].opcode == TS_READ_LAST || log->frames[i].opcode == TS_READ_ONLY)
			now--;
		if (now > most)
			most = now;
	}
	return most;
}

static void max_rd_atomic_bounds_outstanding_reads(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ts_log *log = ts_watch(t);
	const int device_reads = t->b.device_attr.max_qp_rd_atom;
	unsigned int i;

	options.max_rd_atomic = 2;
	options.max_dest_rd_atomic = (uint8_t)(device_reads < 8 ? device_reads : 8);
	pair = ts_pair(t, &options);
	for (i = 0; i < 8; i++)
		ts_read(&pair->a, .wr_id = i, .length = 10000);
	for (i = 0; i < 8; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_READ);
	VT_EQ(t, ts_count(log, TS_READ_REQUEST, pair->b.qp->qp_num), 8);
	VT_EQ(t, most_outstanding(log), 2);
}

static void receives_have_no_grh_flag(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_wc wc;

	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	wc = ts_received(t, pair->b.recv_cq, 5, 10);
	VT_EQ(t, wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV), 0);
}

static void read_reports_its_length(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_read(&pair->a, .wr_id = 1, .length = 5000);
	VT_EQ(t, ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ).byte_len, 5000);
}

static const struct vt_test tests[] = {
	{"send_of_each_size", "ibv_post_send(3), ibv_poll_cq(3)", 0, send_of_each_size},
	{"send_imm_of_each_size", "ibv_post_send(3), ibv_poll_cq(3)", 0, send_imm_of_each_size},
	{"write_of_each_size", "ibv_post_send(3)", 0, write_of_each_size},
	{"write_imm_of_each_size", "ibv_post_send(3), ibv_poll_cq(3)", 0, write_imm_of_each_size},
	{"read_of_each_size", "ibv_post_send(3)", 0, read_of_each_size},
	{"compare_and_swap", "ibv_post_send(3): compare_add, swap", VT_NEEDS_ATOMICS,
	 compare_and_swap},
	{"fetch_and_add", "ibv_post_send(3): compare_add", VT_NEEDS_ATOMICS, fetch_and_add},
	{"many_atomics_add_up", "ibv_post_send(3)", VT_NEEDS_ATOMICS, many_atomics_add_up},
	{"uneven_lists_on_both_sides", "ibv_post_send(3), ibv_post_recv(3): sg_list", 0,
	 uneven_lists_on_both_sides},
	{"read_into_an_uneven_list", "ibv_post_send(3): sg_list", 0, read_into_an_uneven_list},
	{"inline_list_of_pieces", "ibv_post_send(3): IBV_SEND_INLINE", 0, inline_list_of_pieces},
	{"receive_may_be_longer", "ibv_poll_cq(3): byte_len", 0, receive_may_be_longer},
	{"write_imm_leaves_the_receive_buffer_alone", SRC_RVT "qp.c, rvt_get_rwqe: wr_id_only", 0,
	 write_imm_leaves_the_receive_buffer_alone},
	{"unsignalled_completes_nothing", "ibv_post_send(3): IBV_SEND_SIGNALED", 0,
	 unsignalled_completes_nothing},
	{"completions_come_in_posting_order", SRC_RXE "rxe_comp.c, get_wqe: the head of the queue",
	 VT_NEEDS_ATOMICS, completions_come_in_posting_order},
	{"fence_waits_for_reads",
	 "ibv_post_send(3): IBV_SEND_FENCE; " SRC_QIB "qib_rc.c, qib_make_rc_req: RVT_S_WAIT_FENCE",
	 0, fence_waits_for_reads},
	{"fence_waits_for_atomics",
	 "ibv_post_send(3): IBV_SEND_FENCE; " SRC_QIB "qib_rc.c, qib_make_rc_req: RVT_S_WAIT_FENCE",
	 VT_NEEDS_ATOMICS, fence_waits_for_atomics},
	{"psn_wraps", SRC_PSN, 0, psn_wraps},
	{"atomics_across_the_wrap", SRC_PSN, VT_NEEDS_ATOMICS, atomics_across_the_wrap},
	{"qp_connected_to_itself", "unsourced", 0, qp_connected_to_itself},
	{"many_pairs_at_once", "unsourced", 0, many_pairs_at_once},
	{"both_directions_at_once", "unsourced", 0, both_directions_at_once},
	{"reads_beyond_max_rd_atomic_wait",
	 "ibv_query_qp(3): max_rd_atomic; " SRC_QIB "qib_rc.c, qib_make_rc_req: RVT_S_WAIT_RDMAR",
	 0, reads_beyond_max_rd_atomic_wait},
	{"max_rd_atomic_bounds_outstanding_reads",
	 "ibv_query_qp(3): max_rd_atomic; " SRC_QIB "qib_rc.c, qib_make_rc_req: RVT_S_WAIT_RDMAR",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, max_rd_atomic_bounds_outstanding_reads},
	{"receives_have_no_grh_flag", "ibv_poll_cq(3): IBV_WC_GRH is valid only for UD QPs", 0,
	 receives_have_no_grh_flag},
	{"read_reports_its_length", "ibv_poll_cq(3): byte_len", 0, read_reports_its_length},
	{NULL},
};

const struct vt_suite vt_suite_rc = {"rc", "reliable connection", tests};
