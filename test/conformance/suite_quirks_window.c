/* SPDX-License-Identifier: MIT */
/* Quirks of memory windows and invalidation. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"
#include "test/support/window.h"

static void window_bounds_unchecked(struct vt *t)
{
	static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i;

	ts_quirks(t, "window_bounds_unchecked", NULL);
	for (i = 0; i < TS_COUNT(types); i++) {
		vt_row(t, "type %d", types[i]);
		ts_need_windows(t, types[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000);
		ts_reaches(pair, mw->rkey, 0);
		ts_reaches(pair, mw->rkey, 60000);
		/* The bounds of the region are checked. */
		ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = mw->rkey,
			 .remote_offset = pair->b.options.buffer_bytes - 4);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	}
}

/* Address 0 is the first byte that was bound, and the rest of the region lies around it. */
static void window_without_bounds_keeps_its_base(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_quirks(t, "window_bounds_unchecked", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000,
		 .access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	ts_write(&pair->a, .wr_id = 1, .length = 16, .rkey = mw->rkey, .remote_address = 4);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer + 1004, 16, 1);
	ts_blank(t, pair->b.buffer, 1004);
	ts_write(&pair->a, .wr_id = 2, .length = 16, .rkey = mw->rkey,
		 .remote_address = (uint64_t)-1000);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 16, 1);
	ts_write(&pair->a, .wr_id = 3, .length = 8, .rkey = mw->rkey,
		 .remote_address = pair->b.options.buffer_bytes - 1000 - 4);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
}

static void invalidation_told_as_checksum(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	ts_quirks(t, "invalidation_told_as_checksum", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_recv(&pair->b, .wr_id = 5, .offset = 8192, .length = 8);
	ts_send_inv(&pair->a, .wr_id = 1, .length = 8, .invalidate_rkey = mw->rkey);
	wc = ts_received(t, pair->b.recv_cq, 5, 8);
	VT_EQ(t, wc.wc_flags & (IBV_WC_IP_CSUM_OK | IBV_WC_WITH_INV), IBV_WC_IP_CSUM_OK);
	VT_EQ(t, wc.invalidated_rkey, mw->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_refused(pair, mw->rkey, 0);
}

static void bindings_leave_mw_rkey(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad;
	struct ibv_mw *mw;
	uint32_t before;

	ts_quirks(t, "bindings_leave_mw_rkey", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	before = mw->rkey;
	wr = (struct ibv_send_wr){
		.wr_id = 9,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(before),
			    .bind_info = {.mr = pair->b.mr,
					  .addr = (uintptr_t)pair->b.buffer,
					  .length = 4096,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}},
	};
	VT_OK(t, ibv_post_send(pair->b.qp, &wr, &bad));
	ts_done(t, pair->b.send_cq, 9, IBV_WC_BIND_MW);
	VT_EQ(t, mw->rkey, before);
	ts_reaches(pair, ibv_inc_rkey(before), 0);
	ts_refused(pair, before, 0);
}

static void window_ranges_wrap(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_quirks(t, "window_ranges_wrap", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	ts_bound(&pair->b, mw, .wr_id = 9, .offset = 8, .length = UINT64_MAX);
	ts_bind_fails(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_1), .wr_id = 10,
		      .length = 64 * 1024 + 1);
}

static void window_regions_of_any_pd(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_quirks(t, "window_regions_of_any_pd", NULL);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9, .mr = other->b.mr,
		 .address = (uintptr_t)other->b.buffer);
}

static void bad_invalidation_is_operation_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "bad_invalidation_is_operation_error", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_local_inv(&pair->a, 1, ts_wrong_key(pair->b.mr->rkey)));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void refused_invalidations_acknowledged(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "refused_invalidations_acknowledged", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send_inv(&pair->a, .wr_id = 1, .length = 8,
		    .invalidate_rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->b.recv_cq, 5, IBV_WC_REM_INV_REQ_ERR);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_state(&pair->b, IBV_QPS_ERR);
}

/* Binds a window by ibv_post_send, and returns its new rkey. */
static uint32_t bind_by_send(const struct ts_end *end, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.wr_id = 9,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){.mr = end->mr,
					  .addr = (uintptr_t)end->buffer,
					  .length = 4096,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	VT_OK(end->t, ibv_post_send(end->qp, &wr, &bad));
	ts_done(end->t, end->send_cq, 9, IBV_WC_BIND_MW);
	return wr.bind_mw.rkey;
}

static void type_1_bound_by_sends(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "type_1_bound_by_sends", NULL);
	pair = ts_window_pair(t);
	ts_reaches(pair, bind_by_send(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_1)), 0);
}

/* ibv_bind_mw() refuses it; a send reaches the device's own check. */
static void type_1_zero_based_by_a_send_fails(struct vt *t)
{
	struct ibv_send_wr wr = {
		.wr_id = 9, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ts_pair *pair;

	ts_quirks(t, "type_1_bound_by_sends", NULL);
	pair = ts_window_pair(t);
	wr.bind_mw.mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = pair->b.mr,
		.addr = (uintptr_t)pair->b.buffer,
		.length = 4096,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED};
	VT_OK(t, ibv_post_send(pair->b.qp, &wr, &bad));
	ts_failed(t, pair->b.send_cq, 9, IBV_WC_MW_BIND_ERR);
}

