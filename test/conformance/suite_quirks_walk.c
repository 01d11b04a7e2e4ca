/* SPDX-License-Identifier: MIT */
/*
 * Where SoftRoCE leaves the specification, as the differential walk found it to (verbena-differ(1)):
 * each quirk, and what is so where it holds. "walked" is a run of it in scripts/softroce.
 */
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

#include <verbena/sim.h>

#define RXE_6_1	 "walked on Linux 6.1 rxe"
#define RXE_6_12 "measured on Linux 6.12 rxe"
#define RXE_BOTH RXE_6_1 " and 6.12 rxe"

/* --- posting --- */

static void refused_sends_stay_queued(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wr, second, *bad = NULL;
	struct ts_pair *pair;
	struct ibv_sge sge;

	ts_only(t, "refused_sends_stay_queued", "refused_posts_name_no_wr");
	pair = ts_pair_reset(t, &options);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = IBV_WR_SEND;
	second = wr;
	second.num_sge = 1000;
	wr.next = &second;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	VT_CHECK(t, bad == &second);
	ts_connect(&pair->b);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_connect(&pair->a);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 8);
	ts_no_more(t, pair->a.send_cq);
}

/* RESET forgets them, ERR flushes them. */
static void refused_sends_end_with_the_state(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "refused_sends_stay_queued", NULL);
	pair = ts_pair_reset(t, &options);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}), EINVAL);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_to_init(&pair->a);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8}), EINVAL);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 2);
	ts_no_more(t, pair->a.send_cq);
}

static void foreign_ahs_end_sends(struct vt *t)
{
	struct ibv_send_wr wr, *bad;
	struct ts_pair *pair;
	struct ibv_sge sge;

	ts_only(t, "foreign_ahs_end_sends", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sge, &wr);
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = ts_ah(t, ts_pd(t, &t->a), &t->a, &t->b);
	VT_OK(t, ibv_post_send(pair->a.qp, &wr, &bad));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_QP_OP_ERR);
	ts_state(&pair->a, IBV_QPS_SQE);
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

	ts_only(t, "type_1_bound_by_sends", NULL);
	pair = ts_window_pair(t);
	ts_reaches(pair, bind_by_send(&pair->b, ts_mw(&pair->b, IBV_MW_TYPE_1)), 0);
}

static void type_1_of_another_pd_bound(struct vt *t)
{
	struct ts_pair *pair, *other;

	ts_only(t, "type_1_bound_by_sends", "window_regions_of_any_pd");
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	bind_by_send(&pair->b, ts_mw(&other->b, IBV_MW_TYPE_1));
}

static void stale_window_rkeys_refused(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t stale;

	ts_only(t, "stale_window_rkeys_refused", "type_1_bound_by_sends");
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

	ts_only(t, "windows_invalidated_by_any_qp", NULL);
	pair = ts_window_pair(t);
	other = ts_window_pair(t);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_2);
	ts_bound(&pair->b, mw, .wr_id = 9);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_local_inv(&other->b, 9, mw->rkey));
	ts_done(t, other->b.send_cq, 9, IBV_WC_LOCAL_INV);
	ts_refused(pair, mw->rkey, 0);
}

static void post_list(struct ts_end *end, unsigned int count)
{
	struct ibv_send_wr wrs[3], *bad;
	struct ibv_sge sge;
	unsigned int i;

	for (i = 0; i < count; i++) {
		ts_fill_wr(end, &(struct ts_wr){.wr_id = i, .length = 8}, &sge, &wrs[i]);
		wrs[i].next = i + 1 < count ? &wrs[i + 1] : NULL;
	}
	VT_OK(end->t, ibv_post_send(end->qp, wrs, &bad));
}

