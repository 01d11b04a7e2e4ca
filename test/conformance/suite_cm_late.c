/* SPDX-License-Identifier: MIT */
/*
 * Connections: messages that are lost, that come twice or late, and programs that answer late.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <verbena/fault.h>

#define QP_1 1

/* Longer than all repetitions of a message without an MRA: 16 times 6.4 s. */
#define LONG_NS UINT64_C(200000000000)

/* A request is repeated four times. */
#define LATE_NS UINT64_C(20000000000)

/* The messages of a connection, in their order. */
static const char *const messages[] = {"REQ", "REP", "RTU", "DREQ", "DREP"};

static void answer(struct tc_pair *pair)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(pair->t, pair->b);
	VT_OK(pair->t, vb_cm_accept(pair->b, &param));
}

static void end_both(struct tc_pair *pair)
{
	struct vt *t = pair->t;

	VT_OK(t, vb_cm_disconnect(pair->a));
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
	tc_expect_both(pair, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

/* No message leads to a second event, also in 30 s. */
static void expect_silence(struct tc_pair *pair)
{
	for (int i = 0; i < 10; i++) {
		VT_CHECK(pair->t, !tc_has_event(pair->t, pair->a_channel));
		VT_CHECK(pair->t, !tc_has_event(pair->t, pair->b_channel));
	}
}

/* The life of a connection, one message of which meets the rule. */
static void live(struct vt *t, unsigned int message, enum vb_fault_action action, uint64_t delay_ns)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	vt_row(t, "%s", messages[message]);
	ts_fault(t, &(struct vb_fault_rule){.action = action,
					    .dest_qpn = QP_1,
					    .skip = message,
					    .count = 1,
					    .delay_ns = delay_ns});
	tc_ask(pair);
	answer(pair);
	tc_expect_both(pair, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair->a, pair->b);
	tc_send(t, pair->b, pair->a);
	/* A late REQ comes before the end: behind it, it would be a new request. */
	ts_pause(t, 2 * delay_ns);
	end_both(pair);
	expect_silence(pair);
}

static void each_message_may_be_lost(struct vt *t)
{
	for (unsigned int i = 0; i < TS_COUNT(messages); i++)
		live(t, i, VB_FAULT_DROP, 0);
}

static void each_message_may_come_twice(struct vt *t)
{
	for (unsigned int i = 0; i < TS_COUNT(messages); i++)
		live(t, i, VB_FAULT_DUPLICATE, 0);
}

static void each_message_may_come_late(struct vt *t)
{
	for (unsigned int i = 0; i < TS_COUNT(messages); i++)
		live(t, i, VB_FAULT_DELAY, UINT64_C(10000000000));
}

static void programs_may_answer_late(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	ts_pause(t, LONG_NS);
	VT_CHECK(t, !tc_has_event(t, pair->a_channel));
	answer(pair);
	/* The RTU follows when the program takes the event of the REP. */
	ts_pause(t, LONG_NS);
	VT_CHECK(t, !tc_has_event(t, pair->b_channel));
	tc_expect_both(pair, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair->a, pair->b);
	end_both(pair);
}

/* The repetitions of the request find no listener. */
static void a_listener_may_end_before_the_answer(struct vt *t)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP};

	for (unsigned int i = 0; i < TS_COUNT(spaces); i++) {
		struct tc_pair *pair = tc_pair(t, spaces[i]);

		vt_row(t, "%s", i ? "UDP" : "TCP");
		tc_ask(pair);
		tc_end(t, pair->listener);
		ts_pause(t, LATE_NS);
		VT_CHECK(t, !tc_has_event(t, pair->a_channel));
		VT_CHECK(t, !tc_has_event(t, pair->b_channel));
		answer(pair);
		tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	}
}

static void a_connection_lasts(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	ts_pause(t, LONG_NS);
	expect_silence(pair);
	tc_send(t, pair->a, pair->b);
	tc_send(t, pair->b, pair->a);
	end_both(pair);
}

static void a_rejection_ends_the_request(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
	expect_silence(pair);
}

static void a_request_that_nobody_answers(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);

	ts_fault(t, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .dest_qpn = QP_1});
	tc_qp(t, pair->a);
	VT_OK(t, vb_cm_connect(pair->a, &param));
	ts_pause(t, UINT64_C(100000000000));
	VT_CHECK(t, !tc_has_event(t, pair->b_channel));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

#define NEEDS (VT_NEEDS_FAULTS | VT_NEEDS_VIRTUAL_CLOCK)

static const struct vt_test tests[] = {
	{"each_message_may_be_lost", SRC_CORE "cm.c, cm_process_send_error", NEEDS,
	 each_message_may_be_lost},
	{"each_message_may_come_twice", SRC_CORE "cm.c, cm_dup_req_handler, cm_dup_rep_handler",
	 NEEDS, each_message_may_come_twice},
	{"each_message_may_come_late", SRC_CORE "cm.c, cm_dup_req_handler, cm_dup_rep_handler",
	 NEEDS, each_message_may_come_late},
	{"programs_may_answer_late", SRC_CORE "cma.c, CMA_CM_MRA_SETTING", VT_NEEDS_VIRTUAL_CLOCK,
	 programs_may_answer_late},
	{"a_listener_may_end_before_the_answer", SRC_CORE "cm.c, cm_match_req, cm_sidr_req_handler",
	 VT_NEEDS_VIRTUAL_CLOCK, a_listener_may_end_before_the_answer},
	{"a_connection_lasts", "unsourced", VT_NEEDS_VIRTUAL_CLOCK, a_connection_lasts},
	{"a_rejection_ends_the_request", SRC_CORE "cm.c, cm_rej_handler", VT_NEEDS_VIRTUAL_CLOCK,
	 a_rejection_ends_the_request},
	{"a_request_that_nobody_answers", SRC_CORE "cma.c, CMA_MAX_CM_RETRIES", NEEDS,
	 a_request_that_nobody_answers},
	{NULL},
};

const struct vt_suite vt_suite_cm_late = {"cm_late", "connections: lost and late messages", tests};
