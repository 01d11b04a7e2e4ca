/* SPDX-License-Identifier: MIT */
/*
 * Where adapters differ: each quirk of the simulator, and what is so where it holds. Its opposite,
 * what the specification says, is held by the other suites.
 */
#include "test/support/quirks.h"
#include "test/support/srq.h"
#include "test/support/window.h"

#include <stdio.h>
#include <verbena/sim.h>

#define RXE_6_1	   "measured on Linux 6.1 rxe"
#define RXE_6_12   "measured on Linux 6.12 rxe"
#define RXE_BOTH   RXE_6_1 " and " RXE_6_12
#define ROWS(rows) (sizeof(rows) / sizeof(*(rows)))

extern const struct vt_suite vt_suite_quirks, vt_suite_quirks_rxe, vt_suite_quirks_walk;

static uint32_t wrong(uint32_t key)
{
	return key ^ 0xffff00;
}

static struct ibv_qp_attr query(struct ts_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(end->t, vb_query_qp(end->qp, &attr, IBV_QP_STATE, &init));
	return attr;
}

/* --- posting --- */

/* By the calls of ibv_wr_start(3). */
static void calls_are_ignored(struct vt *t)
{
	const struct ibv_qp_init_attr_ex init = {
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);
	struct ibv_qp_ex *ex;

	ts_remake_qp(&pair->a, &init);
	ex = VT_PTR(t, vb_qp_to_qp_ex(pair->a.qp));
	ts_to_init(&pair->a);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, pair->a.mr->lkey, (uintptr_t)pair->a.buffer, 8);
	VT_OK(t, ibv_wr_complete(ex));
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_no_more(t, pair->a.send_cq);
}

/* Of a window that is type 1: it has the key that the program was told, and reaches nothing. */
static void bindings_are_ignored(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_mw *mw;
	uint32_t before;

	options.mr_access |= IBV_ACCESS_MW_BIND;
	pair = ts_pair_reset(t, &options);
	mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	before = mw->rkey;
	ts_to_init(&pair->b);
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 1}));
	VT_CHECK(t, mw->rkey != before);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	ts_connect_both(pair);
	ts_no_more(t, pair->b.send_cq);
	ts_bound(&pair->b, mw, .wr_id = 2);
	ts_reaches(pair, mw->rkey, 0);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
	VT_OK(t, ts_bind(&pair->b, mw, &(struct ts_bind){.wr_id = 3}));
	ts_connect(&pair->b);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
	ts_connect(&pair->a);
	ts_refused(pair, mw->rkey, 0);
}

static void posts_ignored_in_wrong_state(struct vt *t)
{
	const struct ts_wr send = {.wr_id = 1, .opcode = IBV_WR_SEND, .length = 8};
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "posts_ignored_in_wrong_state", NULL);
	pair = ts_pair_reset(t, &options);
	VT_OK(t, ts_post(&pair->a, &send));
	VT_OK(t, ts_post_rr(&pair->a, &(struct ts_rr){.wr_id = 2, .length = 8}));
	ts_to_init(&pair->a);
	VT_OK(t, ts_post(&pair->a, &send));
	ts_to_rtr(&pair->a);
	VT_OK(t, ts_post(&pair->a, &send));
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_no_more(t, pair->a.send_cq);
	ts_transfer(pair, IBV_WR_SEND, 100);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->a.recv_cq);
	calls_are_ignored(t);
	bindings_are_ignored(t);
}

/* Sends as many as B has receives for; nothing is polled. */
static void send_all(struct ts_pair *pair, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		ts_send(&pair->a, .wr_id = i, .length = 8);
	ts_settle(pair->a.t);
}

static void slots_of_a_pair(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	uint32_t i, round;

	options.send_wr = options.recv_wr = 4;
	pair = ts_pair(t, &options);
	VT_EQ(t, pair->a.cap.max_send_wr, pair->b.cap.max_recv_wr);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < pair->b.cap.max_recv_wr; i++)
			ts_recv(&pair->b, .wr_id = i, .length = 8);
		send_all(pair, pair->a.cap.max_send_wr);
	}
	for (i = 0; i < 3 * pair->a.cap.max_send_wr; i++) {
		ts_done(t, pair->a.send_cq, i % pair->a.cap.max_send_wr, IBV_WC_SEND);
		ts_received(t, pair->b.recv_cq, i % pair->b.cap.max_recv_wr, 8);
	}
}

static void slots_of_an_srq(struct vt *t)
{
	struct ts_shared *shared = ts_shared_of(t, 4, 1);
	struct ts_pair *pair = ts_pair_on(shared, IBV_QPT_RC);
	uint32_t i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < shared->attr.max_wr; i++)
			ts_srq_recv(shared, .wr_id = i, .length = 8);
		send_all(pair, shared->attr.max_wr);
	}
	for (i = 0; i < 3 * shared->attr.max_wr; i++)
		ts_received(t, pair->b.recv_cq, i % shared->attr.max_wr, 8);
}

static void slots_free_when_completed(struct vt *t)
{
	ts_only(t, "slots_free_when_completed", NULL);
	slots_of_a_pair(t);
	slots_of_an_srq(t);
}

