/* SPDX-License-Identifier: MIT */
/*
 * Memory windows of type 1 and 2: binding, what a window allows, and how it ends.
 */
#include "test/conformance/sources.h"
#include "test/support/need.h"
#include "test/support/window.h"

static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

#define TYPES TS_COUNT(types)

/* --- both types --- */

static void needs_both(struct vt *t)
{
	ts_need_windows(t, IBV_MW_TYPE_1);
	ts_need_windows(t, IBV_MW_TYPE_2);
}

static void binding_gives_access(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		VT_EQ(t, mw->type, types[i]);
		VT_CHECK(t, mw->pd == pair->b.pd);
		ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000);
		ts_reaches(pair, mw->rkey, 1000);
		ts_reaches(pair, mw->rkey, 1000 + 4096 - 8);
		ts_reaches(pair, pair->b.mr->rkey, 0);
	}
}

static void unbound_gives_no_access(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		ts_refused(pair, ts_mw(&pair->b, types[i])->rkey, 0);
	}
}

static void bounds_are_exact(struct vt *t)
{
	static const size_t offsets[] = {999, 1001 + 4096 - 8, 5200, 0};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i, j;

	needs_both(t);
	for (i = 0; i < TYPES; i++)
		for (j = 0; j < TS_COUNT(offsets); j++) {
			vt_row(t, "type %d, at %zu", types[i], offsets[j]);
			pair = ts_window_pair(t);
			mw = ts_mw(&pair->b, types[i]);
			ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000);
			ts_refused(pair, mw->rkey, offsets[j]);
		}
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned int right;
} operations[] = {
	{"write", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
	{"read", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
	{"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
};

#define OPERATIONS TS_COUNT(operations)

static void one_operation(struct vt *t, enum ibv_mw_type type, size_t op, size_t granted)
{
	struct ts_pair *pair = ts_window_pair(t);
	struct ibv_mw *mw = ts_mw(&pair->b, type);
	struct ibv_wc wc = {0};

	vt_row(t, "type %d: %s with the right to %s", type, operations[op].name,
	       operations[granted].name);
	ts_bound(&pair->b, mw, .wr_id = 9, .access = operations[granted].right);
	TS_POST(&pair->a, operations[op].opcode, .wr_id = 1, .length = 8, .rkey = mw->rkey);
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_EXPECT_STATUS(t, wc.status, op == granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
}

static void rights_are_those_of_the_window(struct vt *t)
{
	size_t type, op, granted;

	needs_both(t);
	for (type = 0; type < TYPES; type++)
		for (op = 0; op < OPERATIONS; op++)
			for (granted = 0; granted < OPERATIONS; granted++)
				one_operation(t, types[type], op, granted);
}

/* The region has no remote rights; only the window gives access. */
static void region_needs_no_remote_rights(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i;

	needs_both(t);
	options.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_pair(t, &options);
		mw = ts_mw(&pair->b, types[i]);
		ts_bound(&pair->b, mw, .wr_id = 9);
		ts_reaches(pair, mw->rkey, 8);
		ts_refused(pair, pair->b.mr->rkey, 8);
	}
}

static void region_that_forbids_binding(struct vt *t)
{
	struct ts_pair *pair;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, IBV_QPT_RC);
		ts_bind_fails(&pair->b, ts_mw(&pair->b, types[i]), .wr_id = 9);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

static void writing_needs_local_write_of_the_region(struct vt *t)
{
	static const unsigned int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i, j;

	needs_both(t);
	options.mr_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
	for (i = 0; i < TYPES; i++)
		for (j = 0; j < 2; j++) {
			vt_row(t, "type %d, right 0x%x", types[i], rights[j]);
			pair = ts_pair(t, &options);
			mw = ts_mw(&pair->b, types[i]);
			ts_bound(&pair->b, mw, .wr_id = 8, .access = IBV_ACCESS_REMOTE_READ);
			if (types[i] == IBV_MW_TYPE_2) {
				VT_OK(t, ts_local_inv(&pair->b, 7, mw->rkey));
				ts_done(t, pair->b.send_cq, 7, IBV_WC_LOCAL_INV);
			}
			ts_bind_fails(&pair->b, mw, .wr_id = 9, .access = rights[j]);
		}
}

static void range_outside_the_region(struct vt *t)
{
	static const struct {
		const char *name;
		size_t offset;
		uint64_t length;
	} rows[] = {
		{"one byte too long", 0, 64 * 1024 + 1},
		{"begins inside", 64 * 1024 - 8, 9},
		{"begins behind", 64 * 1024 + 8, 8},
		{"begins before", (size_t)-8, 16},
		{"wraps", 8, UINT64_MAX},
	};
	struct ts_pair *pair;
	size_t i, j;

	needs_both(t);
	for (i = 0; i < TYPES; i++)
		for (j = 0; j < TS_COUNT(rows); j++) {
			vt_row(t, "type %d, %s", types[i], rows[j].name);
			pair = ts_window_pair(t);
			ts_bind_fails(&pair->b, ts_mw(&pair->b, types[i]), .wr_id = 9,
				      .offset = rows[j].offset, .length = rows[j].length);
		}
}

static void failed_binding_flushes_what_follows(struct vt *t)
{
	struct ts_pair *pair;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_write(&pair->b, .wr_id = 1, .length = 8);
	VT_OK(t, ts_bind(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_2),
			 &(struct ts_bind){.wr_id = 2, .unsignalled = true}));
	ts_write(&pair->b, .wr_id = 3, .length = 8);
	ts_done(t, pair->b.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_failed(t, pair->b.send_cq, 2, IBV_WC_MW_BIND_ERR);
	ts_flushed(t, pair->b.send_cq, 3);
	ts_no_more(t, pair->b.send_cq);
}

static void region_with_a_window_is_ebusy(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		mr = ts_mr(t, pair->b.pd, pair->b.buffer, 4096, TS_ACCESS_ALL | IBV_ACCESS_MW_BIND);
		mw = ts_mw(&pair->b, types[i]);
		ts_bound(&pair->b, mw, .wr_id = 9, .mr = mr);
		VT_ERRNO(t, vb_dereg_mr(mr), EBUSY);
		ts_reaches(pair, mw->rkey, 0);
	}
}

static void pd_with_a_window_is_ebusy(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_1);
	mw = VT_PTR(t, vb_alloc_mw(pd, IBV_MW_TYPE_1));
	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_dealloc_mw(mw));
}

