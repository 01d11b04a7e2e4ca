/* SPDX-License-Identifier: MIT */
/*
 * Connections: requests, answers, their parameters and their private data.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#define SRC_CMA SRC_CORE "cma.c, "

/* The reasons of REJ messages: Linux include/rdma/ib_cm.h. */
enum { NO_SERVICE = 8, BY_CONSUMER = 28, VENDOR_OPTION = 35 };

static struct ibv_qp_attr query(struct vt *t, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(t, vb_query_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
			     &init));
	return attr;
}

static void data_flow_both_ways(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	VT_STATE(t, query(t, pair->a->qp).qp_state, IBV_QPS_RTS);
	VT_STATE(t, query(t, pair->b->qp).qp_state, IBV_QPS_RTS);
	tc_send(t, pair->a, pair->b);
	tc_send(t, pair->b, pair->a);
}

/* Posts a request from one side to memory of the other one, and waits for it. */
static void access_remotely(struct vt *t, enum ibv_wr_opcode opcode, struct rdma_cm_id *from,
			    struct rdma_cm_id *to, bool writes)
{
	uint8_t *ours = ts_memory(t, 64), *theirs = ts_memory(t, 64);
	struct ibv_mr *our_mr = ts_mr(t, from->qp->pd, ours, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *their_mr = ts_mr(t, to->qp->pd, theirs, 64, TS_ACCESS_ALL);
	struct ibv_sge sge = {(uintptr_t)ours, 64, our_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .wr.rdma = {(uintptr_t)theirs, their_mr->rkey}},
			   *bad;
	struct ibv_wc wc;

	ts_fill(writes ? ours : theirs, 64, 7);
	VT_OK(t, vb_post_send(from->qp, &wr, &bad));
	VT_EQ(t, ts_wait(t, from->send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	ts_verify(t, writes ? theirs : ours, 64, 7);
}

/* A QP is made before the rights are known: they come with the connection. */
static void the_qps_grant_remote_access(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	access_remotely(t, IBV_WR_RDMA_WRITE, pair->a, pair->b, true);
	access_remotely(t, IBV_WR_RDMA_WRITE, pair->b, pair->a, true);
	access_remotely(t, IBV_WR_RDMA_READ, pair->a, pair->b, false);
	access_remotely(t, IBV_WR_RDMA_READ, pair->b, pair->a, false);
}

/* Checks that the event has the bytes, and zeros behind them. */
static void check_data(struct vt *t, const struct tc_event *seen, const uint8_t *data,
		       uint8_t bytes, uint8_t whole)
{
	static const uint8_t zeros[256];

	VT_EQ(t, seen->data_bytes, whole);
	VT_EQ_MEM(t, seen->data, data, bytes);
	VT_EQ_MEM(t, seen->data + bytes, zeros, whole - bytes);
}

static void private_data_of_request_and_answer(struct vt *t)
{
	static const uint8_t lengths[][2] = {{56, 196}, {1, 1}, {0, 0}, {55, 100}};
	uint8_t asked[56], answered[196];

	vt_random_fill(t, asked, sizeof(asked));
	vt_random_fill(t, answered, sizeof(answered));
	for (size_t i = 0; i < TS_COUNT(lengths); i++) {
		struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
		struct rdma_conn_param ask = tc_param(asked, lengths[i][0]);
		struct rdma_conn_param answer = tc_param(answered, lengths[i][1]);
		struct tc_event seen;

		vt_row(t, "%u and %u bytes", lengths[i][0], lengths[i][1]);
		tc_qp(t, pair->a);
		seen = tc_request(pair, &ask);
		check_data(t, &seen, asked, lengths[i][0], 56);
		tc_qp(t, pair->b);
		VT_OK(t, vb_cm_accept(pair->b, &answer));
		seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
		check_data(t, &seen, answered, lengths[i][1], 196);
		tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	}
}

static void too_much_private_data_is_refused(struct vt *t)
{
	static const uint8_t data[57];
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(data, sizeof(data));
	struct tc_event seen;

	tc_qp(t, pair->a);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	/* The identifier may try again. */
	param.private_data_len--;
	seen = tc_request(pair, &param);
	VT_EQ(t, seen.event.status, 0);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

static void a_rejection_has_its_reason_and_data(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	uint8_t data[148];
	struct tc_event seen;

	vt_random_fill(t, data, sizeof(data));
	tc_ask(pair);
	VT_OK(t, vb_cm_reject(pair->b, data, sizeof(data)));
	seen = tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
	check_data(t, &seen, data, sizeof(data), sizeof(data));
	VT_STATE(t, query(t, pair->a->qp).qp_state, IBV_QPS_ERR);
	VT_MINUS_ERRNO(t, vb_cm_accept(pair->b, &param), EINVAL);
}

static void a_rejection_of_ece_has_another_reason(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	VT_OK(t, vb_cm_reject_ece(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, VENDOR_OPTION);
}

static void nobody_listens(struct vt *t)
{
	tc_unserved(t, RDMA_PS_TCP, RDMA_CM_EVENT_REJECTED, NO_SERVICE);
}

static void a_request_that_is_destroyed_is_rejected(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	tc_end(t, pair->b);
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

/*
 * What one side may have outstanding is what the other side may be asked for. The depths are powers
 * of two, to which SoftRoCE of Linux 6.1 rounds.
 */
static void depths_and_counts_reach_the_other_side(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param ask = {.responder_resources = 4,
				      .initiator_depth = 2,
				      .flow_control = 1,
				      .retry_count = 5,
				      .rnr_retry_count = 6};
	struct rdma_conn_param answer = {.responder_resources = 2,
					 .initiator_depth = 4,
					 .flow_control = 1,
					 .rnr_retry_count = 4};
	struct rdma_conn_param seen;
	struct ibv_qp_attr attr;

	tc_qp(t, pair->a);
	seen = tc_request(pair, &ask).event.param.conn;
	VT_EQ(t, seen.responder_resources, 2);
	VT_EQ(t, seen.initiator_depth, 4);
	VT_EQ(t, seen.retry_count, 5);
	VT_EQ(t, seen.rnr_retry_count, 6);
	VT_EQ(t, seen.flow_control, 1);
	VT_EQ(t, seen.qp_num, pair->a->qp->qp_num);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &answer));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED).event.param.conn;
	VT_EQ(t, seen.qp_num, pair->b->qp->qp_num);
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);

	attr = query(t, pair->b->qp);
	VT_EQ(t, attr.max_dest_rd_atomic, 2);
	VT_EQ(t, attr.max_rd_atomic, 4);
	VT_EQ(t, attr.retry_cnt, 5);
	VT_EQ(t, attr.rnr_retry, 6);
	attr = query(t, pair->a->qp);
	VT_EQ(t, attr.max_dest_rd_atomic, 4);
	VT_EQ(t, attr.max_rd_atomic, 2);
	VT_EQ(t, attr.retry_cnt, 5);
	VT_EQ(t, attr.rnr_retry, 4);
}

static void depths_beyond_the_device_are_refused(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_device_attr device;

	VT_OK(t, vb_query_device(pair->a->verbs, &device));
	if (device.max_qp_rd_atom >= 254 || device.max_qp_init_rd_atom >= 254)
		VT_SKIP(t, "the device takes each depth");
	tc_qp(t, pair->a);
	param.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	param = tc_param(NULL, 0);
	param.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	param = tc_param(NULL, 0);
	tc_request(pair, &param);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

static void parameters_may_be_left_out(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, NULL), EINVAL);
	tc_qp(t, pair->a);
	tc_request(pair, NULL);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, NULL));
	tc_expect_both(pair, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair->a, pair->b);
}