static void forbidden_opcodes_refused(struct vt *t)
{
	static const struct {
		enum ibv_qp_type type;
		enum ibv_wr_opcode opcode;
	} rows[] = {
		{IBV_QPT_UC, IBV_WR_RDMA_READ},
		{IBV_QPT_UC, IBV_WR_ATOMIC_CMP_AND_SWP},
		{IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD},
		{IBV_QPT_UD, IBV_WR_RDMA_WRITE},
		{IBV_QPT_UD, IBV_WR_RDMA_WRITE_WITH_IMM},
		{IBV_QPT_UD, IBV_WR_RDMA_READ},
		{IBV_QPT_UD, IBV_WR_ATOMIC_FETCH_AND_ADD},
	};
	struct ts_pair *pair;
	size_t i;

	ts_only(t, "forbidden_opcodes_refused", NULL);
	for (i = 0; i < ROWS(rows); i++) {
		vt_row(t, "type %d, opcode %d", rows[i].type, rows[i].opcode);
		pair = ts_connected(t, rows[i].type);
		VT_ERRNO(t,
			 ts_post(&pair->a, &(struct ts_wr){.opcode = rows[i].opcode, .length = 8}),
			 EINVAL);
		ts_no_more(t, pair->a.send_cq);
		ts_state(&pair->a, IBV_QPS_RTS);
		ts_transfer(pair, IBV_WR_SEND, 100);
	}
}

/* --- attributes --- */

static void wide_numbers_refused(struct vt *t)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	int mask;

	ts_only(t, "wide_numbers_refused", NULL);
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

	ts_only(t, "retry_ranges_unchecked", NULL);
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
	attr = query(&pair->a);
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

	ts_only(t, "pkey_index_unchecked", NULL);
	pair = ts_pair_reset(t, &options);
	mask = ts_init_attr(&pair->a, &attr);
	attr.pkey_index = (uint16_t)(t->a.port_attr.pkey_tbl_len + 4);
	VT_OK(t, vb_modify_qp(pair->a.qp, &attr, mask));
	VT_EQ(t, query(&pair->a).pkey_index, attr.pkey_index);
	ts_to_rtr(&pair->a);
	ts_to_rts(&pair->a);
	ts_connect(&pair->b);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

/* --- worlds beside the test's --- */

#define PROFILES 4

struct beside {
	struct vb_sim *sim;
	struct ibv_context *contexts[PROFILES];
};

static void close_world(void *arg)
{
	struct beside *beside = arg;

	for (unsigned int i = 0; i < PROFILES && beside->contexts[i]; i++)
		vb_close_device(beside->contexts[i]);
	vb_sim_close(beside->sim);
}

static struct beside *open_world(struct vt *t, const struct vb_sim_config *config)
{
	struct beside *beside = vt_alloc(t, sizeof(*beside));
	struct ibv_device **list;
	int count, i;

	beside->sim = VT_PTR(t, vb_sim_open(config));
	vt_defer(t, close_world, beside);
	list = VT_PTR(t, vb_sim_device_list(beside->sim, &count));
	for (i = 0; i < count && i < PROFILES; i++)
		beside->contexts[i] = vb_open_device(list[i]);
	vb_free_device_list(list);
	VT_EQ(t, count, config->device_count);
	for (i = 0; i < count; i++)
		VT_CHECK(t, beside->contexts[i]);
	return beside;
}

static void path_mtu_unchecked(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct vt_node node = {.port = 1, .gid_index = 1};
	struct ibv_qp_attr attr;
	struct ts_end *end;
	int mask;

	*config = (struct vb_sim_config){.device_count = 1,
					 .devices = {{.name = "small", .mtu = IBV_MTU_1024}}};
	node.ctx = open_world(t, config)->contexts[0];
	ts_only_on(t, node.ctx, "path_mtu_unchecked", NULL);
	VT_OK(t, vb_query_port(node.ctx, 1, &node.port_attr, sizeof(node.port_attr)));
	VT_EQ(t, node.port_attr.active_mtu, IBV_MTU_1024);
	VT_OK(t, vb_query_gid(node.ctx, 1, node.gid_index, &node.gid));
	options.mtu = IBV_MTU_4096;
	end = ts_end(t, &node, &options);
	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	attr.path_mtu = IBV_MTU_4096 + 1;
	VT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask), EINVAL);
	ts_to_rtr(end);
	VT_EQ(t, query(end).path_mtu, IBV_MTU_4096);
}

