/* SPDX-License-Identifier: MIT */
/* The differential walk's comparer: what it compares, and what it leaves open. */
#include "src/differ/compare/compare.h"
#include "unity.h"

#include <errno.h>
#include <string.h>

static struct vd_program program;
static struct vd_record left, right;
static struct vd_difference difference;

void setUp(void)
{
	memset(&program, 0, sizeof(program));
	memset(&left, 0, sizeof(left));
	memset(&right, 0, sizeof(right));
	memset(&difference, 0, sizeof(difference));
}

void tearDown(void)
{
}

/* A program that creates a QP and posts to it. Both sides ran it alike. */
static void two_steps(void)
{
	program.count = 2;
	program.steps[0].verb = VD_CREATE_QP;
	program.steps[1].verb = VD_POST_SEND;
	program.steps[1].wr_count = 2;
	left.step_count = right.step_count = 2;
}

static void add_completion(struct vd_record *record, uint64_t wr_id, int qp,
			   enum ibv_wc_status status)
{
	record->completions[record->completion_count++] =
		(struct vd_completion){.step = 1, .wr_id = wr_id, .qp = qp, .status = status};
}

static enum vd_verdict compare(void)
{
	return vd_compare(&program, &left, &right, &difference);
}

void test_like_records_are_the_same(void)
{
	two_steps();
	add_completion(&left, vd_wr_id(1, 0, false), 0, IBV_WC_SUCCESS);
	add_completion(&right, vd_wr_id(1, 0, false), 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(VD_SAME, compare());
}

void test_answers_are_compared(void)
{
	two_steps();
	left.outcomes[1].answer = EINVAL;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(1, difference.step);
	TEST_ASSERT_EQUAL_INT(VD_ANSWER, difference.about);
	TEST_ASSERT_EQUAL_STRING("post_send: left EINVAL; right 0", difference.text);
}

void test_the_place_of_the_bad_wr_is_compared(void)
{
	two_steps();
	left.outcomes[1].answer = right.outcomes[1].answer = ENOMEM;
	left.outcomes[1].bad = 1;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

void test_order_is_compared_in_a_queue_and_not_between_queues(void)
{
	uint64_t first = vd_wr_id(1, 0, false), second = vd_wr_id(1, 1, false);

	two_steps();
	add_completion(&left, first, 0, IBV_WC_SUCCESS);
	add_completion(&left, second, 1, IBV_WC_SUCCESS);
	add_completion(&right, second, 1, IBV_WC_SUCCESS);
	add_completion(&right, first, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(VD_SAME, compare());
	for (unsigned int i = 0; i < 2; i++)
		left.completions[i].qp = right.completions[i].qp = 0;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_COMPLETION, difference.about);
}

void test_a_missing_completion_is_a_difference(void)
{
	two_steps();
	add_completion(&right, vd_wr_id(1, 0, true), 0, IBV_WC_WR_FLUSH_ERR);
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_NOT_NULL(strstr(difference.text, "left none; right receive 0 of step 1"));
}

void test_events_are_compared_by_object(void)
{
	two_steps();
	left.event_count = right.event_count = 2;
	for (int i = 0; i < 2; i++) {
		left.events[i] = (struct vd_event){1, IBV_EVENT_COMM_EST, VD_QP, i};
		right.events[i] = (struct vd_event){1, IBV_EVENT_COMM_EST, VD_QP, 1 - i};
	}
	TEST_ASSERT_EQUAL_INT(VD_SAME, compare());
	right.events[1].type = IBV_EVENT_QP_FATAL;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_EVENT, difference.about);
}

void test_states_and_memory_are_compared(void)
{
	two_steps();
	left.outcomes[1].memory[3] = 1;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_MEMORY, difference.about);
	left.outcomes[1].states[2] = IBV_QPS_ERR;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_STATE, difference.about);
}

void test_what_one_side_did_not_run_is_not_compared(void)
{
	two_steps();
	left.outcomes[1].answer = EINVAL;
	right.step_count = 1;
	TEST_ASSERT_EQUAL_INT(VD_SAME, compare());
}