/* Moves a QP of the test to a state, with the attributes that the identifier gives. */
static void move(struct vt *t, struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	VT_OK(t, vb_cm_init_qp_attr(id, &attr, &mask));
	VT_CHECK(t, mask & IBV_QP_STATE);
	VT_OK(t, vb_modify_qp(qp, &attr, mask));
	VT_STATE(t, query(t, qp).qp_state, state);
}

static void the_qps_may_be_the_programs_own(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_qp *a = tc_own_qp(t, pair->a), *b;
	struct tc_event event;

	param.responder_resources = 4;
	param.initiator_depth = 2;
	param.qp_num = a->qp_num;
	event = tc_request(pair, &param);
	VT_EQ(t, event.event.param.conn.qp_num, a->qp_num);
	b = tc_own_qp(t, pair->b);
	move(t, pair->b, b, IBV_QPS_INIT);
	move(t, pair->b, b, IBV_QPS_RTR);
	move(t, pair->b, b, IBV_QPS_RTS);
	param.qp_num = b->qp_num;
	param.responder_resources = 2;
	param.initiator_depth = 1;
	param.rnr_retry_count = 3;
	VT_OK(t, vb_cm_accept(pair->b, &param));
	event = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	VT_EQ(t, event.event.param.conn.qp_num, b->qp_num);
	move(t, pair->a, a, IBV_QPS_INIT);
	move(t, pair->a, a, IBV_QPS_RTR);
	move(t, pair->a, a, IBV_QPS_RTS);
	VT_OK(t, vb_cm_establish(pair->a));
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, query(t, a).max_dest_rd_atomic, 1);
	VT_EQ(t, query(t, a).max_rd_atomic, 2);
	VT_EQ(t, query(t, a).rnr_retry, 3);
	/* Before the answer, B knew what A had asked for. */
	VT_EQ(t, query(t, b).max_dest_rd_atomic, 2);
	VT_EQ(t, query(t, b).max_rd_atomic, 4);
	VT_EQ(t, query(t, b).rnr_retry, 7);
}

