/* SPDX-License-Identifier: MIT */
/* vb_sim_report(): what a program has left, and what happened. */
#include "test/unit/sim_pair.h"

#include <stdio.h>
#include <string.h>

static char found[4096];

static void note(void *arg, const struct vb_sim_finding *finding)
{
	size_t used = strlen(found);
	char text[256];

	vb_sim_finding_text(finding, text, sizeof(text));
	/* Counters are for another test. */
	if (finding->kind != VB_SIM_COUNTED || arg)
		snprintf(found + used, sizeof(found) - used, "%s: %s\n", finding->device, text);
}

static unsigned int report(bool counters)
{
	found[0] = '\0';
	return vb_sim_report(NULL, note, counters ? &counters : NULL);
}

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair();
}

static struct ibv_qp *make_qp(struct end *end, enum ibv_qp_type type, struct ibv_cq *cq,
			      struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(end, type);
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	qp = B.create_qp_ex(end->context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	return qp;
}

static void post_send(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	TEST_ASSERT_EQUAL_INT(0, B.post_send(qp, &wr, &bad));
}

static void post_recv(struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, B.post_recv(qp, &wr, &bad));
}

void test_nothing_is_left(void)
{
	close_pair();
	TEST_ASSERT_EQUAL_UINT(0, report(true));
	TEST_ASSERT_EQUAL_STRING("", found);
}

void test_objects_are_left(void)
{
	static const char expected[] = "sim0: QP 0x10 (UD) is left in RESET\n"
				       "sim0: QP 0x11 (RC) is left in RESET\n"
				       "sim0: 1 CQ is left\n"
				       "sim0: 1 AH is left\n"
				       "sim0: 2 MRs are left\n"
				       "sim0: 1 PD is left\n"
				       "sim0: 1 completion channel is left\n"
				       "sim0: 1 context is left\n";
	struct ibv_ah_attr path = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};

	B.close_device(b.context);
	b.context = NULL;
	make_qp(&a, IBV_QPT_UD, a.cq, NULL);
	make_qp(&a, IBV_QPT_RC, a.cq, NULL);
	TEST_ASSERT_NOT_NULL(B.create_ah(a.pd, &path));
	TEST_ASSERT_NOT_NULL(B.reg_mr(a.pd, a.buffer, 8, 0));
	TEST_ASSERT_NOT_NULL(B.create_comp_channel(a.context));
	TEST_ASSERT_EQUAL_UINT(8, report(true));
	TEST_ASSERT_EQUAL_STRING(expected, found);
	TEST_ASSERT_EQUAL_UINT(8, vb_sim_report(NULL, NULL, NULL));
}

