/* SPDX-License-Identifier: MIT */
/*
 * Verbs that need no device, and the one that finds its backend through an event. What every other
 * verb has in common is judged by test/ibverbs/test_dispatch.c.
 */
#include "src/verbs/registry.h"
#include "unity.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <errno.h>

static struct ibv_device a_device;
static struct ibv_context a_context = {.device = &a_device};
static unsigned int acks;

static bool owns_context(const struct ibv_context *context)
{
	return context == &a_context;
}

static void ack_async_event(struct ibv_async_event *event)
{
	acks++;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return num_entries + 1;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return solicited_only + 2;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	*bad_wr = wr;
	return 3;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return 4;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return 5;
}

static const struct vb_backend fake = {
	.name = "fake",
	.owns_context = owns_context,
	.ack_async_event = ack_async_event,
};

void setUp(void)
{
	int err = vb_backend_add(&fake);

	TEST_ASSERT_TRUE(err == 0 || err == EEXIST);
	acks = 0;
}

void tearDown(void)
{
}

/* Which member of the event's union each type uses: man ibv_get_async_event(3). */
enum member { NONE, CQ, QP, SRQ, WQ };

static const struct {
	enum ibv_event_type type;
	enum member member;
} events[] = {
	{IBV_EVENT_CQ_ERR, CQ},
	{IBV_EVENT_QP_FATAL, QP},
	{IBV_EVENT_QP_REQ_ERR, QP},
	{IBV_EVENT_QP_ACCESS_ERR, QP},
	{IBV_EVENT_COMM_EST, QP},
	{IBV_EVENT_SQ_DRAINED, QP},
	{IBV_EVENT_PATH_MIG, QP},
	{IBV_EVENT_PATH_MIG_ERR, QP},
	{IBV_EVENT_DEVICE_FATAL, NONE},
	{IBV_EVENT_PORT_ACTIVE, NONE},
	{IBV_EVENT_PORT_ERR, NONE},
	{IBV_EVENT_LID_CHANGE, NONE},
	{IBV_EVENT_PKEY_CHANGE, NONE},
	{IBV_EVENT_SM_CHANGE, NONE},
	{IBV_EVENT_SRQ_ERR, SRQ},
	{IBV_EVENT_SRQ_LIMIT_REACHED, SRQ},
	{IBV_EVENT_QP_LAST_WQE_REACHED, QP},
	{IBV_EVENT_CLIENT_REREGISTER, NONE},
	{IBV_EVENT_GID_CHANGE, NONE},
	{IBV_EVENT_WQ_FATAL, WQ},
};

#define EVENTS (sizeof(events) / sizeof(events[0]))

void test_verbs_ack_async_event_goes_by_the_events_object(void)
{
	struct ibv_cq cq = {.context = &a_context};
	struct ibv_qp qp = {.context = &a_context};
	struct ibv_srq srq = {.context = &a_context};
	struct ibv_wq wq = {.context = &a_context};

	for (size_t i = 0; i < EVENTS; i++) {
		struct ibv_async_event event = {.event_type = events[i].type};

		switch (events[i].member) {
		case CQ:
			event.element.cq = &cq;
			break;
		case QP:
			event.element.qp = &qp;
			break;
		case SRQ:
			event.element.srq = &srq;
			break;
		case WQ:
			event.element.wq = &wq;
			break;
		case NONE:
			event.element.port_num = 1;
			break;
		}
		acks = 0;
		vb_ack_async_event(&event);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(events[i].member == NONE ? 0 : 1, acks,
					       vb_event_type_str(events[i].type));
	}
}

void test_verbs_ack_async_event_refuses_no_object(void)
{
	for (size_t i = 0; i < EVENTS; i++) {
		struct ibv_async_event event = {.event_type = events[i].type};

		errno = 0;
		vb_ack_async_event(&event);
		TEST_ASSERT_EQUAL_INT(events[i].member == NONE ? 0 : EINVAL, errno);
	}
	errno = 0;
	vb_ack_async_event(NULL);
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_UINT(0, acks);
}