/* Connects two QPNs, without QPs, and ends the connection. */
static void use_qpns(struct tc_pair *pair)
{
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct vt *t = pair->t;

	param.qp_num = 0x4711;
	tc_request(pair, &param);
	param.qp_num = 0x4712;
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	VT_OK(t, vb_cm_establish(pair->a));
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	VT_OK(t, vb_cm_disconnect(pair->a));
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
}

static void a_qpn_may_be_used_again(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	for (int i = 0; i < 3; i++) {
		use_qpns(pair);
		pair->a = tc_another(pair);
	}
}

static void establish_is_for_the_programs_own_qps(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	VT_MINUS_ERRNO(t, vb_cm_establish(pair->a), EINVAL);
	tc_send(t, pair->a, pair->b);
}

static void a_request_is_answered_once(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	VT_MINUS_ERRNO(t, vb_cm_reject(pair->b, NULL, 0), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, NULL), EINVAL);
	tc_send(t, pair->a, pair->b);
	tc_send(t, pair->b, pair->a);
}

static void the_backlog_bounds_requests_that_wait(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *late, *later;
	struct tc_event event;
	uint32_t first;

	tc_end(t, pair->listener);
	pair->listener = tc_id(t, pair->b_channel, RDMA_PS_TCP);
	VT_OK(t, vb_cm_bind_addr(pair->listener, tc_sockaddr(&here)));
	VT_OK(t, vb_cm_listen(pair->listener, 1));
	pair->port = ntohs(vb_cm_get_src_port(pair->listener));
	pair->a = tc_another(pair);
	late = tc_another(pair);
	later = tc_another(pair);
	tc_qp(t, pair->a);
	tc_qp(t, late);
	tc_qp(t, later);
	VT_OK(t, vb_cm_connect(pair->a, &param));
	VT_CHECK(t, tc_has_event(t, pair->b_channel));
	VT_OK(t, vb_cm_connect(late, &param));
	ts_pause(t, 30000000);
	pair->b = tc_expect(t, pair->b_channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST).event.id;
	tc_keep(t, pair->b);
	/* The first has been taken: there is room for another. */
	VT_OK(t, vb_cm_connect(later, &param));
	event = tc_expect(t, pair->b_channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST);
	tc_keep(t, event.event.id);
	first = event.event.param.conn.qp_num;
	/* On a slow machine, the second request may arrive only now. */
	if (ts_virtual(t))
		VT_EQ(t, first, later->qp->qp_num);
	/* The second request has no answer, so A repeats it after the time of a REQ: 6.4 s. */
	for (unsigned int waits = 0; waits < 3 && !tc_has_event(t, pair->b_channel); waits++)
		;
	event = tc_expect(t, pair->b_channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST);
	tc_keep(t, event.event.id);
	VT_EQ(t, event.event.param.conn.qp_num + first, late->qp->qp_num + later->qp->qp_num);
	VT_CHECK(t, !tc_has_event(t, pair->a_channel));
}