/* Of SoftRoCE, which says 8 MiB and sends more; without the quirk it would not. */
static void message_limit_unchecked(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct vt_node node = {.port = 1, .gid_index = 1};
	struct ts_end *end;
	uint32_t most;

	*config = (struct vb_sim_config){.device_count = 1,
					 .devices = {{.name = "rxe", .profile = "rxe-6.12"}}};
	node.ctx = open_world(t, config)->contexts[0];
	VT_OK(t, vb_query_port(node.ctx, 1, &node.port_attr, sizeof(node.port_attr)));
	VT_OK(t, vb_query_gid(node.ctx, 1, node.gid_index, &node.gid));
	most = node.port_attr.max_msg_sz;
	VT_EQ(t, most, 8 << 20);
	options.buffer_bytes = 2 * most + 2;
	end = ts_end(t, &node, &options);
	ts_connect(end);
	ts_write(end, .wr_id = 1, .length = most + 1, .remote_offset = most + 1);
	ts_done(t, end->send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, end->buffer + most + 1, most + 1, 1);
	ts_only_on(t, node.ctx, "", NULL);
	ts_write(end, .wr_id = 2, .length = most, .remote_offset = most + 1);
	ts_done(t, end->send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_write(end, .wr_id = 3, .length = most + 1, .remote_offset = most + 1);
	ts_failed(t, end->send_cq, 3, IBV_WC_LOC_LEN_ERR);
}

/* Of SoftRoCE of 6.1, which has no ATOMIC WRITE; without the quirk nobody would make such a QP. */
static void undeclared_operations_taken(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct vt_node node = {.port = 1, .gid_index = 1};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ts_end *end;
	struct ibv_qp *qp;

	*config = (struct vb_sim_config){.device_count = 1,
					 .devices = {{.name = "rxe", .profile = "rxe-6.1"}}};
	node.ctx = open_world(t, config)->contexts[0];
	VT_OK(t, vb_query_port(node.ctx, 1, &node.port_attr, sizeof(node.port_attr)));
	VT_OK(t, vb_query_gid(node.ctx, 1, node.gid_index, &node.gid));
	end = ts_end(t, &node, &options);
	init.pd = end->pd;
	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	qp = VT_PTR(t, vb_create_qp_ex(node.ctx, &init));
	VT_OK(t, vb_destroy_qp(qp));
	ts_only_on(t, node.ctx, "", NULL);
	errno = 0;
	VT_CHECK(t, !vb_create_qp_ex(node.ctx, &init));
	VT_EQ(t, errno, EOPNOTSUPP);
}

static void responder_resources_unchecked(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	ts_only(t, "responder_resources_unchecked", NULL);
	VT_OK(t, vb_sim_lower_limit(t->a.ctx, "max_res_rd_atom", 5));
	options.max_dest_rd_atomic = 3;
	for (int i = 0; i < 2; i++)
		ts_connect(ts_end(t, &t->a, &options));
}

static void zero_based_type_1_refused(struct vt *t)
{
	struct ts_pair *pair = ts_window_pair(t);
	struct ibv_mw *mw = ts_mw(&pair->b, IBV_MW_TYPE_1);
	uint32_t before = mw->rkey;

	ts_only(t, "zero_based_type_1_refused", NULL);
	VT_ERRNO(t,
		 ts_bind(&pair->b, mw,
			 &(struct ts_bind){.wr_id = 1,
					   .access = IBV_ACCESS_REMOTE_WRITE |
						     IBV_ACCESS_ZERO_BASED}),
		 EINVAL);
	VT_EQ(t, mw->rkey, before);
	ts_bound(&pair->b, mw, .wr_id = 2);
	ts_reaches(pair, mw->rkey, 0);
}

/* --- retries --- */

static void retry_7_is_endless(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_only(t, "retry_7_is_endless", NULL);
	options.timeout = 8;
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	/* 8 times 1 ms would end it. */
	ts_pause(t, 3000000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &wc), 0);
	ts_state(&pair->a, IBV_QPS_RTS);
	ts_connect(&pair->b);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 8, 1);
}

/* --- completion queues --- */

/* A pair whose A has completed extra WRs more than its send CQ holds. */
static struct ts_pair *overrun(struct vt *t, int extra)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	int i;

	options.send_cqe = 4;
	options.send_wr = 64;
	pair = ts_pair(t, &options);
	VT_CHECK(t, pair->a.send_cq->cqe + extra <= 64);
	for (i = 0; i < pair->a.send_cq->cqe + extra; i++)
		ts_write(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	ts_settle(t);
	return pair;
}

static void sender_lives_on(struct vt *t)
{
	struct ts_pair *pair = overrun(t, 3);
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

/* The message is not acknowledged: its sender repeats it until it gives up. */
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
	/* The CQ takes what comes now. */
	ts_recv(&pair->b, .wr_id = 99, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 99);
}

static void overrun_loses_completions(struct vt *t)
{
	ts_only(t, "overrun_loses_completions", NULL);
	sender_lives_on(t);
	responder_ends(t);
}

static void overrun_ends_polling(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;

	ts_only(t, "overrun_ends_polling", NULL);
	pair = overrun(t, 1);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_event(t, &t->a, IBV_EVENT_QP_FATAL, pair->a.qp);
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
	VT_CHECK(t, ibv_poll_cq(pair->a.send_cq, 1, &wc) < 0);
}

/* A receive of another QP that is flushed into the CQ. */
static void flush_neighbour(struct ts_end *end, uint64_t wr_id)
{
	struct ibv_qp *qp = ts_qp(end->t, end->pd, end->send_cq, IBV_QPT_UD);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = end->node->port, .qkey = TS_QKEY};
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

	ts_only(t, "reset_removes_completions", NULL);
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

static struct ts_pair *with_channels(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);

	options.channels = true;
	return ts_pair(t, &options);
}

static bool got_event(struct ts_pair *pair)
{
	struct ibv_cq *cq;

	return ts_cq_event(pair->a.t, pair->b.recv_channel, &cq);
}

static void pending_completions_notify(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "pending_completions_notify", NULL);
	pair = with_channels(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_settle(t);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_CHECK(t, got_event(pair));
	VT_CHECK(t, !got_event(pair));
	ts_received(t, pair->b.recv_cq, 5, 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	VT_CHECK(t, !got_event(pair));
}

static void errors_are_not_solicited(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "errors_are_not_solicited", NULL);
	pair = with_channels(t);
	ts_recv(&pair->b, .wr_id = 5, .length = 8);
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 1));
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_flushed(t, pair->b.recv_cq, 5);
	VT_CHECK(t, !got_event(pair));
	VT_OK(t, ibv_req_notify_cq(pair->b.recv_cq, 0));
	ts_recv(&pair->b, .wr_id = 6, .length = 8);
	ts_flushed(t, pair->b.recv_cq, 6);
	VT_CHECK(t, got_event(pair));
}