/* In a ring of 4 the ends of these lists are at 2, 0 and 2, and the requester is at 0, 1 and 2. */
static void errored_sends_may_wait(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i, list;

	ts_only(t, "errored_sends_may_wait", NULL);
	options.send_wr = 3;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (list = 0; list < 2; list++) {
		post_list(&pair->a, 2);
		for (i = 0; i < 2; i++)
			ts_flushed(t, pair->a.send_cq, i);
	}
	post_list(&pair->a, 2);
	ts_no_more(t, pair->a.send_cq);
	post_list(&pair->a, 1);
	ts_flushed(t, pair->a.send_cq, 0);
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 0);
}

/* A send that nobody answers, and one with a local error behind it. */
static struct ts_pair *fail_behind(struct vt *t, uint8_t retry_cnt)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "local_errors_end_repeats", NULL);
	options.timeout = 8;
	options.retry_cnt = retry_cnt;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	return pair;
}

static void local_errors_end_repeats(struct vt *t)
{
	struct ts_pair *pair = fail_behind(t, 2);

	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 2);
}

static void local_errors_let_the_last_try_end(struct vt *t)
{
	struct ts_pair *pair = fail_behind(t, 0);

	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
}

/* The first send waits for a receive when the other fails. */
static void local_errors_end_waits(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "local_errors_end_repeats", "rnr_naks_stop_nothing");
	options.rnr_retry = 7;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 100000);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_pause(t, 100000000);
	ts_no_more(t, pair->b.recv_cq);
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void odd_bindings_refused(struct vt *t)
{
	struct ibv_sge sges[1] = {{0}};
	struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW}, *bad = NULL;
	struct ts_pair *pair;

	ts_only(t, "odd_bindings_refused", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	wr.bind_mw.mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	VT_CHECK(t, bad == &wr);
	ts_state(&pair->a, IBV_QPS_RTS);
	pair = ts_window_pair(t);
	wr.bind_mw.mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	wr.bind_mw.bind_info.mr = pair->a.mr;
	wr.sg_list = sges;
	wr.num_sge = 1;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
}

/* The send before it waits for a receive. */
static void repeated_bindings_fail(struct vt *t)
{
	struct vb_sim_counters counters = {0};
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_only(t, "repeated_bindings_fail", NULL);
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_2);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	VT_OK(t, ts_bind(&pair->a, mw, &(struct ts_bind){.wr_id = 2}));
	/* It may be posted behind the first NAK, and is then done before the second. */
	while (counters.rnr_naks_received < 3) {
		ts_pause(t, 100000);
		VT_OK(t, vb_sim_counters(t->a.ctx, &counters));
	}
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_MW_BIND_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void room_is_checked_last(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wr, *bad = NULL;
	struct ts_pair *pair;
	struct ibv_sge sge;
	uint32_t i;

	ts_only(t, "room_is_checked_last", "atomics_checked_when_posted");
	options.send_wr = 1;
	pair = ts_pair(t, &options);
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8}, &sge, &wr);
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), ENOMEM);
	sge.length = pair->a.cap.max_inline_data + 1;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), ENOMEM);
	wr.send_flags |= IBV_SEND_INLINE;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.send_flags = 0;
	sge.length = 4;
	VT_ERRNO(t, ibv_post_send(pair->a.qp, &wr, &bad), EINVAL);
}

/* The count comes down to 7, and stays there. */
static void retry_9_is_endless(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	int mask;

	ts_only(t, "retry_ranges_unchecked", "retry_7_is_endless");
	options.timeout = 8;
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	ts_to_rtr(&pair->a);
	mask = ts_rts_attr(&pair->a, &attr);
	attr.retry_cnt = 9;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 3000000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_state(&pair->a, IBV_QPS_RTS);
}

static void draining_refuses_changes(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "draining_refuses_changes", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	VT_ERRNO(t, ts_to(&pair->a, IBV_QPS_RESET), EINVAL);
	VT_ERRNO(t, ts_to(&pair->a, IBV_QPS_RTS), EINVAL);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
}

