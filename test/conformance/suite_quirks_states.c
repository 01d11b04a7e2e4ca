/* SPDX-License-Identifier: MIT */
/* Quirks of states and attributes of a QP. */
#include "test/conformance/sources.h"
#include "test/support/quirks.h"

static void wide_numbers_refused(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	int mask;

	ts_quirks(t, "wide_numbers_refused", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.dest_qp_num |= 1 << 24;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, mask), EINVAL);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.rq_psn |= 1 << 24;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, mask), EINVAL);
	ts_state(&pair->a, IBV_QPS_INIT);
	ts_to_rtr(&pair->a);
	mask = ts_rts_attr(&pair->a, &attr);
	attr.sq_psn |= 1u << 31;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, mask), EINVAL);
	ts_state(&pair->a, IBV_QPS_RTR);
	ts_to_rts(&pair->a);
}

static void retry_ranges_unchecked(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	int mask;

	ts_quirks(t, "retry_ranges_unchecked", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.min_rnr_timer = 40;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	mask = ts_rts_attr(&pair->a, &attr);
	attr.timeout = 32;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, mask), EINVAL);
	attr.timeout = 14;
	attr.retry_cnt = 9;
	attr.rnr_retry = 10;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	attr = ts_query(&pair->a);
	VT_EQ(t, attr.min_rnr_timer, 40);
	VT_EQ(t, attr.retry_cnt, 9);
	VT_EQ(t, attr.rnr_retry, 10);
	ts_connect(&pair->b);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void pkey_index_unchecked(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	int mask;

	ts_quirks(t, "pkey_index_unchecked", NULL);
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, t->a.port, 0, 0xffff));
	pair = ts_pair_reset(t, &options);
	mask = ts_init_attr(&pair->a, &attr);
	attr.pkey_index = (uint16_t)(t->a.port_attr.pkey_tbl_len + 4);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	VT_EQ(t, ts_query(&pair->a).pkey_index, attr.pkey_index);
	ts_to_rtr(&pair->a);
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void path_mtu_unchecked(struct vt *t)
{
	const struct vb_sim_device_config device = {.name = "small", .mtu = IBV_MTU_1024};
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ts_end *end;
	int mask;

	options.mtu = IBV_MTU_4096;
	end = ts_other_device(t, &device, &options);
	VT_EQ(t, end->node->port_attr.active_mtu, IBV_MTU_1024);
	ts_quirks_of(t, end->node->ctx, "path_mtu_unchecked", NULL);
	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	attr.path_mtu = IBV_MTU_4096 + 1;
	VT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask), EINVAL);
	ts_to_rtr(end);
	VT_EQ(t, ts_query(end).path_mtu, IBV_MTU_4096);
}

/* A device of the profile rxe-6.1, which has no ATOMIC WRITE. */
static void undeclared_operations_taken(struct vt *t)
{
	const struct vb_sim_device_config device = {.name = "rxe", .profile = "rxe-6.1"};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_end *end = ts_other_device(t, &device, &options);
	struct ibv_context *ctx = end->node->ctx;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->pd,
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp_ex(ctx, &init));

	VT_OK(t, vb_destroy_qp(qp));
	ts_quirks_of(t, ctx, "", NULL);
	VT_NULL_ERRNO(t, vb_create_qp_ex(ctx, &init), EOPNOTSUPP);
}

static void responder_resources_unchecked(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	ts_quirks(t, "responder_resources_unchecked", NULL);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_res_rd_atom", 5));
	options.max_dest_rd_atomic = 3;
	for (int i = 0; i < 2; i++)
		ts_connect(ts_end(t, &t->a, &options));
}

static void drained_event_unasked(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "drained_event_unasked", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_event(t, &t->a, IBV_EVENT_SQ_DRAINED, pair->a.qp);
	ts_no_event(t, &t->a);
}

static void draining_sends_nothing(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "draining_sends_nothing", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	ts_pause(t, 100000);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_no_more(t, pair->a.send_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 10);
}

static void rts_starts_nothing(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "rts_starts_nothing", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_no_more(t, pair->a.send_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_no_more(t, pair->a.send_cq);
	ts_write(&pair->a, .wr_id = 2, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
}

static void stateless_modify_unchecked(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.min_rnr_timer = 9};
	struct ts_pair *pair;

	ts_quirks(t, "stateless_modify_unchecked", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	ts_to_rtr(&pair->a);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_MIN_RNR_TIMER));
	VT_EQ(t, ts_query(&pair->a).min_rnr_timer, 9);
	ts_state(&pair->a, IBV_QPS_RTR);
	attr.qp_state = IBV_QPS_RTR;
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER), EINVAL);
}