/* --- asynchronous events --- */

static void withheld_after(struct vt *t, int access, uint32_t key, enum ibv_wc_status status)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	options.qp_access = access;
	pair = ts_pair(t, &options);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = pair->b.mr->rkey ^ key);
	ts_failed(t, pair->a.send_cq, 1, status);
	ts_state(&pair->b, IBV_QPS_ERR);
	ts_no_event(t, &t->b);
}

static void no_affiliated_events(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;

	ts_only(t, "no_affiliated_events", NULL);
	vt_row(t, "QP_ACCESS_ERR");
	withheld_after(t, options.qp_access, wrong(0), IBV_WC_REM_ACCESS_ERR);
	vt_row(t, "QP_REQ_ERR");
	withheld_after(t, 0, 0, IBV_WC_REM_INV_REQ_ERR);

	vt_row(t, "COMM_EST");
	pair = ts_pair_reset(t, &options);
	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	ts_to_rtr(&pair->b);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_no_event(t, &t->b);

	vt_row(t, "QP_FATAL");
	pair = overrun(t, 1);
	ts_event(t, &t->a, IBV_EVENT_CQ_ERR, pair->a.send_cq);
	ts_no_event(t, &t->a);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static void no_last_wqe_event(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "no_last_wqe_event", NULL);
	pair = ts_pair_on(ts_shared(t), IBV_QPT_RC);
	VT_OK(t, ts_to(&pair->b, IBV_QPS_ERR));
	ts_settle(t);
	ts_no_event(t, &t->b);
}

/* --- the sender's errors --- */

static void send_errors_end_qp(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	struct ts_pair *pair;
	size_t i;

	ts_only(t, "send_errors_end_qp", NULL);
	for (i = 0; i < ROWS(types); i++) {
		vt_row(t, "type %d", types[i]);
		pair = ts_connected(t, types[i]);
		ts_recv(&pair->a, .wr_id = 60, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 8, .lkey = wrong(pair->a.mr->lkey));
		ts_send(&pair->a, .wr_id = 2, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
		ts_flushed(t, pair->a.send_cq, 2);
		ts_flushed(t, pair->a.recv_cq, 60);
		ts_state(&pair->a, IBV_QPS_ERR);
	}
}

enum spoil { KEY, OTHER_PD, PAST_END };

struct local_row {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t length;
	enum spoil spoil;
	enum ibv_wc_status status;
};

static void run_local_row(struct vt *t, const struct local_row *row)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ts_wr wr = {.wr_id = 2, .opcode = row->opcode, .length = row->length};
	struct ts_end *a = &pair->a;

	vt_row(t, "%s", row->name);
	if (row->spoil == KEY)
		wr.lkey = wrong(a->mr->lkey);
	else if (row->spoil == OTHER_PD)
		wr.lkey =
			ts_mr(t, ts_pd(t, &t->a), a->buffer, a->options.buffer_bytes, TS_ACCESS_ALL)
				->lkey;
	else
		wr.offset = a->options.buffer_bytes - row->length + 1;
	ts_write(a, .wr_id = 1);
	VT_OK(t, ts_post(a, &wr));
	ts_write(a, .wr_id = 3);
	ts_done(t, a->send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_failed(t, a->send_cq, 2, row->status);
	ts_flushed(t, a->send_cq, 3);
	ts_state(a, IBV_QPS_ERR);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void bad_lkey_is_operation_error(struct vt *t)
{
	static const struct local_row rows[] = {
		{"send", IBV_WR_SEND, 100, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"write", IBV_WR_RDMA_WRITE, 100, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"write of several packets", IBV_WR_RDMA_WRITE, 20000, KEY, IBV_WC_LOC_QP_OP_ERR},
		{"send, other PD", IBV_WR_SEND, 100, OTHER_PD, IBV_WC_LOC_QP_OP_ERR},
		{"send, past the end", IBV_WR_SEND, 100, PAST_END, IBV_WC_LOC_PROT_ERR},
		{"read", IBV_WR_RDMA_READ, 100, KEY, IBV_WC_LOC_PROT_ERR},
	};
	size_t i;

	ts_only(t, "bad_lkey_is_operation_error", NULL);
	for (i = 0; i < ROWS(rows); i++)
		run_local_row(t, &rows[i]);
}

static void bad_lkey_is_flush(struct vt *t)
{
	static const struct local_row rows[] = {
		{"send", IBV_WR_SEND, 100, KEY, IBV_WC_WR_FLUSH_ERR},
		{"write", IBV_WR_RDMA_WRITE, 100, KEY, IBV_WC_WR_FLUSH_ERR},
		{"write of several packets", IBV_WR_RDMA_WRITE, 20000, KEY, IBV_WC_WR_FLUSH_ERR},
		{"send, other PD", IBV_WR_SEND, 100, OTHER_PD, IBV_WC_WR_FLUSH_ERR},
		{"send, past the end", IBV_WR_SEND, 100, PAST_END, IBV_WC_WR_FLUSH_ERR},
		{"read", IBV_WR_RDMA_READ, 100, KEY, IBV_WC_LOC_PROT_ERR},
	};
	size_t i;

	ts_only(t, "bad_lkey_is_flush", NULL);
	for (i = 0; i < ROWS(rows); i++)
		run_local_row(t, &rows[i]);
}

static void long_datagrams_fail(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);
	uint32_t bytes = ts_mtu_bytes(t->a.port_attr.active_mtu) + 1;

	ts_only(t, "long_datagrams_fail", NULL);
	ts_recv(&pair->b, .wr_id = 5, .length = bytes + TS_GRH);
	ts_send(&pair->a, .wr_id = 1, .length = bytes);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_LEN_ERR);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->a, IBV_QPS_SQE);
}