/* --- differences that end the program without a verdict --- */

/* ibv_create_qp(3): the device may give a size greater than asked for. */
void test_room_that_was_rounded_up_is_open(void)
{
	two_steps();
	left.outcomes[1].answer = ENOMEM;
	left.outcomes[0].sizes[0] = 4;
	right.outcomes[0].sizes[0] = 7;
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	right.outcomes[0].sizes[0] = 4;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

void test_inline_data_of_a_read_is_open(void)
{
	two_steps();
	program.steps[1].wrs[1].opcode = IBV_WR_RDMA_READ;
	program.steps[1].wrs[1].flags = IBV_SEND_INLINE;
	left.outcomes[1].answer = EINVAL;
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	program.steps[1].wrs[1].opcode = IBV_WR_RDMA_WRITE;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

/* The first send failed, the second was flushed behind it. */
static void cut_off(struct vd_record *record)
{
	add_completion(record, vd_wr_id(1, 0, false), 0, IBV_WC_REM_ACCESS_ERR);
	add_completion(record, vd_wr_id(1, 1, false), 0, IBV_WC_WR_FLUSH_ERR);
}

void test_memory_is_open_where_a_flushed_send_may_have_run(void)
{
	two_steps();
	left.outcomes[1].memory[3] = 1;
	cut_off(&left);
	cut_off(&right);
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	left.completions[0].status = right.completions[0].status = IBV_WC_WR_FLUSH_ERR;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_MEMORY, difference.about);
}

void test_receives_are_open_where_a_flushed_send_may_have_run(void)
{
	two_steps();
	cut_off(&left);
	cut_off(&right);
	add_completion(&right, vd_wr_id(0, 0, true), 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_INT(VD_COMPLETION, difference.about);
	right.completions[2].wr_id = vd_wr_id(0, 0, false);
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

void test_an_srq_limit_is_open_where_a_flushed_send_may_have_run(void)
{
	two_steps();
	cut_off(&left);
	cut_off(&right);
	left.events[left.event_count++] =
		(struct vd_event){1, IBV_EVENT_SRQ_LIMIT_REACHED, VD_SRQ, 0};
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_INT(VD_EVENT, difference.about);
	left.events[0] = (struct vd_event){1, IBV_EVENT_QP_FATAL, VD_QP, 0};
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

/* The QP was connected before its second step, reset after it. */
void test_an_atomic_of_a_psn_before_a_reset_is_open(void)
{
	two_steps();
	program.count = left.step_count = right.step_count = 3;
	program.steps[2] = program.steps[1];
	program.steps[2].wrs[0].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	left.outcomes[0].states[0] = right.outcomes[0].states[0] = IBV_QPS_RTS;
	left.outcomes[2].states[0] = right.outcomes[2].states[0] = IBV_QPS_RTS;
	left.completions[left.completion_count++] = (struct vd_completion){
		.step = 2, .wr_id = vd_wr_id(2, 0, false), .status = IBV_WC_RETRY_EXC_ERR};
	right.completions[right.completion_count++] = (struct vd_completion){
		.step = 2, .wr_id = vd_wr_id(2, 0, false), .status = IBV_WC_SUCCESS};
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_INT(VD_COMPLETION, difference.about);
	program.steps[2].wrs[0].opcode = IBV_WR_RDMA_READ;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	program.steps[2].wrs[0].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	left.outcomes[1].states[0] = right.outcomes[1].states[0] = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

void test_all_is_open_after_a_flushed_binding(void)
{
	two_steps();
	program.count = left.step_count = right.step_count = 3;
	program.steps[1].wrs[1].opcode = IBV_WR_BIND_MW;
	program.steps[2].verb = VD_DEREG_MR;
	left.outcomes[2].answer = EBUSY;
	cut_off(&left);
	cut_off(&right);
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_UINT(2, difference.step);
	program.steps[1].wrs[1].opcode = IBV_WR_SEND;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

void test_a_read_between_path_mtus_is_open(void)
{
	two_steps();
	add_completion(&left, vd_wr_id(1, 0, false), 0, IBV_WC_BAD_RESP_ERR);
	add_completion(&right, vd_wr_id(1, 0, false), 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_INT(VD_COMPLETION, difference.about);
	left.completions[0].status = IBV_WC_REM_INV_REQ_ERR;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

static void overrun(struct vd_record *record, unsigned int cq)
{
	record->events[record->event_count++] =
		(struct vd_event){1, IBV_EVENT_CQ_ERR, VD_CQ, (int)cq};
}

void test_a_shared_queue_that_overran_is_open(void)
{
	two_steps();
	overrun(&left, 2);
	overrun(&right, 2);
	left.outcomes[1].states[0] = IBV_QPS_ERR;
	program.steps[0].cq = 2;
	program.steps[0].recv_cq = 2;
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	program.steps[0].recv_cq = 1;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_STATE, difference.about);
}

void test_an_overrun_is_open_where_the_room_differs(void)
{
	two_steps();
	program.steps[0].verb = VD_CREATE_CQ;
	program.steps[0].slot = 2;
	overrun(&left, 2);
	left.outcomes[0].sizes[VD_SIZE_WR] = 4;
	right.outcomes[0].sizes[VD_SIZE_WR] = 7;
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	right.outcomes[0].sizes[VD_SIZE_WR] = 4;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	TEST_ASSERT_EQUAL_INT(VD_EVENT, difference.about);
}

void test_how_often_an_overrun_is_told_is_open(void)
{
	two_steps();
	overrun(&left, 2);
	overrun(&right, 2);
	overrun(&right, 2);
	TEST_ASSERT_EQUAL_INT(VD_SAME, compare());
	overrun(&right, 1);
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

/* The QP has sent, is in ERR, and keeps later sends until the timer of the earlier ones fires. */
void test_a_send_kept_in_error_is_open(void)
{
	two_steps();
	program.count = left.step_count = right.step_count = 3;
	program.steps[0].type = IBV_QPT_RC;
	program.steps[2].verb = VD_POST_SEND;
	left.outcomes[0].states[0] = right.outcomes[0].states[0] = IBV_QPS_RTS;
	left.outcomes[1].states[0] = right.outcomes[1].states[0] = IBV_QPS_ERR;
	left.outcomes[2].states[0] = right.outcomes[2].states[0] = IBV_QPS_ERR;
	right.completions[right.completion_count++] = (struct vd_completion){
		.step = 2, .wr_id = vd_wr_id(2, 0, false), .status = IBV_WC_WR_FLUSH_ERR};
	left.completions[left.completion_count++] = (struct vd_completion){
		.step = 3, .wr_id = vd_wr_id(2, 0, false), .status = IBV_WC_WR_FLUSH_ERR};
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_INT(VD_COMPLETION, difference.about);
	program.steps[0].type = IBV_QPT_UC;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	program.steps[0].type = IBV_QPT_RC;
	left.outcomes[0].states[0] = right.outcomes[0].states[0] = IBV_QPS_INIT;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}

/* A QP that was connected and then reset refuses sends, and its queue keeps them all the same. */
void test_a_send_kept_in_reset_is_open(void)
{
	two_steps();
	program.count = left.step_count = right.step_count = 3;
	program.steps[2].verb = VD_POST_SEND;
	left.outcomes[0].states[0] = right.outcomes[0].states[0] = IBV_QPS_RTS;
	left.outcomes[1].answer = right.outcomes[1].answer = EINVAL;
	left.outcomes[1].bad = right.outcomes[1].bad = -1;
	left.outcomes[2].answer = ENOMEM;
	TEST_ASSERT_EQUAL_INT(VD_OPEN, compare());
	TEST_ASSERT_EQUAL_UINT(2, difference.step);
	left.outcomes[1].bad = right.outcomes[1].bad = 0;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
	left.outcomes[1].bad = right.outcomes[1].bad = -1;
	left.outcomes[0].states[0] = right.outcomes[0].states[0] = IBV_QPS_INIT;
	TEST_ASSERT_EQUAL_INT(VD_DIFFERENT, compare());
}