void test_verbs_data_path_goes_through_the_context(void)
{
	struct ibv_cq cq = {.context = &a_context};
	struct ibv_qp qp = {.context = &a_context};
	struct ibv_srq srq = {.context = &a_context};
	struct ibv_send_wr send, *bad_send = NULL;
	struct ibv_recv_wr recv, *bad_recv = NULL;

	a_context.ops.poll_cq = poll_cq;
	a_context.ops.req_notify_cq = req_notify_cq;
	a_context.ops.post_send = post_send;
	a_context.ops.post_recv = post_recv;
	a_context.ops.post_srq_recv = post_srq_recv;
	TEST_ASSERT_EQUAL_INT(8, vb_poll_cq(&cq, 7, NULL));
	TEST_ASSERT_EQUAL_INT(3, vb_req_notify_cq(&cq, 1));
	TEST_ASSERT_EQUAL_INT(3, vb_post_send(&qp, &send, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&send, bad_send);
	TEST_ASSERT_EQUAL_INT(4, vb_post_recv(&qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv, bad_recv);
	bad_recv = NULL;
	TEST_ASSERT_EQUAL_INT(5, vb_post_srq_recv(&srq, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv, bad_recv);
}

/* --- names --- */

/* The texts as libibverbs 44 gives them, by value, where the enum might be misread. */
void test_verbs_wc_status_texts(void)
{
	TEST_ASSERT_EQUAL_STRING("success", vb_wc_status_str(IBV_WC_SUCCESS));
	TEST_ASSERT_EQUAL_STRING("Work Request Flushed Error", vb_wc_status_str(5));
	TEST_ASSERT_EQUAL_STRING("memory management operation error", vb_wc_status_str(6));
	TEST_ASSERT_EQUAL_STRING("transport retry counter exceeded", vb_wc_status_str(12));
	TEST_ASSERT_EQUAL_STRING("RNR retry counter exceeded", vb_wc_status_str(13));
	TEST_ASSERT_EQUAL_STRING("general error", vb_wc_status_str(21));
	TEST_ASSERT_EQUAL_STRING("TM software rendezvous", vb_wc_status_str(23));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wc_status_str(24));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wc_status_str(-1));
	TEST_ASSERT_EQUAL_STRING("IBV_WC_RETRY_EXC_ERR", vb_wc_status_name(12));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wc_status_name(24));
}

void test_verbs_other_texts(void)
{
	TEST_ASSERT_EQUAL_STRING("CQ error", vb_event_type_str(0));
	TEST_ASSERT_EQUAL_STRING("last WQE reached", vb_event_type_str(16));
	TEST_ASSERT_EQUAL_STRING("WQ fatal", vb_event_type_str(19));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_event_type_str(20));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_event_type_str(-1));
	TEST_ASSERT_EQUAL_STRING("IBV_EVENT_WQ_FATAL", vb_event_type_name(19));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_event_type_name(20));
	TEST_ASSERT_EQUAL_STRING("InfiniBand channel adapter", vb_node_type_str(1));
	TEST_ASSERT_EQUAL_STRING("unspecified", vb_node_type_str(7));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_node_type_str(IBV_NODE_UNKNOWN));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_node_type_str(0));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_node_type_str(8));
	TEST_ASSERT_EQUAL_STRING("no state change (NOP)", vb_port_state_str(0));
	TEST_ASSERT_EQUAL_STRING("active", vb_port_state_str(IBV_PORT_ACTIVE));
	TEST_ASSERT_EQUAL_STRING("active defer", vb_port_state_str(5));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_port_state_str(6));
}