static void path_mig_state_taken(struct vt *t)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .path_mig_state = IBV_MIG_MIGRATED};
	struct ts_pair *pair;

	ts_only(t, "path_mig_state_taken", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
	pair = ts_connected(t, IBV_QPT_UD);
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), EINVAL);
}

static void atomics_tell_all_bytes(struct vt *t)
{
	struct ibv_send_wr wr, *bad;
	struct ts_pair *pair;
	struct ibv_sge sge;
	struct ibv_wc wc;

	ts_only(t, "atomics_tell_all_bytes", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 32}, &sge, &wr);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)pair->b.buffer;
	wr.wr.atomic.rkey = pair->b.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	VT_OK(t, ibv_post_send(pair->a.qp, &wr, &bad));
	VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
	VT_EQ(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, wc.byte_len, 32);
}

/* With retry_cnt 0 the NAK of the second send would be the end. */
static void repeats_outlive_reset(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "repeats_outlive_reset", "rnr_naks_stop_nothing");
	options.rnr_retry = 1;
	options.retry_cnt = 7;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	pair->a.options.retry_cnt = 0;
	ts_connect_both(pair);
	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_send(&pair->a, .wr_id = 4, .length = 8);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 4);
}

static void long_read_responses_taken(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	ts_only(t, "long_read_responses_taken", NULL);
	pair->a.options.mtu = IBV_MTU_256;
	pair->b.options.mtu = IBV_MTU_1024;
	ts_connect_both(pair);
	ts_transfer(pair, IBV_WR_RDMA_READ, 3000);
}

static void errors_repeat(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "errors_repeat", "errored_receives_wait");
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->b, .wr_id = 1, .length = 8);
	ts_flushed(t, pair->b.send_cq, 1);
	ts_flushed(t, pair->b.recv_cq, 5);
	ts_recv(&pair->b, .wr_id = 6, .length = 100);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 6);
}

static void errors_repeat_by_bindings(struct vt *t)
{
	struct ibv_mw_bind bind = {.wr_id = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ts_pair *pair;
	struct ibv_mw *mw;

	ts_only(t, "errors_repeat", "errored_receives_wait");
	pair = ts_window_pair(t);
	mw = ts_mw(&pair->a, IBV_MW_TYPE_1);
	bind.bind_info = (struct ibv_mw_bind_info){pair->a.mr, (uintptr_t)pair->a.buffer, 8,
						   IBV_ACCESS_REMOTE_READ};
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_recv(&pair->a, .wr_id = 5, .length = 100);
	ts_no_more(t, pair->a.recv_cq);
	VT_OK(t, vb_bind_mw(pair->a.qp, mw, &bind));
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.recv_cq, 5);
}

/* Not by a datagram with another Q_Key. */
static void errors_repeat_by_their_own(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "errors_repeat", "errored_receives_wait");
	pair = ts_connected(t, IBV_QPT_UD);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 8, .remote_qkey = TS_QKEY ^ 1);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_flushed(t, pair->b.recv_cq, 5);
}

/* The first would wait for a receive. */
static void local_errors_flush_all(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "local_errors_flush_all", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8, .lkey = pair->a.mr->lkey ^ 0xff);
	ts_flushed(t, pair->a.send_cq, 1);
	ts_flushed(t, pair->a.send_cq, 2);
	ts_state(&pair->a, IBV_QPS_ERR);
}

/* Two sends that wait for a receive when both ends are reset. */
static struct ts_pair *reset_with_sends(struct vt *t, enum ibv_qp_type type)
{
	struct ts_pair *pair;

	ts_only(t, "resets_leave_ghosts", NULL);
	pair = ts_connected(t, type);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect_both(pair);
	return pair;
}

