/* SPDX-License-Identifier: MIT */
/*
 * Connections: SRQs of identifiers, XRC connections, and QPs that outlive their identifier.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/manager.h"
#include "test/support/xrc.h"

#include <fcntl.h>

#define SRC_LIBRARY SRC_RDMA_CORE "librdmacm/cma.c, "

enum { BY_CONSUMER = 28, SIDR_REJECTED = 2, BYTES = 100 };

/* --- messages --- */

struct message {
	uint8_t *bytes;
	struct ibv_sge sge;
};

static struct message message(struct vt *t, struct ibv_pd *pd, int access)
{
	struct message made = {.bytes = ts_memory(t, BYTES)};
	struct ibv_mr *mr = ts_mr(t, pd, made.bytes, BYTES, access);

	made.sge = (struct ibv_sge){(uintptr_t)made.bytes, BYTES, mr->lkey};
	return made;
}

static struct message post_to_srq(struct vt *t, struct ibv_srq *srq, uint64_t wr_id)
{
	struct message made = message(t, srq->pd, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_recv_wr receive = {.wr_id = wr_id, .sg_list = &made.sge, .num_sge = 1}, *bad;

	VT_OK(t, vb_post_srq_recv(srq, &receive, &bad));
	return made;
}

/* Sends from an identifier to an SRQ, whose next receive has the ID. The number of the SRQ is that of an XRC
 * SRQ, or 0. */
static void send_to_srq(struct vt *t, struct rdma_cm_id *from, struct ibv_srq *srq, uint32_t srqn,
			struct ibv_cq *cq, uint64_t wr_id)
{
	struct message received = post_to_srq(t, srq, wr_id), sent = message(t, from->qp->pd, 0);
	struct ibv_send_wr send = {.sg_list = &sent.sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	ts_fill(sent.bytes, BYTES, (uint32_t)wr_id);
	send.qp_type.xrc.remote_srqn = srqn;
	VT_OK(t, vb_post_send(from->qp, &send, &bad));
	VT_EQ(t, ts_wait(t, from->send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, ts_wait(t, cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, wc.wr_id, wr_id);
	ts_verify(t, received.bytes, BYTES, (uint32_t)wr_id);
}

/* --- SRQs --- */

/* Accepts the request of the pair, and returns the parameters that A sees. */
static struct rdma_conn_param establish(struct tc_pair *pair)
{
	struct rdma_conn_param param = tc_param(NULL, 0), seen;

	VT_OK(pair->t, vb_cm_accept(pair->b, &param));
	seen = tc_expect(pair->t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED)
		       .event.param.conn;
	tc_expect(pair->t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	return seen;
}

static void messages_come_into_the_srq(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_conn_param param = tc_param(NULL, 0);

	vt_need(t, VT_NEEDS_SRQ);
	tc_qp(t, pair->a);
	VT_EQ(t, tc_request(pair, &param).event.param.conn.srq, 0);
	VT_OK(t, vb_cm_create_srq(pair->b, NULL, &attr));
	tc_qp(t, pair->b);
	VT_CHECK(t, pair->b->qp->srq == pair->b->srq);
	VT_EQ(t, establish(pair).srq, 1);
	for (uint64_t i = 1; i <= 3; i++)
		send_to_srq(t, pair->a, pair->b->srq, 0, pair->b->recv_cq, i);
	tc_send(t, pair->b, pair->a);
	vb_cm_destroy_qp(pair->b);
	vb_cm_destroy_srq(pair->b);
	VT_CHECK(t, !pair->b->srq);
}

/* B's identifier of another connection, whose QP takes the SRQ of its attributes. */
static struct rdma_cm_id *share(struct tc_pair *pair, struct ibv_srq *srq, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.cap = {8, 8, 1, 1, 0},
					.sq_sig_all = 1,
					.recv_cq = cq,
					.srq = srq};
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct vt *t = pair->t;

	pair->a = tc_another(pair);
	tc_qp(t, pair->a);
	tc_request(pair, &param);
	VT_OK(t, vb_cm_create_qp(pair->b, NULL, &attr));
	VT_CHECK(t, pair->b->qp->srq == srq && !pair->b->srq);
	VT_CHECK(t, pair->b->qp->recv_cq == cq && !pair->b->recv_cq);
	VT_CHECK(t, pair->b->send_cq && pair->b->qp->send_cq == pair->b->send_cq);
	VT_EQ(t, establish(pair).srq, 1);
	return pair->b;
}

static void end_srq(void *listener)
{
	vb_cm_destroy_srq(listener);
}

static void identifiers_share_an_srq(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_cm_id *listener = pair->listener, *a[2], *b[2];
	struct ibv_cq *cq;

	vt_need(t, VT_NEEDS_SRQ);
	VT_OK(t, vb_cm_create_srq(listener, NULL, &attr));
	vt_defer(t, end_srq, listener);
	VT_CHECK(t, listener->srq->pd == listener->pd && !listener->recv_cq);
	cq = VT_PTR(t, vb_create_cq(listener->verbs, 16, NULL, NULL, 0));
	ts_keep(t, TS_CQ, cq);
	for (int i = 0; i < 2; i++) {
		b[i] = share(pair, listener->srq, cq);
		a[i] = pair->a;
	}
	send_to_srq(t, a[0], listener->srq, 0, cq, 1);
	send_to_srq(t, a[1], listener->srq, 0, cq, 2);
	vb_cm_destroy_qp(b[0]);
	send_to_srq(t, a[1], listener->srq, 0, cq, 3);
}

static void an_srq_of_extended_attributes(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_pd *pd;

	vt_need(t, VT_NEEDS_SRQ);
	tc_qp(t, pair->a);
	tc_request(pair, &param);
	VT_MINUS_ERRNO(t, vb_cm_create_srq_ex(pair->b, &attr), EINVAL);
	pd = VT_PTR(t, vb_alloc_pd(pair->b->verbs));
	ts_keep(t, TS_PD, pd);
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr.srq_type = IBV_SRQT_BASIC;
	attr.pd = pd;
	VT_OK(t, vb_cm_create_srq_ex(pair->b, &attr));
	VT_CHECK(t, attr.attr.max_wr >= 8);
	VT_CHECK(t, pair->b->srq->pd == pd && pair->b->pd != pd);
	VT_OK(t, vb_cm_create_qp(pair->b, pd, &qp));
	VT_CHECK(t, qp.srq == pair->b->srq && pair->b->pd == pd);
	establish(pair);
	send_to_srq(t, pair->a, pair->b->srq, 0, pair->b->recv_cq, 7);
	vb_cm_destroy_qp(pair->b);
	vb_cm_destroy_srq(pair->b);
}

/* --- XRC --- */

/* An identifier of rdma_create_ep(3), which names the type of its QP, with an event channel. */
static struct rdma_cm_id *endpoint(struct vt *t, struct rdma_event_channel *channel,
				   struct tc_address *address, int qp_type, bool passive)
{
	struct sockaddr *at = tc_sockaddr(address);
	const socklen_t bytes =
		at->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	struct rdma_addrinfo res = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_family = at->sa_family,
		.ai_qp_type = qp_type,
		.ai_port_space = RDMA_PS_IB,
	};
	struct rdma_cm_id *id;

	*(passive ? &res.ai_src_addr : &res.ai_dst_addr) = at;
	*(passive ? &res.ai_src_len : &res.ai_dst_len) = bytes;
	VT_OK(t, vb_cm_create_ep(t->backend, &id, &res, NULL, NULL));
	tc_keep(t, id);
	VT_OK(t, vb_cm_migrate_id(id, channel));
	VT_EQ(t, id->qp_type, qp_type);
	return id;
}

/* A's identifier with a route to the listener. */
static struct rdma_cm_id *active(struct tc_pair *pair, int qp_type)
{
	struct tc_address to = tc_address(&pair->t->b, pair->port);