/* --- the receiver's errors --- */

struct receive_row {
	const char *name;
	enum ibv_qp_type type;
	uint32_t length; /* of the message */
};

static const struct receive_row receive_rows[] = {
	{"one packet", IBV_QPT_RC, 100},
	{"several packets", IBV_QPT_RC, 9000},
	{"unreliable", IBV_QPT_UC, 100},
};

/* B's receives have that much room, in memory with those rights; UC tells A nothing. */
static void fail_receives(struct vt *t, uint32_t room, int access)
{
	const struct receive_row *row;
	struct ts_pair *pair;
	struct ibv_mr *mr;

	for (row = receive_rows; row < receive_rows + ROWS(receive_rows); row++) {
		vt_row(t, "%s", row->name);
		pair = ts_connected(t, row->type);
		mr = ts_mr(t, pair->b.pd, pair->b.buffer, pair->b.options.buffer_bytes, access);
		ts_recv(&pair->b, .wr_id = 50, .length = room, .lkey = mr->lkey);
		ts_recv(&pair->b, .wr_id = 51, .length = room, .lkey = mr->lkey);
		ts_send(&pair->a, .wr_id = 1, .length = row->length);
		if (row->type == IBV_QPT_RC)
			ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_OP_ERR);
		else
			ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
		ts_flushed(t, pair->b.recv_cq, 51);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

static void short_receive_is_operation_error(struct vt *t)
{
	ts_only(t, "short_receive_is_operation_error", NULL);
	fail_receives(t, 99, IBV_ACCESS_LOCAL_WRITE);
}

static void bad_receive_is_operation_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "bad_receive_is_operation_error", NULL);
	fail_receives(t, 10000, 0);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100, .lkey = pair->b.mr->lkey ^ 0x80);
	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
}

static void short_datagram_receive_fails(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "short_datagram_receive_fails", NULL);
	pair = ts_connected(t, IBV_QPT_UD);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 200);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_LOC_QP_OP_ERR);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
}

static void imm_write_receive_is_remote_error(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "imm_write_receive_is_remote_error", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 50, .length = 100);
	ts_recv(&pair->b, .wr_id = 51, .length = 100);
	ts_write_imm(&pair->a, .wr_id = 1, .length = 100, .rkey = wrong(pair->b.mr->rkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_failed(t, pair->b.recv_cq, 50, IBV_WC_REM_ACCESS_ERR);
	ts_flushed(t, pair->b.recv_cq, 51);
	ts_state(&pair->b, IBV_QPS_ERR);
}

/* --- what a responder takes --- */

static void send_between_mtus(struct vt *t, enum ibv_mtu a, enum ibv_mtu b)
{
	const struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	pair->a.options.mtu = a;
	pair->b.options.mtu = b;
	ts_connect_both(pair);
	ts_transfer(pair, IBV_WR_SEND, 3000);
	/* Of an RDMA WRITE they are checked. */
	ts_write(&pair->a, .wr_id = 7, .length = 3000, .rkey = pair->b.mr->rkey);
	ts_failed(t, pair->a.send_cq, 7, IBV_WC_REM_INV_REQ_ERR);
}

static void packet_sizes_unchecked(struct vt *t)
{
	ts_only(t, "packet_sizes_unchecked", NULL);
	vt_row(t, "1024 to 256");
	send_between_mtus(t, IBV_MTU_1024, IBV_MTU_256);
	vt_row(t, "256 to 1024");
	send_between_mtus(t, IBV_MTU_256, IBV_MTU_1024);
}

static void window_bounds_unchecked(struct vt *t)
{
	static const enum ibv_mw_type types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};
	struct ts_pair *pair;
	struct ibv_mw *mw;
	size_t i;

	ts_only(t, "window_bounds_unchecked", NULL);
	for (i = 0; i < ROWS(types); i++) {
		vt_row(t, "type %d", types[i]);
		ts_need_windows(t, types[i]);
		pair = ts_window_pair(t);
		mw = ts_mw(&pair->b, types[i]);
		ts_bound(&pair->b, mw, .wr_id = 9, .offset = 1000);
		ts_reaches(pair, mw->rkey, 0);
		ts_reaches(pair, mw->rkey, 60000);
		/* The region's bounds stand, and the window's rights. */
		ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = mw->rkey,
			 .remote_offset = pair->b.options.buffer_bytes - 4);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	}
}

/* B is connected to a QP of A's that is not the one that sends. */
static struct ts_pair *strangers(struct vt *t, enum ibv_qp_type type)
{
	struct ts_options options = ts_defaults(t, type);
	struct ts_end *other;
	struct ts_pair *pair;
	struct ibv_qp_attr attr;
	int mask;

	options.timeout = 8;
	options.retry_cnt = 2;
	pair = ts_pair_reset(t, &options);
	other = ts_end(t, &t->a, &options);
	ts_connect(&pair->a);
	ts_to_init(&pair->b);
	mask = ts_rtr_attr(&pair->b, &attr);
	attr.dest_qp_num = other->qp->qp_num;
	VT_OK(t, vb_modify_qp(pair->b.qp, &attr, mask));
	ts_to_rts(&pair->b);
	return pair;
}

