/* SPDX-License-Identifier: MIT */
/* Quirks of completion queues. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

static void sender_lives_on(struct vt *t)
{
	struct ts_pair *pair = ts_overrun(t, 3);
	int i;

	for (i = 0; i < 3; i++)
		ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_no_event(t, &t->a);
	ts_state(&pair->a, IBV_QPS_RTS);
	for (i = 0; i < pair->a.send_cq->cqe; i++)
		ts_done(t, pair->a.send_cq, (uint64_t)i, IBV_WC_RDMA_WRITE);
	ts_no_more(t, pair->a.send_cq);
	ts_write(&pair->a, .wr_id = 99, .length = 8);
	ts_done(t, pair->a.send_cq, 99, IBV_WC_RDMA_WRITE);
}

/* B does not acknowledge the message whose completion is lost: A retries until it gives up. */
static void responder_ends(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	int i, size;

	options.recv_cqe = 4;
	options.recv_wr = options.send_wr = 64;
	options.timeout = 8;
	options.retry_cnt = 2;
	pair = ts_pair(t, &options);
	size = pair->b.recv_cq->cqe;
	VT_CHECK(t, size < 64);
	for (i = 0; i <= size; i++) {
		ts_recv(&pair->b, .wr_id = (uint64_t)i, .length = 8);
		ts_send(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	}
	for (i = 0; i < size; i++)
		ts_done(t, pair->a.send_cq, (uint64_t)i, IBV_WC_SEND);
	ts_failed(t, pair->a.send_cq, (uint64_t)size, IBV_WC_RETRY_EXC_ERR);
	ts_event(t, &t->b, IBV_EVENT_CQ_ERR, pair->b.recv_cq);
	ts_event(t, &t->b, IBV_EVENT_QP_FATAL, pair->b.qp);
	ts_state(&pair->b, IBV_QPS_ERR);
	for (i = 0; i < size; i++)
		ts_received(t, pair->b.recv_cq, (uint64_t)i, 8);
	ts_no_more(t, pair->b.recv_cq);
	/* The overrun CQ still takes completions. */
	ts_recv(&pair->b, .wr_id = 99, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 99);
}

static void overrun_loses_completions(struct vt *t)
{
	ts_quirks(t, "overrun_loses_completions", NULL);
	sender_lives_on(t);
	responder_ends(t);
}

static void overrun_ends_polling(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_quirks(t, "overrun_ends_polling", NULL);
	pair = ts_overrun(t, 1);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, pair->a.qp);
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
}

/* Flushes a receive of another QP into the send CQ of the end. */
static void flush_neighbour(struct ts_end *end, uint64_t wr_id)
{
	struct ibv_qp *qp = ts_qp(end->t, end->pd, end->send_cq, IBV_QPT_UD);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .pkey_index = end->node->pkey_index,
				   .port_num = end->node->port,
				   .qkey = TS_QKEY};
	struct ibv_recv_wr wr = {.wr_id = wr_id}, *bad;

	VT_OK(end->t, vb_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	VT_OK(end->t, ibv_post_recv(qp, &wr, &bad));
	attr.qp_state = IBV_QPS_ERR;
	VT_OK(end->t, vb_modify_qp(qp, &attr, IBV_QP_STATE));
	ts_settle(end->t);
}

static struct ts_pair *with_completions(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	flush_neighbour(&pair->a, 77);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_settle(t);
	return pair;
}

static void reset_removes_completions(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "reset_removes_completions", NULL);
	vt_row(t, "RESET");
	pair = with_completions(t);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_flushed(t, pair->a.send_cq, 77);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);

	vt_row(t, "destroy");
	pair = with_completions(t);
	ts_destroy_qp(&pair->a);
	ts_destroy_qp(&pair->b);
	ts_flushed(t, pair->a.send_cq, 77);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);
}

static void pending_completions_notify(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "pending_completions_notify", NULL);
	pair = ts_pair_with_channels(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
	VT_CHECK(t, !ts_cq_event(t, pair->b.recv_channel, NULL));
	ts_received(t, pair->b.recv_cq, 5, 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_CHECK(t, !ts_cq_event(t, pair->b.recv_channel, NULL));
	/* A completion that is not solicited fires no CQ that is armed for solicited ones. */
	pair = ts_pair_with_channels(t);
	ts_recv(&pair->b, .wr_id = 6, .length = 8);
	ts_recv(&pair->b, .wr_id = 7, .length = 8);
	ts_send(&pair->a, .wr_id = 2, .length = 8);
	ts_settle(t);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_CHECK(t, !ts_cq_event(t, pair->b.recv_channel, NULL));
	ts_send(&pair->a, .wr_id = 3, .length = 8, .flags = IBV_SEND_SOLICITED);
	ts_settle(t);
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
}

static void errors_are_not_solicited(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "errors_are_not_solicited", NULL);
	pair = ts_pair_with_channels(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 5);
	VT_CHECK(t, !ts_cq_event(t, pair->b.recv_channel, NULL));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	ts_recv(&pair->b, .wr_id = 6, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 6);
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
}

