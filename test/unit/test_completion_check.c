/* SPDX-License-Identifier: MIT */
/*
 * The checker of completions, with good histories and one history for each fault. Then the hooks of
 * completion_watch.h, with a backend whose answers are written in the test.
 */
#include "test/support/completion_check.h"
#include "test/support/completion_watch.h"
#include "unity.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QPN	 0x11
#define GOOD	 IBV_WC_SUCCESS
#define FLUSH	 IBV_WC_WR_FLUSH_ERR
#define SIGNALED IBV_SEND_SIGNALED

static struct completion_check *check;
static struct ibv_context context;
static struct ibv_cq send_cq, recv_cq, other_cq;
static struct ibv_srq srq;
static struct ibv_qp qp;
static unsigned int faults;
static char last[512];

static void report(void *arg, const char *sentence)
{
	(void)arg;
	faults++;
	snprintf(last, sizeof(last), "%s", sentence);
}

void setUp(void)
{
	faults = 0;
	last[0] = '\0';
	context = (struct ibv_context){.cmd_fd = -1};
	send_cq = recv_cq = other_cq = (struct ibv_cq){.context = &context, .cqe = 100};
	srq = (struct ibv_srq){.context = &context};
	qp = (struct ibv_qp){
		.context = &context,
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.qp_num = QPN,
		.state = IBV_QPS_RTS,
		.qp_type = IBV_QPT_RC,
	};
	check = completion_check_new(report, NULL);
}

void tearDown(void)
{
	completion_check_free(check);
}

/* --- words --- */

static void make(void)
{
	completion_check_qp(check, &qp, false);
}

static void sent(uint64_t wr_id, unsigned int flags)
{
	completion_check_send(check, &qp, wr_id, IBV_WR_SEND, flags);
}

static struct ibv_recv_wr recv_wr(uint64_t wr_id, struct ibv_sge *sge)
{
	return (struct ibv_recv_wr){.wr_id = wr_id, .sg_list = sge, .num_sge = 1};
}

static void posted(uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes};
	struct ibv_recv_wr wr = recv_wr(wr_id, &sge);

	completion_check_recv(check, &qp, &wr);
}

static void shared(uint64_t wr_id, uint32_t bytes)
{
	struct ibv_sge sge = {.length = bytes};
	struct ibv_recv_wr wr = recv_wr(wr_id, &sge);

	completion_check_srq_recv(check, &srq, &wr);
}

/* A failed completion has wrong values in the fields that it does not define. */
static void done_in(const struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = wr_id, .status = status, .qp_num = QPN};

	if (status != GOOD) {
		wc.opcode = IBV_WC_TM_RECV;
		wc.byte_len = 0xffffffff;
	}
	completion_check_wc(check, cq, &wc);
}

static void done(uint64_t wr_id, enum ibv_wc_status status)
{
	done_in(&send_cq, wr_id, status);
}

static void received(uint64_t wr_id, uint32_t bytes)
{
	struct ibv_wc wc = {
		.wr_id = wr_id, .opcode = IBV_WC_RECV, .byte_len = bytes, .qp_num = QPN};

	completion_check_wc(check, &recv_cq, &wc);
}

static void state(enum ibv_qp_state to)
{
	completion_check_state(check, &qp, to);
}

static void none(void)
{
	TEST_ASSERT_EQUAL_STRING("", last);
	TEST_ASSERT_EQUAL_INT(0, faults);
}

/* Expects one fault whose sentence contains the words. */
static void fault(const char *rule, const char *words)
{
	char message[640];

	snprintf(message, sizeof(message), "wanted \"%s\" and \"%s\" in \"%s\"", rule, words, last);
	TEST_ASSERT_EQUAL_INT(1, faults);
	TEST_ASSERT_TRUE_MESSAGE(strstr(last, rule), message);
	TEST_ASSERT_TRUE_MESSAGE(strstr(last, words), message);
}

/* --- good histories --- */

void test_each_once_in_order(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	posted(1, 10);
	posted(2, 10);
	received(1, 10);
	done(1, GOOD);
	received(2, 0);
	done(2, GOOD);
	none();
}

void test_unsignalled_success_is_silent(void)
{
	make();
	sent(1, 0);
	sent(2, SIGNALED);
	sent(3, 0);
	done(2, GOOD);
	none();
}