void test_verbs_names_of_enumerators(void)
{
	TEST_ASSERT_EQUAL_STRING("RESET", vb_qp_state_str(IBV_QPS_RESET));
	TEST_ASSERT_EQUAL_STRING("ERR", vb_qp_state_str(IBV_QPS_ERR));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_qp_state_str(IBV_QPS_UNKNOWN));
	TEST_ASSERT_EQUAL_STRING("IBV_QPS_RTR", vb_qp_state_name(IBV_QPS_RTR));
	TEST_ASSERT_EQUAL_STRING("RC", vb_qp_type_str(IBV_QPT_RC));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_qp_type_str(0));
	TEST_ASSERT_EQUAL_STRING("DRIVER", vb_qp_type_str(IBV_QPT_DRIVER));
	TEST_ASSERT_EQUAL_STRING("ATOMIC_FETCH_AND_ADD",
				 vb_wr_opcode_str(IBV_WR_ATOMIC_FETCH_AND_ADD));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wr_opcode_str(12));
	TEST_ASSERT_EQUAL_STRING("RECV_RDMA_WITH_IMM", vb_wc_opcode_str(IBV_WC_RECV_RDMA_WITH_IMM));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wc_opcode_str(8));
	TEST_ASSERT_EQUAL_STRING("unknown", vb_wc_opcode_str(-1));
}

/* --- numbers --- */

void test_verbs_mtu_there_and_back(void)
{
	static const unsigned int bytes[] = {0, 256, 512, 1024, 2048, 4096, 0};

	for (unsigned int mtu = 0; mtu < sizeof(bytes) / sizeof(bytes[0]); mtu++) {
		TEST_ASSERT_EQUAL_UINT(bytes[mtu], vb_mtu_to_bytes(mtu));
		if (bytes[mtu])
			TEST_ASSERT_EQUAL_INT(mtu, vb_bytes_to_mtu(bytes[mtu]));
	}
	TEST_ASSERT_EQUAL_INT(0, vb_bytes_to_mtu(0));
	TEST_ASSERT_EQUAL_INT(0, vb_bytes_to_mtu(1500));
	TEST_ASSERT_EQUAL_INT(0, vb_bytes_to_mtu(8192));
}

/* Measured from libibverbs 44: rate, multiple and Mbit/s, -1 for none. */
static const struct {
	int rate;
	int mult;
	int mbps;
} rates[] = {
	{0, -1, -1},	    {1, -1, -1},       {2, 1, 2500},	  {3, 4, 10000},
	{4, 12, 30000},	    {5, 2, 5000},      {6, 8, 20000},	  {7, 16, 40000},
	{8, 24, 60000},	    {9, 32, 80000},    {10, 48, 120000},  {11, -1, 14062},
	{12, -1, 56250},    {13, -1, 112500},  {14, -1, 168750},  {15, -1, 25781},
	{16, -1, 103125},   {17, -1, 206250},  {18, -1, 309375},  {19, 11, 28125},
	{20, 20, 53125},    {21, 160, 425000}, {22, 240, 637500}, {23, 320, 850000},
	{24, 480, 1275000}, {25, -1, -1},      {-1, -1, -1},
};

void test_verbs_rates(void)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		TEST_ASSERT_EQUAL_INT(rates[i].mult, vb_rate_to_mult(rates[i].rate));
		TEST_ASSERT_EQUAL_INT(rates[i].mbps, vb_rate_to_mbps(rates[i].rate));
		TEST_ASSERT_EQUAL_INT(rates[i].mult > 0 ? rates[i].rate : IBV_RATE_MAX,
				      vb_mult_to_rate(rates[i].mult));
		TEST_ASSERT_EQUAL_INT(rates[i].mbps > 0 ? rates[i].rate : IBV_RATE_MAX,
				      vb_mbps_to_rate(rates[i].mbps));
	}
	TEST_ASSERT_EQUAL_INT(IBV_RATE_MAX, vb_mult_to_rate(0));
	TEST_ASSERT_EQUAL_INT(IBV_RATE_MAX, vb_mult_to_rate(3));
	TEST_ASSERT_EQUAL_INT(IBV_RATE_MAX, vb_mbps_to_rate(0));
	TEST_ASSERT_EQUAL_INT(IBV_RATE_MAX, vb_mbps_to_rate(10001));
}