	return endpoint(pair->t, pair->a_channel, &to, qp_type, false);
}

/* B's listener for a type of QP. */
static struct tc_pair *typed(struct vt *t, int qp_type)
{
	struct tc_pair *pair = vt_alloc(t, sizeof(*pair));
	struct tc_address here = tc_address(&t->b, 0);

	*pair = (struct tc_pair){.t = t, .a_channel = tc_channel(t), .b_channel = tc_channel(t)};
	pair->listener = endpoint(t, pair->b_channel, &here, qp_type, true);
	VT_OK(t, vb_cm_listen(pair->listener, 8));
	pair->port = ntohs(vb_cm_get_src_port(pair->listener));
	return pair;
}

static void make_qp(struct vt *t, struct rdma_cm_id *id, uint32_t sends)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type, .cap = {sends, 0, sends ? 1 : 0, 0, 0}, .sq_sig_all = 1};

	VT_OK(t, vb_cm_create_qp(id, NULL, &attr));
	VT_EQ(t, id->qp->qp_type, id->qp_type);
	VT_STATE(t, ts_query_state(t, id->qp), IBV_QPS_INIT);
}

struct xrc {
	struct tc_pair *pair; /* a: the initiator, b: the target, listener: of the SRQ */
	uint32_t srqn;
};

/* The initiator's request, with a target QP. */
static void ask(struct xrc *xrc)
{
	struct tc_pair *pair = xrc->pair;
	struct rdma_conn_param param = tc_param(NULL, 0), seen;
	struct vt *t = pair->t;

	pair->a = active(pair, IBV_QPT_XRC_SEND);
	make_qp(t, pair->a, 8);
	seen = tc_request(pair, &param).event.param.conn;
	VT_EQ(t, seen.qp_num, pair->a->qp->qp_num);
	VT_EQ(t, pair->b->qp_type, IBV_QPT_XRC_RECV);
	make_qp(t, pair->b, 0);
}

/* The target's number of the SRQ travels in the private data. */
static void answer(struct xrc *xrc)
{
	struct tc_pair *pair = xrc->pair;
	struct rdma_conn_param param = tc_param((uint8_t *)&xrc->srqn, sizeof(xrc->srqn));
	struct vt *t = pair->t;
	struct tc_event seen;

	VT_OK(t, vb_cm_accept(pair->b, &param));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ_MEM(t, seen.data, &xrc->srqn, sizeof(xrc->srqn));
	VT_EQ(t, seen.event.param.conn.qp_num, pair->b->qp->qp_num);
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	VT_STATE(t, ts_query_state(t, pair->a->qp), IBV_QPS_RTS);
	VT_STATE(t, ts_query_state(t, pair->b->qp), IBV_QPS_RTS);
}

static struct xrc *xrc(struct vt *t)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct xrc *made = vt_alloc(t, sizeof(*made));
	struct rdma_cm_id *listener;