static void grh_flag_on_connections(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ts_pair *pair;
	struct ibv_wc wc;
	size_t i;

	ts_quirks(t, "grh_flag_on_connections", NULL);
	for (i = 0; i < TS_COUNT(types); i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, types[i]);
		ts_recv(&pair->b, .wr_id = 5, .length = 100);
		ts_recv(&pair->b, .wr_id = 6, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 16);
		ts_write_imm(&pair->a, .wr_id = 2, .length = 16);
		wc = ts_received(t, pair->b.recv_cq, 5, 16);
		VT_EQ(t, wc.wc_flags, IBV_WC_GRH);
		wc = ts_written(t, pair->b.recv_cq, 6, 16);
		VT_EQ(t, wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	}
}

static void unknown_cq_flags_taken(struct vt *t)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1 << 20};
	struct ibv_cq_ex *cq;

	ts_quirks(t, "unknown_cq_flags_taken", NULL);
	cq = VT_PTR(t, vb_create_cq_ex(t->a.ctx, &attr));
	VT_OK(t, vb_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

static void cq_sizes_round_up(struct vt *t)
{
	struct ibv_cq *cq;

	ts_quirks(t, "queue_sizes_round_up", NULL);
	cq = VT_PTR(t, vb_create_cq(t->a.ctx, 4, NULL, NULL, 0));
	VT_EQ(t, cq->cqe, 7);
	VT_OK(t, vb_resize_cq(cq, 100));
	VT_EQ(t, cq->cqe, 127);
	VT_OK(t, vb_resize_cq(cq, 1));
	VT_EQ(t, cq->cqe, 1);
	VT_OK(t, vb_destroy_cq(cq));
}

static void sends_tell_immediate(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_quirks(t, "sends_tell_immediate", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send_imm(&pair->a, .wr_id = 1, .length = 8, .imm = 77);
	wc = ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	VT_EQ(t, wc.wc_flags, IBV_WC_WITH_IMM);
	VT_EQ(t, wc.imm_data, 0);
	ts_received(t, pair->b.recv_cq, 5, 8);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	wc = ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	VT_EQ(t, wc.wc_flags, 0);
}

static void flushed_receives_are_solicited(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "flushed_receives_are_solicited", "errors_are_not_solicited");
	pair = ts_pair_with_channels(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ibv_req_notify_cq(pair->a.send_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 5);
	VT_CHECK(t, ts_cq_event(t, pair->b.recv_channel, NULL));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_flushed(t, pair->a.send_cq, 1);
	VT_CHECK(t, !ts_cq_event(t, pair->a.send_channel, NULL));
}

static const struct vt_test tests[] = {
	{"cq_sizes_round_up", MEASURED_BOTH, VT_NEEDS_SIM, cq_sizes_round_up},
	{"unknown_cq_flags_taken", MEASURED_BOTH, VT_NEEDS_SIM, unknown_cq_flags_taken},
	{"overrun_loses_completions", MEASURED_BOTH, VT_NEEDS_SIM, overrun_loses_completions},
	{"overrun_ends_polling", "unsourced", VT_NEEDS_SIM, overrun_ends_polling},
	{"reset_removes_completions", "unsourced", VT_NEEDS_SIM, reset_removes_completions},
	{"pending_completions_notify",
	 "Linux drivers/infiniband/hw/mlx5/cq.c, mlx5_ib_arm_cq: no missed events are reported",
	 VT_NEEDS_SIM, pending_completions_notify},
	{"errors_are_not_solicited", MEASURED_6_12, VT_NEEDS_SIM, errors_are_not_solicited},
	{"flushed_receives_are_solicited", FOUND_6_1 "; " SRC_RXE "rxe_resp.c, do_complete",
	 VT_NEEDS_SIM, flushed_receives_are_solicited},
	{"grh_flag_on_connections", MEASURED_BOTH, VT_NEEDS_SIM, grh_flag_on_connections},
	{"sends_tell_immediate", MEASURED_BOTH, VT_NEEDS_SIM, sends_tell_immediate},
	{NULL},
};

const struct vt_suite vt_suite_quirks_cq = {"quirks_cq", "quirks: completion queues", tests,
					    .simulator = true};
