/* SPDX-License-Identifier: MIT */
/* Expected completions and events: what holds, and each failure in words. */
#include "test/expect/expect.h"

#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/cm.h>

static struct vb_pair *pair;

void setUp(void)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	vb_expect_set_handler(keep_failure, NULL);
	pair = open_pair(NULL);
}

void tearDown(void)
{
	OK(vb_pair_close(pair));
	vb_sim_reset();
	vb_expect_set_timeout(0);
}

/* One message of 64 bytes from a to b: wr_id 1 of the receive, 2 of the send. */
static void message(void)
{
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
}

void test_completions_that_come(void)
{
	struct ibv_wc wc;

	message();
	HOLDS(vb_expect_completion_wc(pair->b.cq, &wc, "RECV wr_id=%d length=64 qp=0x%x", 1,
				      pair->b.qp->qp_num));
	TEST_ASSERT_EQUAL_INT(64, wc.byte_len);
	HOLDS(vb_expect_completion(pair->a.cq, "SUCCESS IBV_WC_SEND wr_id=* length=*"));
	message();
	HOLDS(vb_expect_completion(pair->b.cq, "*"));
	HOLDS(vb_expect_completion(pair->a.cq, "opcode=SEND status=0"));
	HOLDS(vb_expect_no_completion(pair->a.cq, 1 * S));
	TEST_ASSERT_EQUAL_UINT64(1 * S, vb_sim_now_ns(NULL));
}

void test_an_immediate(void)
{
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	OK(vb_pair_post(&pair->a, 7, IBV_WR_SEND_WITH_IMM, 0, 8));
	HOLDS(vb_expect_completion(pair->b.cq, "RECV imm=7 flags=%u", IBV_WC_WITH_IMM));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
}

void test_another_completion_came(void)
{
	message();
	FAILS_WITH("expected completion \"RECV wr_id=3 length=65\", and SUCCESS RECV length=64 "
		   "wr_id=1 "
		   "qp=0x10 came; wr_id is 1, not 3; length is 64, not 65",
		   vb_expect_completion(pair->b.cq, "RECV wr_id=3 length=65"));
	FAILS_WITH("expected completion \"RDMA_READ\", and SUCCESS SEND wr_id=2 qp=0x10 came",
		   vb_expect_completion(pair->a.cq, "RDMA_READ"));
	message();
	FAILS_WITH(
		"expected completion \"imm=1 qp=0x99\", and SUCCESS RECV length=64 wr_id=1 qp=0x10 "
		"came; qp is 0x10, not 0x99; it has no imm",
		vb_expect_completion(pair->b.cq, "imm=1 qp=0x99"));
	FAILS_WITH("expected completion \"WR_FLUSH_ERR\", and SUCCESS SEND wr_id=2 qp=0x10 came",
		   vb_expect_completion(pair->a.cq, "WR_FLUSH_ERR"));
}

/* The cause is that of vb_explain(), with both sides. */
void test_a_failed_completion(void)
{
	struct ibv_mr *mr = vb_reg_mr(pair->b.pd, pair->b.buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)pair->a.buffer, 64, pair->a.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 5,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)pair->b.buffer, mr->rkey}},
			   *bad;

	OK(vb_post_send(pair->a.qp, &wr, &bad));
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "RDMA_WRITE wr_id=5"),
		     "expected completion \"RDMA_WRITE wr_id=5\", and REM_ACCESS_ERR wr_id=5 "
		     "qp=0x10 came",
		     "sim1 QP 0x10 refused RDMA WRITE", "IBV_ACCESS_REMOTE_WRITE");
	OK(vb_pair_post(&pair->a, 6, IBV_WR_SEND, 0, 64));
	HOLDS(vb_expect_completion(pair->a.cq, "WR_FLUSH_ERR wr_id=6"));
	OK(vb_dereg_mr(mr));
}

void test_nothing_comes(void)
{
	FAILS_WITH(
		"expected completion \"RECV\", and none came, and nothing can come: no packet is "
		"under way and no timer runs\n  in flight: nothing; no work request is posted",
		vb_expect_completion(pair->b.cq, "RECV"));
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	FAILS_SAYING(vb_expect_completion(pair->b.cq, "RECV wr_id=1"),
		     "none came, and nothing can come",
		     "in flight: sim1: ", "QP 0x10: 1 receive is still posted");
	HOLDS(vb_expect_no_completion(pair->b.cq, 5 * S));
}