static void foreign_requests_accepted(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "foreign_requests_accepted", NULL);
	vt_row(t, "UC");
	pair = strangers(t, IBV_QPT_UC);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 16);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 16);

	/* The acknowledgement goes to the other. */
	vt_row(t, "RC");
	pair = strangers(t, IBV_QPT_RC);
	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	ts_send(&pair->a, .wr_id = 1, .length = 16);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_received(t, pair->b.recv_cq, 5, 16);
	ts_no_more(t, pair->b.recv_cq);
	ts_state(&pair->b, IBV_QPS_RTS);
}

static void grh_flag_on_connections(struct vt *t)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
	struct ts_pair *pair;
	struct ibv_wc wc;
	size_t i;

	ts_only(t, "grh_flag_on_connections", NULL);
	for (i = 0; i < ROWS(types); i++) {
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

static void empty_accesses_checked(struct vt *t)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct ts_pair *pair;
	size_t i;

	ts_only(t, "empty_accesses_checked", NULL);
	for (i = 0; i < ROWS(opcodes); i++) {
		vt_row(t, "opcode %d", opcodes[i]);
		pair = ts_connected(t, IBV_QPT_RC);
		TS_POST(&pair->a, opcodes[i], .wr_id = 1);
		TS_POST(&pair->a, opcodes[i], .wr_id = 2, .rkey = wrong(pair->b.mr->rkey));
		ts_done(t, pair->a.send_cq, 1,
			opcodes[i] == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
		ts_failed(t, pair->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
		ts_state(&pair->b, IBV_QPS_ERR);
	}
}

/* --- domains and regions --- */

static void ah_keeps_pd_busy(struct vt *t)
{
	struct ibv_ah *ah;
	struct ibv_pd *pd;

	ts_only(t, "ah_keeps_pd_busy", NULL);
	pd = ts_pd(t, &t->a);
	ah = ts_ah(t, pd, &t->a, &t->b);
	VT_ERRNO(t, vb_dealloc_pd(pd), EBUSY);
	VT_OK(t, vb_destroy_ah(ah));
	ts_gone(t, ah);
	VT_OK(t, vb_dealloc_pd(pd));
	ts_gone(t, pd);
}

static void empty_regions_refused(struct vt *t)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	uint8_t *memory;

	ts_only(t, "empty_regions_refused", NULL);
	pd = ts_pd(t, &t->a);
	memory = ts_memory(t, 4096);
	VT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	mr = VT_PTR(t, vb_reg_mr(pd, memory + 1, 0, IBV_ACCESS_LOCAL_WRITE));
	VT_OK(t, vb_dereg_mr(mr));
}

static void local_write_not_required(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_mr *mr;

	ts_only(t, "local_write_not_required", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	mr = ts_mr(t, pair->b.pd, pair->b.buffer, 4096,
		   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = mr->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 100, 1);
	ts_fetch_add(&pair->a, .wr_id = 2, .rkey = mr->rkey);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_FETCH_ADD);
}

/* --- flushing --- */

static void receives_flush_first(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	unsigned int i;

	ts_only(t, "receives_flush_first", NULL);
	options.one_cq = true;
	pair = ts_pair(t, &options);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	for (i = 0; i < 4; i++) {
		ts_send(&pair->a, .wr_id = i, .length = 8);
		ts_recv(&pair->a, .wr_id = 100 + i, .length = 8);
	}
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	for (i = 0; i < 4; i++)
		ts_flushed(t, pair->a.send_cq, 100 + i);
	for (i = 0; i < 4; i++)
		ts_flushed(t, pair->a.send_cq, i);
}

static void errored_receives_wait(struct vt *t)
{
	struct ts_pair *pair;

	ts_only(t, "errored_receives_wait", NULL);
	pair = ts_connected(t, IBV_QPT_RC);
	ts_recv(&pair->a, .wr_id = 4, .length = 8);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.recv_cq, 4);
	ts_recv(&pair->a, .wr_id = 5, .length = 8);
	ts_send(&pair->a, .wr_id = 6, .length = 8);
	ts_flushed(t, pair->a.send_cq, 6);
	ts_no_more(t, pair->a.recv_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_ERR));
	ts_flushed(t, pair->a.recv_cq, 5);
	ts_no_more(t, pair->a.recv_cq);
}

/* --- the quirks themselves --- */

static bool has_test(const struct vt_suite *suite, const char *name)
{
	const struct vt_test *test;

	for (test = suite->tests; test->name; test++)
		if (!strcmp(test->name, name))
			return true;
	return false;
}

static void every_quirk_has_a_test(struct vt *t)
{
	const char *name, *about;
	unsigned int i;

	for (i = 0; (name = vb_sim_quirk_name(i, &about)); i++) {
		vt_row(t, "%s", name);
		VT_EXPECT(t, about && *about);
		VT_EXPECT(t, has_test(&vt_suite_quirks, name) ||
				     has_test(&vt_suite_quirks_rxe, name) ||
				     has_test(&vt_suite_quirks_walk, name));
	}
	VT_EXPECT(t, i > 30);
}

