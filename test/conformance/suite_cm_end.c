/* SPDX-License-Identifier: MIT */
/*
 * Connections: how they end.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

/* The side `first` disconnects, and the other side answers. */
static void disconnect(struct tc_pair *pair, bool a_is_first)
{
	struct vt *t = pair->t;
	struct rdma_cm_id *first = a_is_first ? pair->a : pair->b;
	struct rdma_cm_id *second = a_is_first ? pair->b : pair->a;

	VT_OK(t, vb_cm_disconnect(first));
	VT_STATE(t, ts_query_state(t, first->qp), IBV_QPS_ERR);
	tc_expect(t, second->channel, second, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(second));
	VT_STATE(t, ts_query_state(t, second->qp), IBV_QPS_ERR);
	tc_expect(t, first->channel, first, RDMA_CM_EVENT_DISCONNECTED);
}

static void the_client_disconnects(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	tc_send(t, pair->a, pair->b);
	disconnect(pair, true);
	tc_expect_both(pair, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void the_server_disconnects(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	tc_send(t, pair->b, pair->a);
	disconnect(pair, false);
	tc_expect_both(pair, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void both_disconnect_at_once(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_OK(t, vb_cm_disconnect(pair->b));
	tc_expect_both(pair, RDMA_CM_EVENT_DISCONNECTED);
}

static void receives_are_flushed(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct ibv_recv_wr receive = {.wr_id = 5};
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;

	VT_OK(t, vb_post_recv(pair->a->qp, &receive, &bad));
	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_EQ(t, ts_wait(t, pair->a->recv_cq, 1, &wc), 1);
	VT_EQ(t, wc.wr_id, 5);
	VT_STATUS(t, wc.status, IBV_WC_WR_FLUSH_ERR);
}

static void a_destroyed_end_disconnects_the_other(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	tc_end(t, pair->b);
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
}

static void only_a_connection_can_be_disconnected(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_qp(t, pair->a);
	VT_MINUS_ERRNO(t, vb_cm_disconnect(pair->a), EINVAL);
}

static void a_listener_ends_without_its_connections(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	tc_end(t, pair->listener);
	tc_send(t, pair->a, pair->b);
	disconnect(pair, true);
}

static void connections_end_without_their_neighbours(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct rdma_cm_id *a = pair->a, *b = pair->b;

	pair->a = tc_another(pair);
	tc_ask(pair);
	tc_establish(pair);
	tc_send(t, a, b);
	tc_send(t, pair->a, pair->b);
	disconnect(pair, true);
	tc_send(t, a, b);
	tc_send(t, b, a);
}

static const struct vt_test tests[] = {
	{"the_client_disconnects", "rdma_disconnect(3)", 0, the_client_disconnects},
	{"the_server_disconnects", "rdma_disconnect(3)", 0, the_server_disconnects},
	{"both_disconnect_at_once", SRC_CORE "cm.c, cm_dreq_handler: IB_CM_DREQ_SENT", 0,
	 both_disconnect_at_once},
	{"receives_are_flushed", "rdma_disconnect(3): to the error state", 0, receives_are_flushed},
	{"a_destroyed_end_disconnects_the_other", SRC_CORE "cm.c, cm_destroy_id", 0,
	 a_destroyed_end_disconnects_the_other},
	{"only_a_connection_can_be_disconnected", SRC_CORE "cma.c, rdma_disconnect", 0,
	 only_a_connection_can_be_disconnected},
	{"a_listener_ends_without_its_connections", "unsourced", 0,
	 a_listener_ends_without_its_connections},
	{"connections_end_without_their_neighbours", "unsourced", 0,
	 connections_end_without_their_neighbours},
	{NULL},
};

const struct vt_suite vt_suite_cm_end = {"cm_end", "connections: their end", tests};