static void resets_leave_ghosts(struct vt *t)
{
	struct ts_pair *pair = reset_with_sends(t, IBV_QPT_RC);
	struct vb_sim_counters before, after;

	VT_OK(t, vb_sim_counters(t->a.ctx, &before));
	ts_write(&pair->a, .wr_id = 3, .length = 8);
	ts_done(t, pair->a.send_cq, 3, IBV_WC_RDMA_WRITE);
	VT_OK(t, vb_sim_counters(t->a.ctx, &after));
	/* 3 WRITEs, and on one device their ACK; 2 without the ghosts. */
	VT_CHECK(t, after.sent_packets - before.sent_packets >= 3);
	ts_no_more(t, pair->a.send_cq);
}

/* A UD QP has no RDMA WRITE. */
static void ghosts_end_ud(struct vt *t)
{
	struct ts_pair *pair = reset_with_sends(t, IBV_QPT_UD);

	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_flushed(t, pair->a.send_cq, 3);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void ghosts_are_never_drained(struct vt *t)
{
	struct ts_pair *pair = reset_with_sends(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ts_no_event(t, &t->a);
}

/* --- waiting for a receive --- */

static void rnr_naks_stop_nothing(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "rnr_naks_stop_nothing", NULL);
	options.retry_cnt = 0;
	options.timeout = 0;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 100000);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 2);
}

static void rnr_naks_stop_nothing_for_good(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "rnr_naks_stop_nothing", NULL);
	options.timeout = 0;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_pause(t, 5000000);
	ts_recv(&pair->b, .wr_id = 5, .length = 4 * ts_mtu_bytes(pair->a.options.mtu));
	ts_recv(&pair->b, .wr_id = 6, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_received(t, pair->b.recv_cq, 6, 8);
}

static void rnr_waits_time_out(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "rnr_waits_time_out", NULL);
	options.retry_cnt = 1;
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_no_more(t, pair->b.recv_cq);
}

/* --- answers --- */

/* The peer is in ERR, and answers to nothing. */
static void repeated_fences_wait_for_all(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_sge sges[2];
	struct ts_pair *pair;

	ts_only(t, "repeated_fences_wait_for_all", NULL);
	options.timeout = 8;
	options.retry_cnt = 2;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1, .length = 8}, &sges[0], &wrs[0]);
	wrs[0].send_flags |= IBV_SEND_FENCE;
	wrs[0].next = &wrs[1];
	ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 2, .length = 8, .rkey = pair->b.mr->rkey},
		   &sges[1], &wrs[1]);
	wrs[1].opcode = IBV_WR_RDMA_READ;
	VT_OK(t, ibv_post_send(pair->a.qp, wrs, &bad));
	ts_no_more(t, pair->a.send_cq);
	ts_state(&pair->a, IBV_QPS_RTS);
}

/* A begins anew, and B takes what it sends for duplicates of what it has seen. */
static void acks_of_unsent_complete(struct vt *t)
{
	struct ts_pair *pair;
	int i;

	ts_only(t, "acks_of_unsent_complete", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	for (i = 0; i < 3; i++) {
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	}
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 2, .length = 8, .remote_offset = 1000);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_blank(t, pair->b.buffer + 1000, 8);
}