static void unknown_name_is_einval(struct vt *t)
{
	bool on = true;

	VT_ERRNO(t, vb_sim_set_quirk(t->a.ctx, "no_such_quirk", true), EINVAL);
	VT_ERRNO(t, vb_sim_set_quirk(t->a.ctx, "", true), EINVAL);
	VT_ERRNO(t, vb_sim_quirk(t->a.ctx, "no_such_quirk", &on), EINVAL);
	VT_CHECK(t, on);
}

static void set_on_one_device_only(struct vt *t)
{
	const char *name = vb_sim_quirk_name(0, NULL);
	bool on = false;

	ts_only(t, "", NULL);
	VT_OK(t, vb_sim_set_quirk(t->a.ctx, name, true));
	VT_OK(t, vb_sim_quirk(t->a.ctx, name, &on));
	VT_CHECK(t, on);
	VT_OK(t, vb_sim_quirk(t->b.ctx, name, &on));
	VT_CHECK(t, !on);
	VT_OK(t, vb_sim_set_quirk(t->a.ctx, name, false));
	VT_OK(t, vb_sim_quirk(t->a.ctx, name, &on));
	VT_CHECK(t, !on);
}

/* Each between blanks. */
#define RXE_HAS                                                                               \
	" slots_free_when_completed retry_ranges_unchecked pkey_index_unchecked "             \
	"path_mtu_unchecked retry_7_is_endless overrun_loses_completions "                    \
	"no_affiliated_events send_errors_end_qp short_receive_is_operation_error "           \
	"bad_receive_is_operation_error window_bounds_unchecked foreign_requests_accepted "   \
	"grh_flag_on_connections imm_write_receive_is_remote_error ah_keeps_pd_busy "         \
	"empty_regions_refused message_limit_unchecked responder_resources_unchecked "        \
	"zero_based_type_1_refused "                                                          \
	"queue_sizes_round_up refused_posts_name_no_wr "                                      \
	"drained_event_unasked draining_sends_nothing wide_qpns_told reads_round_up "         \
	"high_qkey_is_sent own_datagrams_lack_checksum message_lengths_unchecked "            \
	"unknown_srq_bits_taken srqs_on_uc srq_memory_is_of_the_qp "                          \
	"multicast_leaves_device invalidation_told_as_checksum window_rkeys_masked "          \
	"window_ranges_wrap bound_regions_are_einval unknown_cq_flags_taken "                 \
	"rts_starts_nothing inline_shares_room sends_tell_immediate "                         \
	"atomics_checked_when_posted reads_without_room_wait "                                \
	"refused_invalidations_acknowledged refused_sends_stay_queued foreign_ahs_end_sends " \
	"type_1_bound_by_sends rnr_naks_stop_nothing acks_of_old_connections "                \
	"acks_of_unsent_complete cut_writes_jam_uc errors_are_not_solicited "                 \
	"repeated_fences_wait_for_all stale_window_rkeys_refused "                            \
	"windows_invalidated_by_any_qp draining_refuses_changes long_read_responses_taken "   \
	"odd_bindings_refused room_is_checked_last repeated_reads_may_differ "                \
	"repeated_bindings_fail path_mig_state_taken atomics_tell_all_bytes "                 \
	"repeats_outlive_reset "

static const struct {
	const char *profile, *quirks;
} profiles[PROFILES] = {
	{"spec", " "},
	{"rxe-6.1",
	 RXE_HAS "bad_lkey_is_operation_error no_last_wqe_event packet_sizes_unchecked "
		 "short_datagram_receive_fails receives_flush_first "
		 "errored_receives_wait asked_sizes_told "
		 "window_regions_of_any_pd bad_invalidation_is_operation_error "
		 "local_regions_have_no_rkey undeclared_operations_taken "
		 "flushed_receives_are_solicited errored_sends_may_wait local_errors_end_repeats "},
	{"rxe-6.12", RXE_HAS "bad_lkey_is_flush rnr_waits_time_out stateless_modify_unchecked "
			     "special_regions_refused errored_receives_wait errors_repeat "
			     "local_errors_flush_all resets_leave_ghosts "},
	{"mlx5", " reset_removes_completions posts_ignored_in_wrong_state overrun_ends_polling "
		 "long_datagrams_fail zero_based_type_1_refused "},
};

static void profiles_have_their_quirks(struct vt *t)
{
	struct vb_sim_config *config = vt_alloc(t, sizeof(*config));
	struct beside *beside;
	char word[64];
	const char *name;
	unsigned int i, j;
	bool on;

	*config = (struct vb_sim_config){.device_count = PROFILES};
	for (i = 0; i < PROFILES; i++) {
		snprintf(config->devices[i].name, sizeof(config->devices[i].name), "d%u", i);
		strcpy(config->devices[i].profile, profiles[i].profile);
	}
	beside = open_world(t, config);
	for (i = 0; i < PROFILES; i++)
		for (j = 0; (name = vb_sim_quirk_name(j, NULL)); j++) {
			vt_row(t, "%s: %s", profiles[i].profile, name);
			snprintf(word, sizeof(word), " %s ", name);
			VT_OK(t, vb_sim_quirk(beside->contexts[i], name, &on));
			VT_EXPECT_EQ(t, on, strstr(profiles[i].quirks, word) != NULL);
		}
}