static void dealloc_ends_access(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t rkey;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		mw = VT_PTR(t, vb_alloc_mw(pair->b.pd, types[i]));
		ts_bound(&pair->b, mw, .wr_id = 9);
		rkey = mw->rkey;
		VT_OK(t, vb_dealloc_mw(mw));
		ts_refused(pair, rkey, 0);
	}
}

static void unsignalled_binding_completes_nothing(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 9, .unsignalled = true}));
		ts_no_more(t, pair->b.send_cq);
		ts_reaches(pair, mw->rkey, 0);
	}
}

/*
 * B sends the key in a message behind the binding, so A cannot use it before the binding is done.
 */
static void send_behind_a_binding_finds_it_bound(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t rkey;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		ts_recv(&pair->a, .wr_id = 5, .offset = 30000, .length = 4);
		VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 9}));
		memcpy(pair->b.buffer + 30000, &mw->rkey, 4);
		ts_send(&pair->b, .wr_id = 10, .offset = 30000, .length = 4);
		ts_received(t, pair->a.recv_cq, 5, 4);
		memcpy(&rkey, pair->a.buffer + 30000, 4);
		ts_reaches(pair, rkey, 0);
		ts_done(t, pair->b.send_cq, 9, IBV_WC_BIND_MW);
		ts_done(t, pair->b.send_cq, 10, IBV_WC_SEND);
	}
}

static void bindings_complete_in_order_with_sends(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	unsigned int i;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	for (i = 0; i < 3; i++) {
		ts_write(&pair->b, .wr_id = 4 * i, .length = 9000);
		VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 4 * i + 1}));
		ts_read(&pair->b, .wr_id = 4 * i + 2, .offset = 20000, .length = 9000);
		VT_OK(t, ts_local_inv(&pair->b, 4 * i + 3, mw->rkey));
	}
	for (i = 0; i < 3; i++) {
		ts_done(t, pair->b.send_cq, 4 * i, IBV_WC_RDMA_WRITE);
		ts_done(t, pair->b.send_cq, 4 * i + 1, IBV_WC_BIND_MW);
		ts_done(t, pair->b.send_cq, 4 * i + 2, IBV_WC_RDMA_READ);
		ts_done(t, pair->b.send_cq, 4 * i + 3, IBV_WC_LOCAL_INV);
	}
}