	ts_need_xrc(t);
	made->pair = typed(t, IBV_QPT_XRC_RECV);
	listener = made->pair->listener;
	VT_OK(t, vb_cm_create_srq(listener, NULL, &attr));
	vt_defer(t, end_srq, listener);
	made->srqn = ts_srqn(t, listener->srq);
	VT_CHECK(t, listener->recv_cq && !listener->send_cq);
	ask(made);
	return made;
}

static void send_to_target(struct xrc *xrc, uint64_t wr_id)
{
	struct rdma_cm_id *listener = xrc->pair->listener;

	send_to_srq(xrc->pair->t, xrc->pair->a, listener->srq, xrc->srqn, listener->recv_cq, wr_id);
}

static void end_connection(struct tc_pair *pair)
{
	struct vt *t = pair->t;

	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_STATE(t, ts_query_state(t, pair->a->qp), IBV_QPS_ERR);
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	VT_STATE(t, ts_query_state(t, pair->b->qp), IBV_QPS_ERR);
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
}

static void an_initiator_reaches_the_srq_of_its_target(struct vt *t)
{
	struct xrc *connection = xrc(t);

	answer(connection);
	for (uint64_t i = 1; i <= 3; i++)
		send_to_target(connection, i);
	end_connection(connection->pair);
	/* The SRQ and its CQ serve the next connection. */
	vb_cm_destroy_qp(connection->pair->b);
	ask(connection);
	answer(connection);
	send_to_target(connection, 4);
}