static const struct vt_test tests[] = {
	{"posts_ignored_in_wrong_state", "unsourced", VT_NEEDS_SIM, posts_ignored_in_wrong_state,
	 VT_MAY_RECONNECT},
	{"slots_free_when_completed", RXE_BOTH " for sends; receives: unsourced",
	 VT_NEEDS_SIM | VT_NEEDS_SRQ, slots_free_when_completed},
	{"wide_numbers_refused", "unsourced", VT_NEEDS_SIM, wide_numbers_refused},
	{"retry_ranges_unchecked", RXE_BOTH, VT_NEEDS_SIM, retry_ranges_unchecked},
	{"pkey_index_unchecked", RXE_BOTH, VT_NEEDS_SIM, pkey_index_unchecked},
	{"path_mtu_unchecked", RXE_BOTH, VT_NEEDS_SIM, path_mtu_unchecked},
	{"retry_7_is_endless", RXE_BOTH, VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK, retry_7_is_endless},
	{"overrun_loses_completions", RXE_BOTH, VT_NEEDS_SIM, overrun_loses_completions},
	{"overrun_ends_polling", "unsourced", VT_NEEDS_SIM, overrun_ends_polling},
	{"reset_removes_completions", "unsourced", VT_NEEDS_SIM, reset_removes_completions},
	{"no_affiliated_events", RXE_BOTH, VT_NEEDS_SIM, no_affiliated_events},
	{"no_last_wqe_event", RXE_6_1, VT_NEEDS_SIM | VT_NEEDS_SRQ, no_last_wqe_event},
	{"send_errors_end_qp", RXE_6_1, VT_NEEDS_SIM, send_errors_end_qp},
	{"short_receive_is_operation_error", RXE_BOTH, VT_NEEDS_SIM,
	 short_receive_is_operation_error},
	{"bad_receive_is_operation_error", RXE_BOTH, VT_NEEDS_SIM, bad_receive_is_operation_error},
	{"bad_lkey_is_operation_error", RXE_6_1, VT_NEEDS_SIM, bad_lkey_is_operation_error},
	{"bad_lkey_is_flush", RXE_6_12, VT_NEEDS_SIM, bad_lkey_is_flush},
	{"long_datagrams_fail", "unsourced", VT_NEEDS_SIM, long_datagrams_fail},
	{"packet_sizes_unchecked", RXE_6_1, VT_NEEDS_SIM | VT_NEEDS_MTU_1024,
	 packet_sizes_unchecked},
	{"window_bounds_unchecked", RXE_BOTH " for type 1; type 2: unsourced", VT_NEEDS_SIM,
	 window_bounds_unchecked},
	{"short_datagram_receive_fails", RXE_6_1, VT_NEEDS_SIM, short_datagram_receive_fails},
	{"foreign_requests_accepted", RXE_BOTH, VT_NEEDS_SIM, foreign_requests_accepted,
	 VT_MAY_MISADDRESS},
	{"grh_flag_on_connections", RXE_BOTH, VT_NEEDS_SIM, grh_flag_on_connections},
	{"pending_completions_notify", "unsourced", VT_NEEDS_SIM, pending_completions_notify},
	{"errors_are_not_solicited", RXE_6_12, VT_NEEDS_SIM, errors_are_not_solicited},
	{"imm_write_receive_is_remote_error", RXE_BOTH, VT_NEEDS_SIM,
	 imm_write_receive_is_remote_error},
	{"ah_keeps_pd_busy", "unsourced (measured on Linux rxe only with a QP there as well)",
	 VT_NEEDS_SIM, ah_keeps_pd_busy},
	{"empty_regions_refused", RXE_BOTH, VT_NEEDS_SIM, empty_regions_refused},
	{"local_write_not_required", "unsourced", VT_NEEDS_SIM | VT_NEEDS_ATOMICS,
	 local_write_not_required},
	{"forbidden_opcodes_refused", "unsourced", VT_NEEDS_SIM, forbidden_opcodes_refused},
	{"empty_accesses_checked", "unsourced", VT_NEEDS_SIM, empty_accesses_checked},
	{"receives_flush_first", RXE_6_1, VT_NEEDS_SIM, receives_flush_first},
	{"errored_receives_wait", RXE_6_1, VT_NEEDS_SIM, errored_receives_wait},
	{"message_limit_unchecked", RXE_BOTH, VT_NEEDS_SIM, message_limit_unchecked},
	{"responder_resources_unchecked", "Linux drivers/infiniband/sw/rxe/rxe_qp.c", VT_NEEDS_SIM,
	 responder_resources_unchecked},
	{"undeclared_operations_taken", RXE_6_1, VT_NEEDS_SIM, undeclared_operations_taken},
	{"zero_based_type_1_refused",
	 "rdma-core providers/rxe/rxe.c and providers/mlx5/verbs.c: bind_mw", VT_NEEDS_SIM,
	 zero_based_type_1_refused},
	{"every_quirk_has_a_test", "include/verbena/sim.h, vb_sim_quirk_name", VT_NEEDS_SIM,
	 every_quirk_has_a_test},
	{"unknown_name_is_einval", "include/verbena/sim.h, vb_sim_set_quirk", VT_NEEDS_SIM,
	 unknown_name_is_einval},
	{"set_on_one_device_only", "include/verbena/sim.h, vb_sim_set_quirk",
	 VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES, set_on_one_device_only},
	{"profiles_have_their_quirks", "include/verbena/sim.h, vb_sim_set_quirk", VT_NEEDS_SIM,
	 profiles_have_their_quirks},
	{NULL},
};

const struct vt_suite vt_suite_quirks = {"quirks", "where adapters differ", tests,
					 .simulator = true};