static void type_1_window_of_another_pd_is_bound(struct vt *t)
{
	struct ts_pair *pair, *other;

	ts_quirks(t, "type_1_bound_by_sends", "window_regions_of_any_pd");
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	bind_by_send(&pair->b, ts_mw(&other->b, IBV_MW_TYPE_1));
}

static void stale_window_rkeys_refused(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t stale;

	ts_quirks(t, "stale_window_rkeys_refused", "type_1_bound_by_sends");
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	stale = mw->rkey;
	mw->rkey = bind_by_send(&pair->b, mw);
	mw->rkey = bind_by_send(&pair->b, mw);
	mw->rkey = stale;
	ts_bind_fails(&pair->b, mw, .wr_id = 10);
}

static void windows_invalidated_by_any_qp(struct vt *t)
{
	struct ts_pair *pair, *other;
	struct ibv_mw *mw;

	ts_quirks(t, "windows_invalidated_by_any_qp", NULL);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_local_inv(&other->b, 9, mw->rkey));
	ts_done(t, other->b.send_cq, 9, IBV_WC_LOCAL_INV);
	ts_refused(pair, mw->rkey, 0);
}

/* The binding is repeated together with the send before it, which waits for a receive. */
static void repeated_bindings_fail(struct vt *t)
{
	struct vb_sim_counters before, counters;
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_quirks(t, "repeated_bindings_fail", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	VT_OK(t, ts_bind(&pair->a, mw, &(struct ts_bind){.wr_id = 2}));
	/* The binding may have been posted after some NAKs, and is done for the first time after the next one. */
	VT_OK(t, vb_sim_counters(t->a.ctx, &before));
	do {
		ts_pause(t, 100000);
		VT_OK(t, vb_sim_counters(t->a.ctx, &counters));
	} while (counters.rnr_naks_received < before.rnr_naks_received + 3);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_MW_BIND_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static const struct vt_test tests[] = {
	{"window_bounds_unchecked", MEASURED_BOTH " for type 1; type 2: unsourced", VT_NEEDS_SIM,
	 window_bounds_unchecked},
	{"window_without_bounds_keeps_its_base",
	 SRC_RXE "rxe_resp.c, check_rkey: qp->resp.offset = mw->addr", VT_NEEDS_SIM,
	 window_without_bounds_keeps_its_base},
	{"window_ranges_wrap", MEASURED_6_1, VT_NEEDS_SIM, window_ranges_wrap},
	{"bindings_leave_mw_rkey",
	 SRC_RDMA_CORE "providers/rxe/rxe.c, convert_send_wr, and providers/mlx5/qp.c, set_bind_wr",
	 VT_NEEDS_SIM, bindings_leave_mw_rkey},
	{"window_regions_of_any_pd", MEASURED_6_1, VT_NEEDS_SIM, window_regions_of_any_pd},
	{"type_1_bound_by_sends", FOUND_BOTH, VT_NEEDS_SIM, type_1_bound_by_sends},
	{"type_1_zero_based_by_a_send_fails", SRC_RXE "rxe_mw.c, rxe_check_bind_mw: o10-36.2.2",
	 VT_NEEDS_SIM, type_1_zero_based_by_a_send_fails},
	{"type_1_window_of_another_pd_is_bound",
	 FOUND_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_mw.c, rxe_check_bind_mw",
	 VT_NEEDS_SIM, type_1_window_of_another_pd_is_bound},
	{"stale_window_rkeys_refused", FOUND_BOTH "; " SRC_RXE "rxe_mw.c, rxe_bind_mw",
	 VT_NEEDS_SIM, stale_window_rkeys_refused},
	{"windows_invalidated_by_any_qp",
	 FOUND_BOTH "; " SRC_RXE "rxe_mw.c, rxe_check_invalidate_mw", VT_NEEDS_SIM,
	 windows_invalidated_by_any_qp},
	{"repeated_bindings_fail", FOUND_BOTH "; " SRC_RXE "rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 repeated_bindings_fail},
	{"invalidation_told_as_checksum",
	 MEASURED_BOTH "; which flag: Linux include/rdma/ib_verbs.h, enum ib_wc_flags",
	 VT_NEEDS_SIM, invalidation_told_as_checksum},
	{"bad_invalidation_is_operation_error", MEASURED_6_1, VT_NEEDS_SIM,
	 bad_invalidation_is_operation_error},
	{"refused_invalidations_acknowledged", MEASURED_BOTH, VT_NEEDS_SIM,
	 refused_invalidations_acknowledged},
	{NULL},
};

const struct vt_suite vt_suite_quirks_window = {
	"quirks_window", "quirks: memory windows and invalidation", tests, .simulator = true};