static void a_target_rejects_its_initiator(struct vt *t)
{
	struct xrc *connection = xrc(t);
	struct tc_pair *pair = connection->pair;

	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
	VT_STATE(t, ts_query_state(t, pair->a->qp), IBV_QPS_ERR);
	ask(connection);
	answer(connection);
	send_to_target(connection, 5);
}

static void a_target_qp_outlives_its_identifier(struct vt *t)
{
	struct xrc *connection = xrc(t);
	struct tc_pair *pair = connection->pair;
	struct ibv_qp *target = pair->b->qp;

	answer(connection);
	send_to_target(connection, 1);
	pair->b->qp = NULL;
	tc_end(t, pair->b);
	ts_keep(t, TS_QP, target);
	/* The program that has the target QP may live longer than the connection: no DREQ says its end. */
	if (ts_virtual(t))
		VT_CHECK(t, !tc_has_event(t, pair->a_channel));
	VT_STATE(t, ts_query_state(t, target), IBV_QPS_RTS);
	send_to_target(connection, 2);
	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_STATE(t, ts_query_state(t, pair->a->qp), IBV_QPS_ERR);
}

/* The SRQ and the target QP of one identifier: the CQ is the SRQ's. */
static void a_cq_serves_until_its_srq_ends(struct vt *t)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct xrc *connection = xrc(t);
	struct rdma_cm_id *b = connection->pair->b;

	VT_OK(t, vb_cm_create_srq(b, NULL, &attr));
	VT_CHECK(t, b->recv_cq && b->recv_cq_channel);
	connection->srqn = ts_srqn(t, b->srq);
	answer(connection);
	send_to_srq(t, connection->pair->a, b->srq, connection->srqn, b->recv_cq, 1);
	vb_cm_destroy_qp(b);
	VT_CHECK(t, !b->qp && b->recv_cq && b->recv_cq_channel);
	vb_cm_destroy_srq(b);
	VT_CHECK(t, !b->srq && !b->recv_cq && !b->recv_cq_channel);
}

/* SRQ and target QP are in an XRC domain of the program, and the CQ is the program's. */
static void a_domain_of_the_program_serves(struct vt *t)
{
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV,
					     .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct tc_pair *pair;
	struct xrc made;

	ts_need_xrc(t);
	pair = typed(t, IBV_QPT_XRC_RECV);
	made = (struct xrc){.pair = pair};
	target.xrcd = attr.xrcd = ts_xrcd(t, pair->listener->verbs, -1, O_CREAT);
	attr.cq = VT_PTR(t, vb_create_cq(pair->listener->verbs, 16, NULL, NULL, 0));
	ts_keep(t, TS_CQ, attr.cq);
	VT_OK(t, vb_cm_create_srq_ex(pair->listener, &attr));
	vt_defer(t, end_srq, pair->listener);
	VT_CHECK(t, attr.xrcd == target.xrcd && !pair->listener->recv_cq);
	made.srqn = ts_srqn(t, pair->listener->srq);
	pair->a = active(pair, IBV_QPT_XRC_SEND);
	make_qp(t, pair->a, 8);
	tc_request(pair, &param);
	VT_OK(t, vb_cm_create_qp_ex(pair->b, &target));
	answer(&made);
	send_to_srq(t, pair->a, pair->listener->srq, made.srqn, attr.cq, 1);
}

/* --- types --- */