/* An RNR retry without end keeps the clock running. */
void test_the_time_is_up(void)
{
	vb_expect_set_timeout(20 * MS);
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "SEND"), "none came within 20 ms",
		     "in flight: sim0: QP 0x10: 1 send has not completed");
}

void test_a_completion_that_must_not_come(void)
{
	message();
	FAILS_WITH("expected no completion within 1.5 ms, and SUCCESS RECV length=64 wr_id=1 "
		   "qp=0x10 came",
		   vb_expect_no_completion(pair->b.cq, 1500000));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
	OK(vb_modify_qp(pair->b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	OK(vb_pair_receive(&pair->b, 9, 0, 64));
	FAILS_SAYING(vb_expect_no_completion(pair->b.cq, 7),
		     "expected no completion within 7 ns, and WR_FLUSH_ERR wr_id=9 qp=0x10 came",
		     "IBV_WC_WR_FLUSH_ERR");
}

void test_wrong_patterns(void)
{
	FAILS_WITH(
		"the pattern \"RECV wrid=3\" is wrong: \"wrid=3\" is of no field; a word is an "
		"opcode "
		"such as RECV, a status such as WR_FLUSH_ERR (both without IBV_WC_), or "
		"FIELD=NUMBER "
		"with a field of status, opcode, wr_id, length, qp, src_qp, imm, invalidated_rkey, "
		"flags, vendor_err",
		vb_expect_completion(pair->a.cq, "RECV wrid=3"));
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "RECEIVE"), "\"RECEIVE\" is no name");
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "wr_id=x"), "\"wr_id=x\" has no number");
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "%600d", 1),
		     "the pattern has 600 characters");
	FAILS_WITH("expected completion \"RECV\", but the CQ is NULL",
		   vb_expect_completion(NULL, "RECV"));
	FAILS_WITH("expected no completion, but the CQ is NULL", vb_expect_no_completion(NULL, 1));
}

/* --- events --- */

void test_events_that_come(void)
{
	OK(vb_sim_port_state(pair->a.context, 1, false));
	HOLDS(vb_expect_event(pair->a.context, "PORT_ERR port=1"));
	OK(vb_sim_port_state(pair->a.context, 1, true));
	HOLDS(vb_expect_event(pair->a.context, "*"));
	HOLDS(vb_expect_no_event(pair->a.context, 1 * S));
}

void test_another_event_came(void)
{
	OK(vb_sim_port_state(pair->a.context, 1, false));
	FAILS_WITH("expected event \"QP_FATAL qp=0x10\", and PORT_ERR port=1 came; it has no qp",
		   vb_expect_event(pair->a.context, "QP_FATAL qp=0x10"));
	OK(vb_sim_port_state(pair->a.context, 1, true));
	FAILS_WITH("expected event \"port=2\", and PORT_ACTIVE port=1 came; port is 1, not 2",
		   vb_expect_event(pair->a.context, "port=2"));
	FAILS_SAYING(vb_expect_event(pair->a.context, "PORT_ERR"),
		     "expected event \"PORT_ERR\", and none came, and nothing can come");
	OK(vb_sim_port_state(pair->a.context, 1, false));
	FAILS_WITH("expected no event within 1 s, and PORT_ERR port=1 came",
		   vb_expect_no_event(pair->a.context, 1 * S));
	FAILS_SAYING(vb_expect_event(pair->a.context, "PORT"), "an event such as QP_FATAL");
	FAILS_WITH("expected event \"*\", but the context is NULL", vb_expect_event(NULL, "*"));
	FAILS_WITH("expected no event, but the context is NULL", vb_expect_no_event(NULL, 1));
}