/* A's PSNs begin again, and B takes its READ for the one before. */
static void repeated_reads_may_differ(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "repeated_reads_may_differ", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_fill(pair->b.buffer, 8192, 7);
	ts_read(&pair->a, .wr_id = 1, .length = 5000, .remote_offset = 1000,
		.rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_read(&pair->a, .wr_id = 2, .length = 255, .remote_offset = 3333,
		.rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_READ);
	VT_EQ(t, memcmp(pair->a.buffer, pair->b.buffer + 3333, 255), 0);
}

/* A pair whose first PSNs are given: what A sends, and what B expects. */
static struct ts_pair *with_psns(struct vt *t, const struct ts_options *options, uint32_t sent,
				 uint32_t expected)
{
	struct ts_pair *pair = ts_pair_reset(t, options);

	pair->a.send_psn = sent;
	pair->b.recv_psn = expected;
	ts_connect_both(pair);
	return pair;
}

/* The first packet is a duplicate to the peer, whose ACK is of the second; that one has no first
 * before it, and the NAK for it is of what was acknowledged. */
static void naks_of_the_acknowledged_are_lost(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	options.timeout = 8;
	options.retry_cnt = 0;
	pair = with_psns(t, &options, 0xfffffe, 0xffffff);
	ts_write(&pair->a, .wr_id = 1, .length = 2000);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
}

/* The same, but its ACK is of an old connection, beyond the message: while that is being sent, the ACK
 * says nothing, and the NAK counts. */
static void naks_within_a_message_count(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	pair = with_psns(t, &options, 0x4000, 0x4000);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	pair->a.send_psn = 0x1000;
	pair->b.recv_psn = 0x1003;
	ts_connect_both(pair);
	ts_write(&pair->a, .wr_id = 2, .length = 2000);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_INV_REQ_ERR);
}

/* A write that the peer takes for a duplicate, whose ACK is of an old connection, and another WR. */
static struct ts_pair *after_a_duplicate(struct vt *t, enum ibv_wr_opcode second,
					 uint32_t rkey_flip)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_send_wr wrs[2], *bad;
	struct ibv_sge sges[2];
	struct ts_pair *pair;

	ts_only(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.retry_cnt = 0;
	pair = with_psns(t, &options, 0xfffffe, 0xffffff);
	for (int i = 0; i < 2; i++) {
		ts_fill_wr(&pair->a, &(struct ts_wr){.wr_id = 1 + i, .length = 8}, &sges[i],
			   &wrs[i]);
		wrs[i].opcode = i ? second : IBV_WR_RDMA_WRITE;
		wrs[i].wr.rdma.rkey = pair->b.mr->rkey ^ (i ? rkey_flip : 0);
		wrs[i].wr.rdma.remote_addr = (uintptr_t)pair->b.buffer;
	}
	wrs[0].next = &wrs[1];
	VT_OK(t, ibv_post_send(pair->a.qp, wrs, &bad));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	return pair;
}

/* The ACK is of the second, too, which was not sent by then. */
static void naks_after_an_early_ack_count(struct vt *t)
{
	struct ts_pair *pair = after_a_duplicate(t, IBV_WR_RDMA_READ, 0x5500);

	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void acks_after_an_early_ack_count(struct vt *t)
{
	struct ts_pair *pair = after_a_duplicate(t, IBV_WR_RDMA_WRITE, 0);

	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
}

/* A repetition before a reset, which ended with the last retry, silences sequence NAKs after it. */
static void retries_used_up_outlive_reset(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "repeats_outlive_reset", "rnr_naks_stop_nothing");
	options.timeout = 8;
	options.retry_cnt = 1;
	options.rnr_retry = 1;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	pair->a.options.retry_cnt = 0;
	pair->a.options.timeout = 14;
	ts_connect_both(pair);
	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_send(&pair->a, .wr_id = 4, .length = 8);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	ts_flushed(t, pair->a.send_cq, 4);
}

/* After an atomic an ACK of duplicates is of that, and of no old connection. */
static void acks_after_an_atomic_are_of_it(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "acks_of_unsent_complete", "acks_of_old_connections");
	options.mtu = IBV_MTU_256;
	pair = with_psns(t, &options, 0xfffffe, 0xfffffe);
	ts_fetch_add(&pair->a, .wr_id = 1, .rkey = pair->b.mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_FETCH_ADD);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 2, .length = 600);
	ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_INV_REQ_ERR);
}

/* B has done nothing since it was connected, and expects more than A has sent. */
static void acks_of_old_connections(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "acks_of_old_connections", NULL);
	pair = ts_pair_reset(t, &options);
	pair->b.recv_psn++;
	ts_connect_both(pair);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_blank(t, pair->b.buffer, 8);
}