/* --- type 1 --- */

static void type_1_binding_changes_the_key(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t old;
	int i;

	ts_need_windows(t, IBV_MW_TYPE_1);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	for (i = 0; i < 3; i++) {
		old = mw->rkey;
		ts_bound(&pair->b, mw, .wr_id = 9, .offset = 8192 * (size_t)i);
		VT_CHECK(t, mw->rkey != old);
		ts_reaches(pair, mw->rkey, 8192 * (size_t)i);
	}
	ts_refused(pair, old, 0);
}

static void type_1_rebinding_moves_it(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_1);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 8);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 8192);
	ts_reaches(pair, mw->rkey, 8192);
	ts_refused(pair, mw->rkey, 0);
}

static void type_1_length_0_unbinds(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_1);
	pair = ts_window_pair(t);
	mr = VT_PTR(
		t, vb_reg_mr(pair->b.pd, pair->b.buffer, 4096, TS_ACCESS_ALL | IBV_ACCESS_MW_BIND));
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 8, .mr = mr);
	ts_reaches(pair, mw->rkey, 0);
	ts_bound(&pair->b, mw, .wr_id = 9, .no_mr = true, .no_length = true, .no_access = true);
	VT_OK(t, vb_dereg_mr(mr));
	ts_refused(pair, mw->rkey, 0);
}

static void type_1_serves_every_qp_of_its_pd(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_1);
	pair = ts_window_pair(t);
	other = ts_pair_in_pd(t, &options, &pair->b);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_write(&other->a, .wr_id = 1, .length = 8, .rkey = mw->rkey,
		 .remote_address = (uintptr_t)pair->b.buffer);
	ts_done(t, other->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 8, 1);
}