void test_one_wr_id_for_all(void)
{
	make();
	for (int i = 0; i < 3; i++)
		sent(7, i == 1 ? 0 : SIGNALED);
	done(7, GOOD);
	done(7, GOOD);
	none();
	done(7, GOOD);
	fault("twice", "WR number 3");
}

void test_unsignalled_failure_completes(void)
{
	make();
	sent(1, 0);
	sent(2, 0);
	sent(3, SIGNALED);
	done(2, IBV_WC_RETRY_EXC_ERR);
	done(3, FLUSH);
	none();
}

/*
 * Both queues have one CQ and the same wr_ids: only one guess is right, and the checker finds it
 * late.
 */
void test_queues_that_cannot_be_told_apart(void)
{
	qp.recv_cq = &send_cq;
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	posted(1, 10);
	posted(3, 10);
	done(1, FLUSH);
	done(3, FLUSH);
	done(1, FLUSH);
	done(2, FLUSH);
	none();
	done(2, FLUSH);
	fault("twice", "send WR number 2");
}

void test_send_after_sqe_succeeds(void)
{
	qp.qp_type = IBV_QPT_UD;
	make();
	sent(1, SIGNALED);
	sent(2, 0);
	state(IBV_QPS_RTS);
	sent(3, SIGNALED);
	done(1, IBV_WC_LOC_PROT_ERR);
	done(2, FLUSH);
	done(3, GOOD);
	none();
}

void test_reset_ends_what_waits(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	posted(1, 10);
	state(IBV_QPS_RESET);
	state(IBV_QPS_RTS);
	sent(3, SIGNALED);
	posted(2, 10);
	/* this completion was in the CQ before the reset */
	done(1, GOOD);
	done(3, GOOD);
	received(2, 1);
	none();
}

void test_number_of_a_destroyed_qp(void)
{
	make();
	sent(1, SIGNALED);
	completion_check_no_qp(check, &qp);
	make();
	sent(2, SIGNALED);
	done(2, GOOD);
	none();
}

void test_overrun_loses(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	completion_check_overrun(check, &send_cq);
	done(2, GOOD);
	none();
}

void test_more_than_the_cq_holds_may_overrun(void)
{
	send_cq.cqe = 2;
	make();
	for (int i = 0; i < 3; i++)
		sent((uint64_t)i, SIGNALED);
	done(2, GOOD);
	none();
}

void test_fatal_ends_all(void)
{
	make();
	sent(1, SIGNALED);
	completion_check_fatal(check, &context);
	completion_check_lost(check, &qp);
	none();
}

void test_shared_receives_in_any_order(void)
{
	completion_check_srq(check, &srq, NULL);
	qp.srq = &srq;
	make();
	shared(1, 10);
	shared(2, 10);
	shared(2, 100);
	received(2, 5);
	received(1, 10);
	received(2, 100);
	none();
}

void test_immediate_of_a_write_has_the_length_of_the_write(void)
{
	struct ibv_wc wc = {
		.wr_id = 1, .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = 4096, .qp_num = QPN};

	make();
	posted(1, 0);
	completion_check_wc(check, &recv_cq, &wc);
	none();
}

void test_long_queue(void)
{
	make();
	for (uint64_t i = 0; i < 20000; i++) {
		sent(i, SIGNALED);
		done(i, GOOD);
	}
	none();
	done(19999, GOOD);
	fault("twice", "WR number 20000");
}

/* --- faults --- */

void test_finds_twice(void)
{
	make();
	sent(1, SIGNALED);
	done(1, GOOD);
	done(1, GOOD);
	fault("twice", "QP 0x11");
}

void test_finds_twice_of_a_receive(void)
{
	make();
	posted(1, 10);
	received(1, 10);
	received(1, 10);
	fault("twice", "receive WR number 1");
}

void test_finds_unknown_wr(void)
{
	make();
	sent(1, SIGNALED);
	done(9, GOOD);
	fault("unknown", "wr_id 9");
}

void test_finds_unknown_wr_in_error(void)
{
	make();
	posted(1, 10);
	done_in(&recv_cq, 9, FLUSH);
	fault("unknown", "wr_id 9");
}

void test_finds_unknown_qp(void)
{
	qp.qp_num = QPN + 1;
	make();
	sent(1, SIGNALED);
	done(1, GOOD);
	fault("unknown", "no QP 0x11");
}

void test_finds_order_of_sends(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	done(2, GOOD);
	fault("order", "send WR number 2");
}

void test_finds_order_of_receives(void)
{
	make();
	posted(1, 10);
	posted(2, 10);
	received(2, 1);
	fault("order", "receive WR number 2");
}