static void wide_qpns_told(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_attr attr;
	struct ts_pair *pair;
	int mask;

	ts_quirks(t, "wide_qpns_told", NULL);
	pair = ts_pair_reset(t, &options);
	ts_to_init(&pair->a);
	mask = ts_rtr_attr(&pair->a, &attr);
	attr.dest_qp_num |= 0x5000000;
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	VT_EQ(t, ts_query(&pair->a).dest_qp_num, pair->b.qp->qp_num | 0x5000000);
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void reads_round_up(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_quirks(t, "reads_round_up", NULL);
	options.max_rd_atomic = 3;
	options.max_dest_rd_atomic = 5;
	pair = ts_pair(t, &options);
	VT_EQ(t, ts_query(&pair->a).max_rd_atomic, 4);
	VT_EQ(t, ts_query(&pair->a).max_dest_rd_atomic, 8);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
}

static void draining_refuses_changes(struct vt *t)
{
	struct ts_pair *pair;

	ts_quirks(t, "draining_refuses_changes", NULL);
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

	ts_quirks(t, "path_mig_state_taken", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
	pair = ts_connected(t, IBV_QPT_UD);
	VT_ERRNO(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE), EINVAL);
}

/* A pair that was reset while A had two sends posted, and is connected again. */
static struct ts_pair *reset_with_sends(struct vt *t, enum ibv_qp_type type)
{
	struct ts_pair *pair;

	ts_quirks(t, "resets_leave_ghosts", NULL);
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
	/*
	 * The WRITE and two ghosts; on one device the ACK, too. Without ghosts there are at most
	 * 2.
	 */
	VT_CHECK(t, after.sent_packets - before.sent_packets >= 3);
	ts_no_more(t, pair->a.send_cq);
}

/* A ghost is an RDMA WRITE, which a UD QP cannot send. */
static void ghosts_end_a_ud_qp(struct vt *t)
{
	struct ts_pair *pair = reset_with_sends(t, IBV_QPT_UD);

	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_flushed(t, pair->a.send_cq, 3);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void queue_with_ghosts_never_drains(struct vt *t)
{
	struct ts_pair *pair = reset_with_sends(t, IBV_QPT_RC);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ts_no_event(t, &t->a);
}

static const struct vt_test tests[] = {
	{"undeclared_operations_taken", MEASURED_6_1, VT_NEEDS_SIM, undeclared_operations_taken},
	{"wide_numbers_refused", "unsourced", VT_NEEDS_SIM, wide_numbers_refused},
	{"wide_qpns_told", MEASURED_BOTH, VT_NEEDS_SIM, wide_qpns_told},
	{"retry_ranges_unchecked", MEASURED_BOTH, VT_NEEDS_SIM, retry_ranges_unchecked},
	{"pkey_index_unchecked", MEASURED_BOTH, VT_NEEDS_SIM, pkey_index_unchecked},
	{"path_mtu_unchecked", MEASURED_BOTH, VT_NEEDS_SIM, path_mtu_unchecked},
	{"responder_resources_unchecked", SRC_RXE "rxe_qp.c", VT_NEEDS_SIM,
	 responder_resources_unchecked},
	{"reads_round_up", MEASURED_BOTH, VT_NEEDS_SIM, reads_round_up},
	{"path_mig_state_taken", FOUND_BOTH "; " SRC_RXE "rxe_qp.c, rxe_qp_from_attr", VT_NEEDS_SIM,
	 path_mig_state_taken},
	{"stateless_modify_unchecked", MEASURED_6_12, VT_NEEDS_SIM, stateless_modify_unchecked},
	{"drained_event_unasked", MEASURED_BOTH, VT_NEEDS_SIM, drained_event_unasked},
	{"draining_sends_nothing", MEASURED_BOTH, VT_NEEDS_SIM, draining_sends_nothing},
	{"draining_refuses_changes", FOUND_BOTH "; " SRC_RXE "rxe_qp.c, rxe_qp_chk_attr",
	 VT_NEEDS_SIM, draining_refuses_changes},
	{"rts_starts_nothing", MEASURED_BOTH, VT_NEEDS_SIM, rts_starts_nothing},
	{"resets_leave_ghosts", MEASURED_6_12 "; " SRC_RXE "rxe_qp.c, rxe_qp_reset", VT_NEEDS_SIM,
	 resets_leave_ghosts, VT_MAY_RECONNECT},
	{"ghosts_end_a_ud_qp", MEASURED_6_12 "; " SRC_RXE "rxe_req.c, next_opcode", VT_NEEDS_SIM,
	 ghosts_end_a_ud_qp, VT_MAY_RECONNECT},
	{"queue_with_ghosts_never_drains",
	 MEASURED_6_12 "; " SRC_RXE "rxe_req.c, req_check_sq_drain_done", VT_NEEDS_SIM,
	 queue_with_ghosts_never_drains, VT_MAY_RECONNECT},
	{NULL},
};

const struct vt_suite vt_suite_quirks_states = {
	"quirks_states", "quirks: states and attributes of a QP", tests, .simulator = true};