static void serves_no_other_pd(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;
	size_t i;

	needs_both(t);
	for (i = 0; i < TYPES; i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_window_pair(t);
		other = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		ts_bound(&pair->b, mw, .wr_id = 9);
		ts_write(&other->a, .wr_id = 1, .length = 8, .rkey = mw->rkey,
			 .remote_address = (uintptr_t)pair->b.buffer);
		ts_failed(t, other->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	}
}

static void bind_mw_refuses_bad_input(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *one, *two;

	needs_both(t);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	one = ts_mw(&pair->b, IBV_MW_TYPE_1);
	two = ts_mw(&pair->b, IBV_MW_TYPE_2);
	VT_EXPECT_ERRNO(t, vb_bind_mw(pair->b.qp, two, &(struct ibv_mw_bind){0}), EINVAL);
	VT_EXPECT_ERRNO(t, ts_bind(&pair->b, one, &(struct ts_bind){.no_mr = true}), EINVAL);
	VT_EXPECT_ERRNO(t, ts_bind(&pair->b, one, &(struct ts_bind){.mr = other->b.mr}), EPERM);
	ts_no_more(t, pair->b.send_cq);
	ts_bound(&pair->b, one, .wr_id = 9);
}

/* --- type 2 --- */

static void type_2_binding_sets_the_low_byte_of_the_key(struct vt *t)
{
	static const uint8_t bytes[] = {0, 1, 0x7f, 0xff};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t base;
	size_t i;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	base = mw->rkey & 0xffffff00;
	for (i = 0; i < sizeof(bytes); i++) {
		vt_row(t, "low byte 0x%02x", bytes[i]);
		if ((mw->rkey & 0xff) == bytes[i])
			continue;
		ts_bound(&pair->b, mw, .wr_id = 8, .rkey = base | bytes[i]);
		ts_reaches(pair, base | bytes[i], 0);
		VT_OK(t, ts_local_inv(&pair->b, 9, base | bytes[i]));
		ts_done(t, pair->b.send_cq, 9, IBV_WC_LOCAL_INV);
	}
}

static void type_2_binding_keeps_the_upper_bits_of_the_key(struct vt *t)
{
	static const uint32_t changes[] = {0x100, 0x80000000, 0xffffff00};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t base;
	size_t i;

	ts_need_windows(t, IBV_MW_TYPE_2);
	for (i = 0; i < TS_COUNT(changes); i++) {
		vt_row(t, "upper bits changed by 0x%08x", changes[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
		base = mw->rkey & 0xffffff00;
		ts_bound(&pair->b, mw, .wr_id = 9, .rkey = (base ^ changes[i]) | 0x5a);
		ts_reaches(pair, base | 0x5a, 0);
		ts_refused(pair, (base ^ changes[i]) | 0x5a, 0);
	}
}

/* Posts a binding of B's window with an rkey, by ibv_post_send() or by ibv_wr_bind_mw(). */
static int post_binding(struct ts_end *end, struct ibv_mw *mw, uint32_t rkey, bool by_calls)
{
	const struct ibv_mw_bind_info info = {.mr = end->mr,
					      .addr = (uintptr_t)end->buffer,
					      .length = 4096,
					      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_send_wr wr = {.wr_id = 9,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED,
				 .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = info}};
	struct ibv_send_wr *bad;
	struct ibv_qp_ex *ex;

	if (!by_calls)
		return ibv_post_send(end->qp, &wr, &bad);
	ex = VT_PTR(end->t, vb_qp_to_qp_ex(end->qp));
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	return ibv_wr_complete(ex);
}

/* An RC pair whose regions allow binding, and whose B posts by calls. */
static struct ts_pair *pair_with_calls(struct vt *t)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW,
	};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.mr_access |= IBV_ACCESS_MW_BIND;
	pair = ts_pair_reset(t, &options);
	ts_remake_qp(&pair->b, &init);
	ts_connect_both(pair);
	return pair;
}

/* The program reads the key after the post: the completion comes later. */
static void posted_binding_writes_the_key_of_the_window(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t base;
	int by_calls;

	ts_need_windows(t, IBV_MW_TYPE_2);
	for (by_calls = 0; by_calls < 2; by_calls++) {
		vt_row(t, by_calls ? "ibv_wr_bind_mw" : "ibv_post_send");
		pair = by_calls ? pair_with_calls(t) : ts_window_pair(t);
		mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
		base = mw->rkey & 0xffffff00;
		VT_OK(t, post_binding(&pair->b, mw, base ^ 0x12345a5a, by_calls));
		VT_EQ(t, mw->rkey, base | 0x5a);
		ts_done(t, pair->b.send_cq, 9, IBV_WC_BIND_MW);
		VT_EQ(t, mw->rkey, base | 0x5a);
		ts_reaches(pair, mw->rkey, 0);
	}
}

/* Fills the send queue: on the virtual clock, nothing is sent before the program waits. */
static void fill_send_queue(struct ts_end *end)
{
	const struct ts_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .length = 8};
	int error;

	while (!(error = ts_post(end, &wr)))
		;
	VT_ERRNO(end->t, error, ENOMEM);
}

static void refused_binding_leaves_the_key(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t before;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	before = mw->rkey;
	fill_send_queue(&pair->b);
	VT_ERRNO(t, post_binding(&pair->b, mw, before ^ 0xff, false), ENOMEM);
	VT_EQ(t, mw->rkey, before);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	/* Some devices ignore a post in RESET and return 0. */
	post_binding(&pair->b, mw, before ^ 0xff, false);
	VT_EQ(t, mw->rkey, before);
}

static void type_2_is_invalidated_before_it_is_rebound(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 7);
	VT_OK(t, ts_local_inv(&pair->b, 8, mw->rkey));
	ts_done(t, pair->b.send_cq, 8, IBV_WC_LOCAL_INV);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 8192);
	ts_reaches(pair, mw->rkey, 8192);
	ts_bind_fails(&pair->b, mw, .wr_id = 10);
}

static void type_2_is_not_unbound_by_length_0(struct vt *t)
{
	struct ts_pair *pair;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	ts_bind_fails(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_2), .wr_id = 9, .no_length = true);
}

static void local_invalidate_ends_access(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 8);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_local_inv(&pair->b, 9, mw->rkey));
	ts_done(t, pair->b.send_cq, 9, IBV_WC_LOCAL_INV);
	ts_refused(pair, mw->rkey, 0);
}