void test_work_completions_and_events_are_left(void)
{
	static const char expected[] =
		"sim0: QP 0x10 (RC) is left in RTS\n"
		"sim0: QP 0x10: 1 send has not completed\n"
		"sim0: QP 0x10: 2 receives are still posted\n"
		"sim0: CQ 1: 2 completions were never polled\n"
		"sim0: CQ 1: 1 completion event was never acknowledged; call ibv_ack_cq_events()\n"
		"sim0: the completion channel with descriptor %d: 1 event was never read\n"
		"sim0: 2 asynchronous events IBV_EVENT_SM_CHANGE were never read; call "
		"ibv_get_async_event()\n"
		"sim0: 2 CQs are left\n"
		"sim0: 1 MR is left\n"
		"sim0: 1 PD is left\n"
		"sim0: 1 completion channel is left\n"
		"sim0: 1 context is left\n"
		"sim1: QP 0x10 (RC) is left in RTS\n"
		"sim1: SRQ 0: 1 receive is still posted\n"
		"sim1: CQ 0: 2 completions were never polled\n"
		"sim1: 1 SRQ is left\n"
		"sim1: 1 CQ is left\n"
		"sim1: 1 MR is left\n"
		"sim1: 1 PD is left\n"
		"sim1: 1 context is left\n";
	struct ibv_comp_channel *channel = B.create_comp_channel(a.context);
	struct ibv_cq *cq = B.create_cq(a.context, 8, NULL, channel, 0);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = B.create_srq(b.pd, &srq_attr);
	struct ibv_qp *qp = make_qp(&a, IBV_QPT_RC, cq, NULL);
	struct ibv_qp *peer = make_qp(&b, IBV_QPT_RC, b.cq, srq);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
	struct ibv_async_event event;
	char wanted[2048];
	struct ibv_cq *of;
	struct ibv_wc wc;
	void *arg;

	connect_qp(qp, &b, peer->qp_num);
	connect_qp(peer, &a, qp->qp_num);
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, B.post_srq_recv(srq, &wr, &bad));
	post_recv(qp);
	post_recv(qp);
	for (int i = 0; i < 3; i++) {
		TEST_ASSERT_EQUAL_INT(0, B.req_notify_cq(cq, 0));
		post_send(qp);
		TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
		/* The first event is acknowledged, the second is read, the third waits. */
		if (i < 2)
			TEST_ASSERT_EQUAL_INT(0, B.get_cq_event(channel, &of, &arg));
		if (i == 0)
			B.ack_cq_events(cq, 1);
	}
	TEST_ASSERT_EQUAL_INT(1, B.poll_cq(cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(1, B.poll_cq(b.cq, 1, &wc));
	/* The first event leaves the queue before the others come. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(a.context, 1, IBV_EVENT_CLIENT_REREGISTER));
	TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(a.context, 1, IBV_EVENT_SM_CHANGE));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(a.context, 1, IBV_EVENT_SM_CHANGE));
	post_send(qp); /* and no wait: the send stays in the queue */
	report(false);
	snprintf(wanted, sizeof(wanted), expected, channel->fd);
	TEST_ASSERT_EQUAL_STRING(wanted, found);
}

void test_a_cq_has_overrun(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(&a, IBV_QPT_RC, cq, NULL);
	struct ibv_qp *peer = make_qp(&b, IBV_QPT_RC, b.cq, NULL);
	struct ibv_async_event event;

	connect_qp(qp, &b, peer->qp_num);
	connect_qp(peer, &a, qp->qp_num);
	for (int i = 0; i < 2; i++) {
		post_recv(peer);
		post_send(qp);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	do
		TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
	while (event.event_type != IBV_EVENT_CQ_ERR);
	/* The lines of the sentences, but for that of the overrun: it is no object. */
	TEST_ASSERT_EQUAL_UINT(14, report(false));
	TEST_ASSERT_NOT_NULL(strstr(found, "sim0: CQ 1 has overrun and takes no more completions; "
					   "poll it more often, or create it with more entries\n"));
	TEST_ASSERT_NOT_NULL(strstr(found, "sim0: CQ 1: 1 asynchronous event was never "
					   "acknowledged; call ibv_ack_async_event()\n"));
	B.ack_async_event(&event);
	report(false);
	TEST_ASSERT_NULL(strstr(found, "asynchronous event was never acknowledged"));
}

void test_drops_and_counters(void)
{
	static const char expected[] = "sim0: packets sent: 1\n"
				       "sim1: 1 packet was dropped: the Q_Key is not the QP's; set "
				       "remote_qkey of the send to the receiver's Q_Key\n"
				       "sim1: packets received: 1\n";
	struct ibv_qp *qp = make_qp(&a, IBV_QPT_UD, a.cq, NULL);
	struct ibv_qp *peer = make_qp(&b, IBV_QPT_UD, b.cq, NULL);
	struct ibv_ah_attr path = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;

	connect_qp(qp, &b, 0);
	connect_qp(peer, &a, 0);
	wr.wr.ud.ah = B.create_ah(a.pd, &path);
	wr.wr.ud.remote_qpn = peer->qp_num;
	wr.wr.ud.remote_qkey = QKEY + 1;
	TEST_ASSERT_EQUAL_INT(0, B.post_send(qp, &wr, &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	close_pair(); /* counters are those of the devices */
	TEST_ASSERT_EQUAL_UINT(0, report(true));
	TEST_ASSERT_EQUAL_STRING(expected, found);
}

void test_each_cause_of_a_drop_has_a_remedy(void)
{
	struct vb_sim_finding finding = {.kind = VB_SIM_DROPS, .count = 2};
	char text[256];

	for (unsigned int i = 0; (finding.name = vb_sim_drop_cause(i, &finding.about)); i++) {
		vb_sim_finding_text(&finding, text, sizeof(text));
		TEST_ASSERT_EQUAL_INT(0, strncmp(text, "2 packets were dropped: ", 24));
		TEST_ASSERT_NULL(strstr(text, "docs/errors.md"));
		TEST_ASSERT_NULL(strchr(text, '{'));
		TEST_ASSERT_TRUE(strlen(text) < sizeof(text) - 1);
	}
}

void test_no_world_is_made(void)
{
	close_pair();
	vb_sim_reset();
	TEST_ASSERT_EQUAL_UINT(0, report(true));
	TEST_ASSERT_EQUAL_STRING("", found);
	open_pair();
}