void test_finds_order_in_a_flush(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, 0);
	sent(3, SIGNALED);
	done(1, FLUSH);
	done(3, FLUSH);
	fault("order", "send WR number 3");
}

void test_finds_success_of_an_unsignalled(void)
{
	make();
	sent(1, 0);
	done(1, GOOD);
	fault("unsignalled", "WR number 1");
}

void test_signal_all_is_signalled(void)
{
	completion_check_qp(check, &qp, true);
	sent(1, 0);
	sent(2, 0);
	done(2, GOOD);
	fault("order", "WR number 2");
}

void test_finds_success_behind_a_failure(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	done(1, IBV_WC_REM_ACCESS_ERR);
	done(2, GOOD);
	fault("dead: success", "WR number 2");
}

void test_finds_second_failure(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	done(1, IBV_WC_REM_ACCESS_ERR);
	done(2, IBV_WC_REM_ACCESS_ERR);
	fault("dead: no flush", "WR number 2");
}

void test_finds_success_behind_a_flushed_receive(void)
{
	qp.qp_type = IBV_QPT_UD;
	make();
	posted(1, 100);
	posted(2, 100);
	done_in(&recv_cq, 1, FLUSH);
	received(2, 50);
	fault("dead", "receive WR number 2");
}

void test_finds_wrong_opcode(void)
{
	struct ibv_wc wc = {.wr_id = 1, .opcode = IBV_WC_RDMA_READ, .qp_num = QPN};

	make();
	sent(1, SIGNALED);
	completion_check_wc(check, &send_cq, &wc);
	fault("opcode", "WR number 1");
}

void test_finds_too_many_bytes(void)
{
	make();
	posted(1, 10);
	received(1, 11);
	fault("bytes", "WR number 1");
}

void test_finds_datagram_without_grh(void)
{
	qp.qp_type = IBV_QPT_UD;
	make();
	posted(1, 100);
	received(1, 39);
	fault("bytes", "GRH");
}

void test_finds_wrong_cq(void)
{
	make();
	sent(1, SIGNALED);
	done_in(&other_cq, 1, GOOD);
	fault("queue", "WR number 1");
}

void test_finds_shared_receive_twice(void)
{
	completion_check_srq(check, &srq, NULL);
	qp.srq = &srq;
	make();
	shared(1, 10);
	received(1, 10);
	received(1, 10);
	fault("unknown", "SRQ");
}

void test_finds_shared_receive_without_room(void)
{
	completion_check_srq(check, &srq, NULL);
	qp.srq = &srq;
	make();
	shared(1, 10);
	received(1, 11);
	fault("unknown", "room");
}

void test_finds_what_was_never_flushed(void)
{
	make();
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	state(IBV_QPS_ERR);
	done(1, FLUSH);
	completion_check_lost(check, &qp);
	fault("lost", "number 2 with wr_id 2");
}

void test_unsignalled_before_the_end_owe_nothing(void)
{
	make();
	sent(1, 0);
	state(IBV_QPS_ERR);
	TEST_ASSERT_EQUAL_INT(0, completion_check_owed(check, &qp));
	sent(2, SIGNALED);
	sent(3, 0);
	TEST_ASSERT_EQUAL_INT(1, completion_check_owed(check, &qp));
	done(2, FLUSH);
	/* after this failure the third WR cannot succeed */
	TEST_ASSERT_EQUAL_INT(1, completion_check_owed(check, &qp));
	none();
}

void test_reset_does_not_hide_order(void)
{
	make();
	state(IBV_QPS_RESET);
	state(IBV_QPS_RTS);
	sent(1, SIGNALED);
	sent(2, SIGNALED);
	done(2, GOOD);
	fault("order", "WR number 2");
}

/* --- the hooks --- */

static struct ibv_wc script[4]; /* what poll_cq returns */
static int script_count;
static int post_answer; /* how many WRs posting takes; -1: all */

static int fake_post_send(struct ibv_qp *on, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	(void)on;
	for (int i = 0; post_answer >= 0 && i < post_answer; i++)
		wr = wr->next;
	if (post_answer < 0)
		return 0;
	*bad_wr = wr;
	return ENOMEM;
}

static int fake_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int count = script_count < num_entries ? script_count : num_entries;

	(void)cq;
	memcpy(wc, script, (size_t)count * sizeof(*wc));
	memmove(script, script + count, (size_t)(script_count - count) * sizeof(*wc));
	script_count -= count;
	return count;
}