static const struct vt_test tests[] = {
	{"data_flow_both_ways", "rdma_cm(7)", 0, data_flow_both_ways},
	{"the_qps_grant_remote_access", SRC_CORE "cm.c, cm_init_qp_init_attr", 0,
	 the_qps_grant_remote_access},
	{"private_data_of_request_and_answer",
	 "rdma_connect(3): 56 bytes; rdma_accept(3): 196; rdma_get_cm_event(3): zeroed out", 0,
	 private_data_of_request_and_answer},
	{"too_much_private_data_is_refused", "rdma_connect(3): limited to 56 bytes", 0,
	 too_much_private_data_is_refused},
	{"a_rejection_has_its_reason_and_data",
	 "rdma_reject(3); rdma_get_cm_event(3): RDMA_CM_EVENT_REJECTED", 0,
	 a_rejection_has_its_reason_and_data},
	{"a_rejection_of_ece_has_another_reason",
	 SRC_CORE "ucma.c, ucma_reject: IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED", 0,
	 a_rejection_of_ece_has_another_reason},
	{"nobody_listens", SRC_CORE "cm.c, cm_match_req: IB_CM_REJ_INVALID_SERVICE_ID", 0,
	 nobody_listens},
	{"a_request_that_is_destroyed_is_rejected", SRC_CORE "cm.c, cm_destroy_id", 0,
	 a_request_that_is_destroyed_is_rejected},
	{"depths_and_counts_reach_the_other_side", "rdma_get_cm_event(3), CONN EVENT DATA", 0,
	 depths_and_counts_reach_the_other_side},
	{"depths_beyond_the_device_are_refused", SRC_RDMA_CORE "librdmacm/cma.c, ucma_valid_param",
	 0, depths_beyond_the_device_are_refused},
	{"parameters_may_be_left_out", "rdma_accept(3): conn_param is NULL", 0,
	 parameters_may_be_left_out},
	{"the_qps_may_be_the_programs_own", "rdma_establish(3), rdma_init_qp_attr(3)", 0,
	 the_qps_may_be_the_programs_own},
	{"a_qpn_may_be_used_again", SRC_CORE "cm.c, cm_enter_timewait: cm_cleanup_timewait", 0,
	 a_qpn_may_be_used_again},
	{"establish_is_for_the_programs_own_qps", SRC_RDMA_CORE "librdmacm/cma.c, rdma_establish",
	 0, establish_is_for_the_programs_own_qps},
	{"a_request_is_answered_once", SRC_CMA "rdma_connect: cma_comp_exch", 0,
	 a_request_is_answered_once},
	{"the_backlog_bounds_requests_that_wait",
	 SRC_CORE "ucma.c, ucma_connect_event_handler: backlog", 0,
	 the_backlog_bounds_requests_that_wait},
	{NULL},
};

const struct vt_suite vt_suite_cm_connect = {"cm_connect", "connections: requests and answers",
					     tests};