static void cut_writes_jam_uc(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "cut_writes_jam_uc", NULL);
	pair = ts_connected(t, IBV_QPT_UC);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 3 * ts_mtu_bytes(pair->a.options.mtu));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
}

/* --- events --- */

static bool got_event(struct vt *t, struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;

	return ts_cq_event(t, channel, &cq);
}

static void flushed_receives_are_solicited(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "flushed_receives_are_solicited", "errors_are_not_solicited");
	options.channels = true;
	pair = ts_pair(t, &options);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 5);
	VT_CHECK(t, got_event(t, pair->b.recv_channel));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_flushed(t, pair->a.send_cq, 1);
	VT_CHECK(t, !got_event(t, pair->a.send_channel));
}

static const struct vt_test tests[] = {
	{"refused_sends_stay_queued", RXE_BOTH, VT_NEEDS_SIM, refused_sends_stay_queued},
	{"refused_sends_end_with_the_state", RXE_BOTH, VT_NEEDS_SIM,
	 refused_sends_end_with_the_state},
	{"foreign_ahs_end_sends", RXE_BOTH, VT_NEEDS_SIM, foreign_ahs_end_sends},
	{"type_1_bound_by_sends", RXE_BOTH, VT_NEEDS_SIM, type_1_bound_by_sends},
	{"type_1_of_another_pd_bound",
	 RXE_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_mw.c, rxe_check_bind_mw", VT_NEEDS_SIM,
	 type_1_of_another_pd_bound},
	{"windows_invalidated_by_any_qp",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_mw.c, rxe_check_invalidate_mw",
	 VT_NEEDS_SIM, windows_invalidated_by_any_qp},
	{"stale_window_rkeys_refused",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_mw.c, rxe_bind_mw", VT_NEEDS_SIM,
	 stale_window_rkeys_refused},
	{"draining_refuses_changes",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_chk_attr", VT_NEEDS_SIM,
	 draining_refuses_changes},
	{"path_mig_state_taken",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_from_attr", VT_NEEDS_SIM,
	 path_mig_state_taken},
	{"atomics_tell_all_bytes",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, make_send_cqe", VT_NEEDS_SIM,
	 atomics_tell_all_bytes},
	{"repeats_outlive_reset",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, started_retry", VT_NEEDS_SIM,
	 repeats_outlive_reset, VT_MAY_RECONNECT},
	{"long_read_responses_taken",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, do_read", VT_NEEDS_SIM,
	 long_read_responses_taken},
	{"local_errors_end_waits",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 local_errors_end_waits},
	{"local_errors_end_repeats",
	 RXE_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 local_errors_end_repeats},
	{"local_errors_let_the_last_try_end",
	 RXE_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_comp.c, COMPST_ERROR_RETRY",
	 VT_NEEDS_SIM, local_errors_let_the_last_try_end},
	{"odd_bindings_refused", RXE_BOTH "; rdma-core providers/rxe/rxe.c, validate_send_wr",
	 VT_NEEDS_SIM, odd_bindings_refused},
	{"room_is_checked_last", RXE_BOTH "; rdma-core providers/rxe/rxe.c, post_one_send",
	 VT_NEEDS_SIM, room_is_checked_last},
	{"retry_9_is_endless",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, COMPST_ERROR_RETRY", VT_NEEDS_SIM,
	 retry_9_is_endless},
	{"repeated_bindings_fail",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 repeated_bindings_fail},
	{"errors_repeat",
	 RXE_6_12 "; Linux 6.12 drivers/infiniband/sw/rxe/rxe_resp.c, flush_recv_queue",
	 VT_NEEDS_SIM, errors_repeat},
	{"errors_repeat_by_bindings",
	 RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_post_send", VT_NEEDS_SIM,
	 errors_repeat_by_bindings},
	{"errors_repeat_by_their_own",
	 RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_recv.c, check_keys", VT_NEEDS_SIM,
	 errors_repeat_by_their_own},
	{"resets_leave_ghosts", RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_reset",
	 VT_NEEDS_SIM, resets_leave_ghosts, VT_MAY_RECONNECT},
	{"ghosts_end_ud", RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_req.c, next_opcode",
	 VT_NEEDS_SIM, ghosts_end_ud, VT_MAY_RECONNECT},
	{"ghosts_are_never_drained",
	 RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_req.c, req_check_sq_drain_done",
	 VT_NEEDS_SIM, ghosts_are_never_drained, VT_MAY_RECONNECT},
	{"local_errors_flush_all",
	 RXE_6_12 "; Linux 6.12 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester: rxe_qp_error",
	 VT_NEEDS_SIM, local_errors_flush_all},
	{"rnr_naks_stop_nothing",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_psn, and rxe_req.c",
	 VT_NEEDS_SIM, rnr_naks_stop_nothing},
	{"rnr_naks_stop_nothing_for_good", "Linux drivers/infiniband/sw/rxe/rxe_comp.c",
	 VT_NEEDS_SIM, rnr_naks_stop_nothing_for_good},
	{"rnr_waits_time_out",
	 RXE_6_12 "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, rxe_completer", VT_NEEDS_SIM,
	 rnr_waits_time_out},
	{"errored_sends_may_wait",
	 RXE_6_1 "; Linux 6.1 drivers/infiniband/sw/rxe/rxe_req.c, rxe_requester", VT_NEEDS_SIM,
	 errored_sends_may_wait},
	{"repeated_fences_wait_for_all",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_req.c, rxe_wqe_is_fenced", VT_NEEDS_SIM,
	 repeated_fences_wait_for_all},
	{"acks_of_unsent_complete",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 acks_of_unsent_complete, VT_MAY_RECONNECT},
	{"repeated_reads_may_differ",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_resp.c, duplicate_request", VT_NEEDS_SIM,
	 repeated_reads_may_differ, VT_MAY_RECONNECT},
	{"naks_of_the_acknowledged_are_lost",
	 RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 naks_of_the_acknowledged_are_lost, VT_MAY_MISTAKE_PSN},
	{"naks_within_a_message_count",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 naks_within_a_message_count, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"naks_after_an_early_ack_count",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 naks_after_an_early_ack_count, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"acks_after_an_early_ack_count",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, check_psn", VT_NEEDS_SIM,
	 acks_after_an_early_ack_count, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"retries_used_up_outlive_reset",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_comp.c, COMPST_ERROR_RETRY", VT_NEEDS_SIM,
	 retries_used_up_outlive_reset, VT_MAY_RECONNECT},
	{"acks_after_an_atomic_are_of_it",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_resp.c, atomic_reply", VT_NEEDS_SIM,
	 acks_after_an_atomic_are_of_it, VT_MAY_RECONNECT | VT_MAY_MISTAKE_PSN},
	{"acks_of_old_connections",
	 "measured on Linux 6.1 and 6.12 rxe; Linux drivers/infiniband/sw/rxe/rxe_resp.c, "
	 "duplicate_request",
	 VT_NEEDS_SIM, acks_of_old_connections, VT_MAY_RECONNECT},
	{"cut_writes_jam_uc", RXE_BOTH "; Linux drivers/infiniband/sw/rxe/rxe_resp.c, check_op_seq",
	 VT_NEEDS_SIM, cut_writes_jam_uc},
	{"flushed_receives_are_solicited",
	 RXE_6_1 "; Linux drivers/infiniband/sw/rxe/rxe_resp.c, do_complete", VT_NEEDS_SIM,
	 flushed_receives_are_solicited},
	{NULL},
};

const struct vt_suite vt_suite_quirks_walk = {
	"quirks_walk", "where SoftRoCE leaves the specification, as random programs show", tests,
	.simulator = true};