/* A QP of an SRQ that enters ERR raises an event with its number. */
void test_an_event_of_a_qp(void)
{
	struct vb_pair *srq = open_pair(&(struct vb_pair_options){.srq = true});

	OK(vb_modify_qp(srq->b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	HOLDS(vb_expect_event(srq->b.context, "QP_LAST_WQE_REACHED qp=0x%x", srq->b.qp->qp_num));
	OK(vb_pair_close(srq));
}

void test_events_of_the_connection_manager(void)
{
	struct vb_pair *cm = open_pair(&(struct vb_pair_options){.cm = true});
	struct rdma_event_channel *channel = cm->b.id->channel;
	struct rdma_cm_event *event;

	OK(vb_cm_disconnect(cm->a.id));
	HOLDS(vb_expect_cm_event(channel, &event, "DISCONNECTED status=0"));
	TEST_ASSERT_TRUE(event->id == cm->b.id);
	OK(vb_cm_ack_cm_event(event));
	OK(vb_cm_disconnect(cm->b.id));
	FAILS_SAYING(
		vb_expect_cm_event(channel, &event, "RDMA_CM_EVENT_ESTABLISHED"),
		"expected event \"RDMA_CM_EVENT_ESTABLISHED\", and TIMEWAIT_EXIT status=0 came");
	TEST_ASSERT_NULL(event);
	FAILS_SAYING(vb_expect_cm_event(channel, NULL, "ESTABLISHED"), "and none came");
	FAILS_SAYING(vb_expect_cm_event(channel, NULL, "ESTABLISH"), "such as ESTABLISHED");
	FAILS_WITH("expected event \"*\", but the channel is NULL",
		   vb_expect_cm_event(NULL, NULL, "*"));
	OK(vb_pair_close(cm));
}

/* The failure has the cause of the refusal. */
void test_a_connection_that_is_refused(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7777)};
	struct rdma_event_channel *channel = vb_cm_create_event_channel("sim");
	struct rdma_conn_param parameters = {.retry_count = 1};
	struct rdma_cm_id *id;

	address.sin_addr.s_addr = htonl(0x0a000002);
	HAVE(channel);
	OK(vb_cm_create_id(NULL, channel, &id, NULL, RDMA_PS_TCP));
	OK(vb_cm_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
	HOLDS(vb_expect_cm_event(channel, NULL, "ADDR_RESOLVED"));
	OK(vb_cm_resolve_route(id, 1000));
	HOLDS(vb_expect_cm_event(channel, NULL, "ROUTE_RESOLVED"));
	OK(vb_cm_create_qp(
		id, NULL,
		&(struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}}));
	OK(vb_cm_connect(id, &parameters));
	FAILS_SAYING(vb_expect_cm_event(channel, NULL, "ESTABLISHED"),
		     "expected event \"ESTABLISHED\", and REJECTED status=8 came", "\n  ");
	vb_cm_destroy_qp(id);
	OK(vb_cm_destroy_id(id));
	vb_cm_destroy_event_channel(channel);
}

/* --- handlers --- */

static jmp_buf jump;

static void leave(void *arg, const char *file, int line, const char *message)
{
	*(const char **)arg = message;
	longjmp(jump, 1);
}

void test_a_handler_that_jumps(void)
{
	static const char *message;

	vb_expect_set_handler(leave, &message);
	if (!setjmp(jump)) {
		vb_expect_completion(pair->b.cq, "RECV");
		TEST_FAIL_MESSAGE("the handler has not left");
	}
	TEST_ASSERT_NOT_NULL(strstr(message, "none came"));
	/* What the check had has been given back. */
	vb_expect_set_handler(keep_failure, NULL);
	test_completions_that_come();
}

void test_the_default_handler_aborts(void)
{
	int ends[2], status;
	char text[256] = "";
	pid_t child;

	OK(pipe(ends));
	child = fork();
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		vb_expect_set_handler(NULL, NULL);
		vb_expect_completion_at("file.c", 7, NULL, NULL, "RECV");
		_exit(0);
	}
	TEST_ASSERT_TRUE(waitpid(child, &status, 0) == child);
	TEST_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	TEST_ASSERT_TRUE(read(ends[0], text, sizeof(text) - 1) > 0);
	TEST_ASSERT_EQUAL_STRING("file.c:7: expected completion \"RECV\", but the CQ is NULL\n",
				 text);
	close(ends[0]);
	close(ends[1]);
}