static void bad_local_invalidate_is_an_error(struct vt *t)
{
	static const char *const names[] = {"unknown key", "key of a region", "unbound window",
					    "window of type 1"};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t rkey;
	struct ibv_wc wc;
	size_t i;

	needs_both(t);
	for (i = 0; i < 4; i++) {
		vt_row(t, "%s", names[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, i == 3 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		if (i == 3)
			ts_bound(&pair->b, mw, .wr_id = 8);
		rkey = i == 0 ? ts_wrong_key(mw->rkey) : i == 1 ? pair->b.mr->rkey : mw->rkey;
		VT_OK(t, ts_local_inv(&pair->b, 9, rkey));
		VT_EQ(t, ts_wait(t, pair->b.send_cq, 1, &wc), 1);
		VT_EXPECT_EQ(t, wc.wr_id, 9);
		VT_EXPECT(t, wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

static void type_2b_serves_its_qp_only(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_need_caps(t, IBV_DEVICE_MEM_WINDOW_TYPE_2B, "memory windows of type 2B");
	pair = ts_window_pair(t);
	other = ts_pair_in_pd(t, &options, &pair->b);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_reaches(pair, mw->rkey, 0);
	ts_write(&other->a, .wr_id = 1, .length = 8, .rkey = mw->rkey,
		 .remote_address = (uintptr_t)pair->b.buffer);
	ts_failed(t, other->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_reaches(pair, mw->rkey, 0);
}

static void type_2_of_another_pd_is_not_bound(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&other->b, IBV_MW_TYPE_2);
	ts_bind_fails(&pair->b, mw, .wr_id = 9);
}

static void type_2_with_a_region_of_another_pd(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bind_fails(&pair->b, mw, .wr_id = 9, .mr = other->b.mr,
		      .address = (uintptr_t)other->b.buffer);
}

static void type_2_zero_based(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000,
		 .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	ts_write(&pair->a, .wr_id = 1, .length = 16, .rkey = mw->rkey, .remote_address = 4);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer + 1004, 16, 1);
	ts_blank(t, pair->b.buffer + 1000, 4);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .rkey = mw->rkey, .remote_address = 4089);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

/* A binding without ZERO_BASED gives the window the addresses of its region again. */
static void type_2_is_zero_based_by_each_binding(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 7, .offset = 1000,
		 .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	VT_OK(t, ts_local_inv(&pair->b, 8, mw->rkey));
	ts_done(t, pair->b.send_cq, 8, IBV_WC_LOCAL_INV);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000);
	ts_reaches(pair, mw->rkey, 1000);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .rkey = mw->rkey, .remote_address = 4);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void type_1_zero_based_is_refused(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t before;

	ts_need_windows(t, IBV_MW_TYPE_1);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 1);
	before = mw->rkey;
	VT_ERRNO(t,
		 ts_bind(&pair->b, mw,
			 &(struct ts_bind){.wr_id = 2,
					   .access = IBV_ACCESS_REMOTE_WRITE |
						     IBV_ACCESS_ZERO_BASED}),
		 EINVAL);
	VT_EQ(t, mw->rkey, before);
	ts_no_more(t, pair->b.send_cq);
	ts_reaches(pair, mw->rkey, 0);
}

/* --- remote invalidation --- */

static void send_with_invalidate_ends_access(struct vt *t)
{
	static const uint32_t sizes[] = {0, 100, 10000};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	size_t i;

	ts_need_windows(t, IBV_MW_TYPE_2);
	for (i = 0; i < TS_COUNT(sizes); i++) {
		vt_row(t, "%u bytes", sizes[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
		ts_bound(&pair->b, mw, .wr_id = 9);
		ts_reaches(pair, mw->rkey, 0);
		ts_recv(&pair->b, .wr_id = 5, .offset = 8192, .length = 10000);
		ts_send_inv(&pair->a, .wr_id = 1, .offset = 8192, .length = sizes[i],
			    .invalidate_rkey = mw->rkey);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		wc = ts_received(t, pair->b.recv_cq, 5, sizes[i]);
		VT_CHECK(t, wc.wc_flags & IBV_WC_WITH_INV);
		VT_CHECK(t, !(wc.wc_flags & IBV_WC_WITH_IMM));
		VT_EQ(t, wc.invalidated_rkey, mw->rkey);
		ts_refused(pair, mw->rkey, 0);
	}
}

static void send_with_invalidate_lets_it_be_bound_again(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 8);
	ts_recv(&pair->b, .wr_id = 5, .offset = 8192, .length = 100);
	ts_send_inv(&pair->a, .wr_id = 1, .offset = 8192, .length = 100,
		    .invalidate_rkey = mw->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 4096);
	ts_reaches(pair, mw->rkey, 4096);
}

static void bad_remote_invalidate_is_an_error(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_need_windows(t, IBV_MW_TYPE_2);
	pair = ts_window_pair(t);
	ts_recv(&pair->b, .wr_id = 5, .offset = 8192, .length = 100);
	ts_send_inv(&pair->a, .wr_id = 1, .offset = 8192, .length = 100,
		    .invalidate_rkey = ts_wrong_key(pair->b.mr->rkey));
	VT_EQ(t, ts_wait(t, pair->b.recv_cq, 1, &wc), 1);
	VT_EQ(t, wc.wr_id, 5);
	VT_CHECK(t, wc.status != IBV_WC_SUCCESS);
	ts_state(&pair->b, IBV_QPS_ERR);
	/* The send ends, with success on SoftRoCE: errors.invalidation_of_a_key_of_no_window. */
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_EQ(t, wc.wr_id, 1);
}

#define BIND  SRC_RXE "rxe_mw.c, rxe_check_bind_mw"
#define ERROR BIND "; MW_BIND_ERR: " SRC_RXE "rxe_req.c, rxe_do_local_ops"

static const struct vt_test tests[] = {
	{"binding_gives_access", "ibv_bind_mw(3), ibv_post_send(3): bind_mw", 0,
	 binding_gives_access},
	{"unbound_gives_no_access", "ibv_alloc_mw(3): created not bound", 0,
	 unbound_gives_no_access},
	{"bounds_are_exact", "ibv_bind_mw(3): addr, length", 0, bounds_are_exact},
	{"rights_are_those_of_the_window", "ibv_bind_mw(3): mw_access_flags", VT_NEEDS_ATOMICS,
	 rights_are_those_of_the_window},
	{"region_needs_no_remote_rights",
	 "ibv_bind_mw(3): requires local write, and says nothing more", 0,
	 region_needs_no_remote_rights},
	{"region_that_forbids_binding", "ibv_reg_mr(3): IBV_ACCESS_MW_BIND; " ERROR, 0,
	 region_that_forbids_binding},
	{"writing_needs_local_write_of_the_region",
	 "ibv_bind_mw(3): requires local write access to the MR; " ERROR, 0,
	 writing_needs_local_write_of_the_region},
	{"range_outside_the_region", ERROR, 0, range_outside_the_region},
	{"failed_binding_flushes_what_follows",
	 SRC_RXE "rxe_req.c, rxe_do_local_ops; " SRC_RXE "rxe_comp.c, rxe_drain_resp_pkts", 0,
	 failed_binding_flushes_what_follows},
	{"region_with_a_window_is_ebusy", "ibv_dereg_mr(3), Notes; EBUSY: unsourced", 0,
	 region_with_a_window_is_ebusy},
	{"pd_with_a_window_is_ebusy", "ibv_alloc_pd(3), Notes; EBUSY: " SRC_FREE_PD, 0,
	 pd_with_a_window_is_ebusy},
	{"dealloc_ends_access", "ibv_dealloc_mw(3): unbinds", 0, dealloc_ends_access},
	{"unsignalled_binding_completes_nothing", "ibv_bind_mw(3): IBV_SEND_SIGNALED", 0,
	 unsignalled_binding_completes_nothing},
	{"send_behind_a_binding_finds_it_bound",
	 "ibv_bind_mw(3), Notes: a send after a bind is ordered", 0,
	 send_behind_a_binding_finds_it_bound},
	{"bindings_complete_in_order_with_sends",
	 SRC_RXE "rxe_comp.c, get_wqe: the head of the queue", 0,
	 bindings_complete_in_order_with_sends},
	{"type_1_binding_changes_the_key", "ibv_bind_mw(3), ibv_alloc_mw(3)", 0,
	 type_1_binding_changes_the_key},
	{"type_1_rebinding_moves_it", "ibv_bind_mw(3)", 0, type_1_rebinding_moves_it},
	{"type_1_length_0_unbinds", "ibv_alloc_mw(3): ibv_bind_mw with zero length", 0,
	 type_1_length_0_unbinds},
	{"type_1_serves_every_qp_of_its_pd",
	 "ibv_alloc_mw(3): associated with the protection domain", 0,
	 type_1_serves_every_qp_of_its_pd},
	{"serves_no_other_pd", "ibv_alloc_mw(3): associated with the protection domain", 0,
	 serves_no_other_pd},
	{"bind_mw_refuses_bad_input",
	 "ibv_bind_mw(3), Notes: type 2; the errnos: " SRC_RDMA_CORE
	 "providers/mlx5/qp.c, mlx5_bind_mw",
	 0, bind_mw_refuses_bad_input},
	{"type_2_binding_sets_the_low_byte_of_the_key",
	 "ibv_inc_rkey(3); ibv_post_send(3): desired new rkey", 0,
	 type_2_binding_sets_the_low_byte_of_the_key},
	{"type_2_binding_keeps_the_upper_bits_of_the_key",
	 SRC_RDMA_CORE "providers/irdma/uverbs.c, calc_type2_mw_stag, and providers/mlx5/qp.c: "
		       "rkey & 0xFF; " SRC_RXE "rxe_mw.c, rxe_do_bind_mw",
	 0, type_2_binding_keeps_the_upper_bits_of_the_key},
	{"posted_binding_writes_the_key_of_the_window",
	 "ibv_alloc_mw(3): changed during bind operations; at the post: " SRC_RDMA_CORE
	 "providers/irdma/uverbs.c, irdma_upost_send",
	 0, posted_binding_writes_the_key_of_the_window},
	{"refused_binding_leaves_the_key",
	 SRC_RDMA_CORE "providers/irdma/uverbs.c, irdma_upost_send: err, break",
	 VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, refused_binding_leaves_the_key},
	{"type_2_is_invalidated_before_it_is_rebound", ERROR, 0,
	 type_2_is_invalidated_before_it_is_rebound},
	{"type_2_is_not_unbound_by_length_0", ERROR, 0, type_2_is_not_unbound_by_length_0},
	{"local_invalidate_ends_access", "ibv_alloc_mw(3): until invalidated", 0,
	 local_invalidate_ends_access},
	{"bad_local_invalidate_is_an_error",
	 SRC_RXE "rxe_mw.c, rxe_invalidate_mw; " SRC_RXE
		 "rxe_mr.c, rxe_invalidate_mr; an unbound window: unsourced",
	 0, bad_local_invalidate_is_an_error},
	{"type_2b_serves_its_qp_only", SRC_RXE "rxe_mw.c, rxe_lookup_mw: mw->qp", 0,
	 type_2b_serves_its_qp_only},
	{"type_2_of_another_pd_is_not_bound", ERROR, 0, type_2_of_another_pd_is_not_bound},
	{"type_2_with_a_region_of_another_pd", "unsourced", 0, type_2_with_a_region_of_another_pd},
	{"type_1_zero_based_is_refused",
	 SRC_RXE "rxe_mw.c, rxe_check_bind_mw: o10-36.2.2; EINVAL at the post: " SRC_RDMA_CORE
		 "providers/mlx5/qp.c, mlx5_bind_mw, and providers/rxe/rxe.c, rxe_bind_mw",
	 0, type_1_zero_based_is_refused},
	{"type_2_zero_based", "ibv_bind_mw(3): IBV_ACCESS_ZERO_BASED", 0, type_2_zero_based},
	{"type_2_is_zero_based_by_each_binding", "ibv_bind_mw(3): IBV_ACCESS_ZERO_BASED", 0,
	 type_2_is_zero_based_by_each_binding},
	{"send_with_invalidate_ends_access",
	 "ibv_alloc_mw(3): IBV_WR_SEND_WITH_INV; "
	 "ibv_poll_cq(3): invalidated_rkey",
	 0, send_with_invalidate_ends_access},
	{"send_with_invalidate_lets_it_be_bound_again",
	 SRC_RXE "rxe_mw.c, rxe_do_invalidate_mw and rxe_check_bind_mw: RXE_MW_STATE_FREE", 0,
	 send_with_invalidate_lets_it_be_bound_again},
	{"bad_remote_invalidate_is_an_error",
	 SRC_RXE "rxe_resp.c, rxe_responder: ERR_INVALIDATE_RKEY", 0,
	 bad_remote_invalidate_is_an_error},
	{NULL},
};

const struct vt_suite vt_suite_window = {"window", "memory windows", tests};