/* A request that the listener does not take; the peer has no QP. */
static void ask_in_vain(struct tc_pair *pair, int qp_type)
{
	struct rdma_cm_id *id = active(pair, qp_type);
	struct rdma_conn_param param = tc_param(NULL, 0);

	param.qp_num = 0x4711;
	VT_OK(pair->t, vb_cm_connect(id, &param));
	if (qp_type == IBV_QPT_UD)
		tc_failed(pair->t, pair->a_channel, id, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECTED);
	else
		tc_failed(pair->t, pair->a_channel, id, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

static void a_listener_serves_one_type_of_qp(struct vt *t)
{
	static const struct {
		const char *name;
		int listener, refused, taken;
	} rows[] = {
		{"RC", IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_RC},
		{"UC", IBV_QPT_UC, IBV_QPT_RC, IBV_QPT_UC},
		{"target", IBV_QPT_XRC_RECV, IBV_QPT_RC, IBV_QPT_XRC_SEND},
		{"RC and datagrams", IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RC},
	};

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct tc_pair *pair = typed(t, rows[i].listener);
		struct rdma_conn_param param = tc_param(NULL, 0);

		vt_row(t, "%s", rows[i].name);
		ask_in_vain(pair, rows[i].refused);
		pair->a = active(pair, rows[i].taken);
		param.qp_num = 0x4712 + (uint32_t)i;
		tc_request(pair, &param);
		VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
		tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
	}
}

/* --- a QP without its identifier --- */

static void a_qp_outlives_its_identifier(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct rdma_cm_id left = *pair->b;

	tc_send(t, pair->a, &left);
	pair->b->qp = NULL;
	tc_end(t, pair->b);
	ts_keep(t, TS_CHANNEL, left.send_cq_channel);
	ts_keep(t, TS_CHANNEL, left.recv_cq_channel);
	ts_keep(t, TS_CQ, left.send_cq);
	ts_keep(t, TS_CQ, left.recv_cq);
	ts_keep(t, TS_QP, left.qp);
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
	tc_send(t, pair->a, &left);
	tc_send(t, &left, pair->a);
}

static const struct vt_test tests[] = {
	{"messages_come_into_the_srq", "rdma_create_srq(3); rdma_create_qp(3)", 0,
	 messages_come_into_the_srq},
	{"identifiers_share_an_srq", SRC_LIBRARY "rdma_create_qp_ex: attr->srq", 0,
	 identifiers_share_an_srq},
	{"an_srq_of_extended_attributes", SRC_LIBRARY "rdma_create_srq_ex", 0,
	 an_srq_of_extended_attributes},
	{"an_initiator_reaches_the_srq_of_its_target",
	 SRC_RDMA_CORE "librdmacm/examples/rdma_xclient.c and rdma_xserver.c", 0,
	 an_initiator_reaches_the_srq_of_its_target},
	{"a_target_rejects_its_initiator", "rdma_reject(3)", 0, a_target_rejects_its_initiator},
	{"a_target_qp_outlives_its_identifier", SRC_CORE "cm.c, cm_destroy_id: IB_QPT_XRC_TGT", 0,
	 a_target_qp_outlives_its_identifier},
	{"a_cq_serves_until_its_srq_ends", SRC_LIBRARY "ucma_destroy_cqs", 0,
	 a_cq_serves_until_its_srq_ends},
	{"a_domain_of_the_program_serves", SRC_LIBRARY "ucma_init_srq_ex; rdma_create_qp_ex", 0,
	 a_domain_of_the_program_serves},
	{"a_listener_serves_one_type_of_qp",
	 SRC_CORE "cma.c, cma_check_req_qp_type; " SRC_CORE "cm.c, cm_destroy_id", 0,
	 a_listener_serves_one_type_of_qp},
	{"a_qp_outlives_its_identifier", SRC_LIBRARY "rdma_destroy_id", 0,
	 a_qp_outlives_its_identifier},
	{NULL},
};

const struct vt_suite vt_suite_cm_srq = {"cm_srq", "connections: SRQs, XRC, and QPs that are left",
					 tests};
