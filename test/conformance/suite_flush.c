/* SPDX-License-Identifier: MIT */
/*
 * What becomes of posted work when a queue pair goes to ERR or RESET, or is destroyed.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <fcntl.h>
#include <verbena/verbs.h>

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

static void err_flushes_receives_in_order(struct vt *t)
{
	struct ts_pair *pair;
	size_t type;
	unsigned int i;

	for (type = 0; type < 3; type++) {
		vt_row(t, "type %d", types[type]);
		pair = ts_connected(t, types[type]);
		for (i = 0; i < 10; i++)
			ts_recv(&pair->b, .wr_id = i, .length = 100);
		VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
		for (i = 0; i < 10; i++)
			VT_EQ(t, ts_flushed(t, pair->b.recv_cq, i).qp_num, pair->b.qp->qp_num);
		ts_no_more(t, pair->b.recv_cq);
	}
}

/* Posts sends for which B has no receive. */
static void err_flushes_sends_in_order(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 10; i++)
		ts_send(&pair->a, .wr_id = i, .length = 100, .unsignalled = i % 2);
	ts_pause(t, 1000000);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (i = 0; i < 10; i++)
		ts_flushed(t, pair->a.send_cq, i);
	ts_no_more(t, pair->a.send_cq);
}

static void err_before_anything_was_sent(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	for (i = 0; i < 4; i++)
		ts_write(&pair->a, .wr_id = i, .length = 100);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (i = 0; i < 4; i++)
		ts_flushed(t, pair->a.send_cq, i);
	ts_settle(t);
	ts_blank(t, pair->b.buffer, 100);
}

static void only_the_failed_send_has_its_own_status(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 8; i++)
		ts_write(&pair->a, .wr_id = i, .length = 5000,
			 .rkey = i >= 3 ? ts_wrong_key(pair->b.mr->rkey) : 0);
	for (i = 0; i < 3; i++)
		ts_done(t, pair->a.send_cq, i, IBV_WC_RDMA_WRITE);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
	for (i = 4; i < 8; i++)
		ts_flushed(t, pair->a.send_cq, i);
	ts_no_more(t, pair->a.send_cq);
}

/* Waits for the event of a write, whose completion is not polled yet. */
static struct ts_pair *one_unpolled(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_cq *cq;
	void *context;
	int fd;

	options.channels = true;
	pair = ts_pair(t, &options);
	fd = pair->a.send_channel->fd;
	VT_OK(t, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 0));
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	VT_OK(t, vb_get_cq_event(pair->a.send_channel, &cq, &context));
	vb_ack_cq_events(cq, 1);
	return pair;
}

static void completions_stay_through_err(struct vt *t)
{
	struct ts_pair *pair = one_unpolled(t);

	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
}

static void reset_ends_work_without_completions(struct vt *t)
{
	struct ts_pair *pair;
	size_t type;
	unsigned int i;

	for (type = 0; type < 3; type++) {
		vt_row(t, "type %d", types[type]);
		pair = ts_connected(t, types[type]);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
		ts_drained(&pair->a);
		for (i = 0; i < 4; i++) {
			ts_send(&pair->a, .wr_id = i, .length = 100);
			ts_recv(&pair->a, .wr_id = i, .length = 100);
		}
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
		ts_no_more(t, pair->a.send_cq);
		ts_no_more(t, pair->a.recv_cq);
	}
}

static void reset_in_the_middle_of_sending(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair, *other = ts_connected(t, IBV_QPT_RC);

	options.min_rnr_timer = 0; /* 655 ms: no second send is on its way when A is reset */
	pair = ts_pair(t, &options);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	/* When B has a later message of another QP, it has refused this one, for which it has no receive. */
	ts_recv(&other->b, .wr_id = 50, .length = 100);
	ts_send(&other->a, .wr_id = 10, .length = 100);
	ts_done(t, other->a.send_cq, 10, IBV_WC_SEND);
	ts_received(t, other->b.recv_cq, 50, 100);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);
}

static void completions_stay_through_reset(struct vt *t)
{
	struct ts_pair *pair = one_unpolled(t);

	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
}

static void destroy_ends_work_without_completions(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 100);
		ts_recv(&pair->a, .wr_id = i, .length = 100);
	}
	ts_pause(t, 1000000);
	ts_destroy_qp(&pair->a);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->a.recv_cq);
}

static void flushed_pair_can_be_connected_again(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = ts_wrong_key(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_drain_events(&t->b);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect_both(pair);
	ts_transfer(pair, IBV_WR_SEND, 5000);
	ts_transfer(pair, IBV_WR_RDMA_READ, 5000);
}

static void flush_frees_the_queue(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint32_t i;

	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	ts_drained(&pair->a);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	for (i = 0; i < pair->a.cap.max_send_wr; i++)
		ts_write(&pair->a, .wr_id = i, .length = 8);
	VT_ERRNO(t, ts_post(&pair->a, &(struct ts_wr){.opcode = IBV_WR_RDMA_WRITE}), ENOMEM);
}

static const struct vt_test tests[] = {
	{"err_flushes_receives_in_order", SRC_RVT "qp.c, rvt_error_qp", 0,
	 err_flushes_receives_in_order},
	{"err_flushes_sends_in_order",
	 SRC_RXE "rxe_comp.c, quoting: \"a Work Completion will always be "
		 "generated\"",
	 0, err_flushes_sends_in_order},
	{"err_before_anything_was_sent", SRC_RXE "rxe_comp.c, rxe_drain_resp_pkts: WR_FLUSH_ERR", 0,
	 err_before_anything_was_sent},
	{"only_the_failed_send_has_its_own_status",
	 SRC_RXE "rxe_comp.c, rxe_completer: COMPST_ERROR, then rxe_drain_resp_pkts", 0,
	 only_the_failed_send_has_its_own_status},
	{"completions_stay_through_err", "unsourced", 0, completions_stay_through_err},
	{"reset_ends_work_without_completions",
	 SRC_RXE "rxe_comp.c, rxe_drain_resp_pkts, and " SRC_RXE
		 "rxe_resp.c, rxe_drain_req_pkts: notify in ERR only",
	 0, reset_ends_work_without_completions},
	{"reset_in_the_middle_of_sending",
	 SRC_RXE "rxe_comp.c, rxe_drain_resp_pkts: notify in ERR only", 0,
	 reset_in_the_middle_of_sending},
	{"completions_stay_through_reset", "unsourced", 0, completions_stay_through_reset},
	{"destroy_ends_work_without_completions",
	 SRC_RXE "rxe_comp.c, rxe_completer: no notify for a QP that is not valid", 0,
	 destroy_ends_work_without_completions},
	{"flushed_pair_can_be_connected_again", SRC_CORE "verbs.c, qp_state_table: ERR to RESET", 0,
	 flushed_pair_can_be_connected_again, VT_MAY_RECONNECT},
	{"flush_frees_the_queue", SRC_RVT "qp.c, rvt_init_qp: s_head, s_last", 0,
	 flush_frees_the_queue},
	{NULL},
};

const struct vt_suite vt_suite_flush = {"flush", "posted work when a queue pair stops", tests};
