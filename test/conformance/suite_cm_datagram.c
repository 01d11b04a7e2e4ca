/* SPDX-License-Identifier: MIT */
/*
 * Connections: the port space UDP, whose requests ask for the QP of a datagram service.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/manager.h"

/* The status of SIDR replies: Linux include/rdma/ib_cm.h, enum ib_cm_sidr_status. */
enum { UNSUPPORTED = 1, REJECTED = 2 };

static struct tc_event lookup(struct tc_pair *pair)
{
	struct vt *t = pair->t;
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct tc_event seen;

	tc_ask(pair);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, seen.event.param.ud.qp_num, pair->b->qp->qp_num);
	VT_EQ(t, seen.event.param.ud.qkey, RDMA_UDP_QKEY);
	return seen;
}

static void the_qp_of_an_identifier_is_ready(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);

	tc_qp(t, pair->a);
	VT_EQ(t, pair->a->qp->qp_type, IBV_QPT_UD);
	VT_STATE(t, ts_query_state(t, pair->a->qp), IBV_QPS_RTS);
}

static void a_datagram_reaches_the_service(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);
	struct tc_event seen = lookup(pair);
	struct ibv_ah *ah = VT_PTR(t, vb_create_ah(pair->a->pd, &seen.event.param.ud.ah_attr));
	uint8_t *sent = ts_memory(t, 64), *received = ts_memory(t, TS_GRH + 64);
	struct ibv_mr *from = ts_mr(t, pair->a->pd, sent, 64, 0);
	struct ibv_mr *to = ts_mr(t, pair->b->pd, received, TS_GRH + 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sges[] = {{(uintptr_t)sent, 64, from->lkey},
				 {(uintptr_t)received, TS_GRH + 64, to->lkey}};
	struct ibv_recv_wr receive = {.sg_list = &sges[1], .num_sge = 1};
	struct ibv_send_wr send = {
		.sg_list = &sges[0],
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {ah, seen.event.param.ud.qp_num, seen.event.param.ud.qkey}};
	struct ibv_recv_wr *bad_receive;
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;

	ts_keep(t, TS_AH, ah);
	ts_fill(sent, 64, 9);
	VT_OK(t, vb_post_recv(pair->b->qp, &receive, &bad_receive));
	VT_OK(t, vb_post_send(pair->a->qp, &send, &bad_send));
	VT_EQ(t, ts_wait(t, pair->b->recv_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, wc.src_qp, pair->a->qp->qp_num);
	ts_verify(t, received + TS_GRH, 64, 9);
	VT_EQ(t, ts_wait(t, pair->a->send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
}

static void private_data_of_lookup_and_answer(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);
	uint8_t asked[180], answered[136];
	struct rdma_conn_param ask = tc_param(asked, sizeof(asked));
	struct rdma_conn_param answer = tc_param(answered, sizeof(answered));
	struct tc_event seen;

	vt_random_fill(t, asked, sizeof(asked));
	vt_random_fill(t, answered, sizeof(answered));
	tc_qp(t, pair->a);
	seen = tc_request(pair, &ask);
	VT_EQ(t, seen.data_bytes, sizeof(asked));
	VT_EQ_MEM(t, seen.data, asked, sizeof(asked));
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &answer));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, seen.data_bytes, sizeof(answered));
	VT_EQ_MEM(t, seen.data, answered, sizeof(answered));
}

static void too_much_private_data_is_refused(struct vt *t)
{
	static const uint8_t data[181];
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);
	struct rdma_conn_param param = tc_param(data, sizeof(data));

	tc_qp(t, pair->a);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
}

static void a_lookup_is_rejected(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);

	tc_ask(pair);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_UNREACHABLE, REJECTED);
}

static void nobody_listens(struct vt *t)
{
	tc_unserved(t, RDMA_PS_UDP, RDMA_CM_EVENT_UNREACHABLE, UNSUPPORTED);
}

static const struct vt_test tests[] = {
	{"the_qp_of_an_identifier_is_ready", "rdma_create_qp(3)", 0,
	 the_qp_of_an_identifier_is_ready},
	{"a_datagram_reaches_the_service", "rdma_get_cm_event(3), UD EVENT DATA", 0,
	 a_datagram_reaches_the_service},
	{"private_data_of_lookup_and_answer", "rdma_connect(3): 180 bytes; rdma_accept(3): 136", 0,
	 private_data_of_lookup_and_answer},
	{"too_much_private_data_is_refused", "rdma_connect(3): limited to 180 bytes", 0,
	 too_much_private_data_is_refused},
	{"a_lookup_is_rejected", SRC_CORE "cma.c, cma_sidr_rep_handler, rdma_reject", 0,
	 a_lookup_is_rejected},
	{"nobody_listens", SRC_CORE "cm.c, cm_sidr_req_handler: IB_SIDR_UNSUPPORTED", 0,
	 nobody_listens},
	{NULL},
};

const struct vt_suite vt_suite_cm_datagram = {"cm_datagram", "connections: datagram services",
					      tests};