static struct ibv_context *fake_open_device(struct ibv_device *device)
{
	(void)device;
	context.ops.post_send = fake_post_send;
	context.ops.poll_cq = fake_poll_cq;
	return &context;
}

static int fake_close_device(struct ibv_context *closed)
{
	(void)closed;
	return 0;
}

static struct ibv_cq *fake_create_cq(struct ibv_context *on, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	(void)on, (void)cqe, (void)cq_context, (void)channel, (void)comp_vector;
	return &send_cq;
}

static struct ibv_qp *fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	(void)pd, (void)init;
	return &qp;
}

static int fake_modify_qp(struct ibv_qp *on, struct ibv_qp_attr *attr, int attr_mask)
{
	(void)on, (void)attr, (void)attr_mask;
	return 0;
}

static int fake_query_qp(struct ibv_qp *on, struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init)
{
	(void)on, (void)attr_mask, (void)init;
	attr->qp_state = IBV_QPS_ERR;
	return 0;
}

static int fake_destroy_qp(struct ibv_qp *on)
{
	(void)on;
	return 0;
}

static struct vb_backend backend;

static void watch(void)
{
	struct ibv_qp_init_attr init = {.sq_sig_all = 1};

	backend = (struct vb_backend){
		.name = "fake",
		.open_device = fake_open_device,
		.close_device = fake_close_device,
		.create_cq = fake_create_cq,
		.create_qp = fake_create_qp,
		.modify_qp = fake_modify_qp,
		.query_qp = fake_query_qp,
		.destroy_qp = fake_destroy_qp,
	};
	script_count = 0;
	post_answer = -1;
	completion_watch_begin(&backend, report, NULL);
	backend.open_device(NULL);
	backend.create_cq(&context, 1, NULL, NULL, 0);
	backend.create_qp(NULL, &init);
}

static void post_two(int answer)
{
	struct ibv_send_wr second = {.wr_id = 2, .opcode = IBV_WR_SEND};
	struct ibv_send_wr first = {.wr_id = 1, .next = &second, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad;

	post_answer = answer;
	ibv_post_send(&qp, &first, &bad);
}

static void poll_one(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	script[script_count++] = (struct ibv_wc){.wr_id = wr_id, .status = status, .qp_num = QPN};
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(&send_cq, 4, &wc));
}

void test_hooks_see_posts_and_polls(void)
{
	watch();
	post_two(-1);
	poll_one(1, GOOD);
	poll_one(2, GOOD);
	none();
	poll_one(2, GOOD);
	fault("twice", "WR number 2");
	completion_watch_end();
}

void test_hooks_see_what_was_refused(void)
{
	watch();
	post_two(1);
	poll_one(1, GOOD);
	none();
	poll_one(2, GOOD);
	fault("unknown", "wr_id 2");
	completion_watch_end();
}

void test_hooks_see_reset(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	watch();
	post_two(-1);
	backend.modify_qp(&qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	backend.modify_qp(&qp, &attr, IBV_QP_STATE);
	post_two(-1);
	poll_one(1, GOOD);
	poll_one(2, GOOD);
	none();
	completion_watch_end();
}

void test_settling_polls_what_is_left(void)
{
	watch();
	post_two(-1);
	script[0] = (struct ibv_wc){.wr_id = 1, .status = FLUSH, .qp_num = QPN};
	script[1] = (struct ibv_wc){.wr_id = 2, .status = FLUSH, .qp_num = QPN};
	script_count = 2;
	completion_watch_settle(0);
	none();
	post_two(-1);
	completion_watch_settle(0);
	fault("lost", "2 send WRs never completed");
	completion_watch_end();
}

void test_destroyed_qp_owes_nothing(void)
{
	watch();
	post_two(-1);
	backend.destroy_qp(&qp);
	completion_watch_settle(0);
	none();
	completion_watch_end();
}

void test_end_takes_the_hooks_away(void)
{
	watch();
	TEST_ASSERT_TRUE(context.ops.poll_cq != fake_poll_cq);
	TEST_ASSERT_TRUE(backend.modify_qp != fake_modify_qp);
	completion_watch_end();
	TEST_ASSERT_TRUE(context.ops.poll_cq == fake_poll_cq);
	TEST_ASSERT_TRUE(context.ops.post_send == fake_post_send);
	TEST_ASSERT_TRUE(backend.modify_qp == fake_modify_qp);
}
