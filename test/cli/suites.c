/* SPDX-License-Identifier: MIT */
/* Tests that end in every way a test can, to see what the runner makes of them. */
#include "test/conformance/suites.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/verbs.h>

static void passes(struct vt *t)
{
	VT_CHECK(t, t->a.ctx && t->b.ctx && t->a.ctx != t->b.ctx);
	VT_EQ(t, t->a.port_attr.state, IBV_PORT_ACTIVE);
	VT_OK(t, 0);
	VT_ERRNO(t, EINVAL, EINVAL);
	VT_MINUS_ERRNO(t, (errno = EBUSY, -1), EBUSY);
	VT_NULL_ERRNO(t, (errno = EBUSY, NULL), EBUSY);
	VT_EQ_STR(t, "same", "same");
	VT_EQ_MEM(t, "same", "same", 4);
	VT_STATUS(t, IBV_WC_SUCCESS, IBV_WC_SUCCESS);
}

static void says(void *arg)
{
	puts(arg);
}

static void fails_in_cleaning(void *arg)
{
	struct vt *t = arg;

	VT_EQ(t, 6, 7);
	puts("not reached");
}

static void fails(struct vt *t)
{
	vt_defer(t, says, (void *)"first deferred");
	vt_defer(t, fails_in_cleaning, t);
	vt_defer(t, says, (void *)"last deferred");
	vt_row(t, "row %d <&\">", 3);
	VT_EXPECT_STATUS(t, IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS);
	VT_EXPECT_ERRNO(t, ENOMEM, EINVAL);
	VT_EXPECT_STATE(t, IBV_QPS_ERR, IBV_QPS_RTS);
	VT_EXPECT_EVENT(t, IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL);
	VT_EXPECT_EQ_MEM(t, "abcd", "abXY", 4);
	VT_NULL_ERRNO(t, (errno = ENOMEM, NULL), EINVAL);
	puts("not reached");
}

static void has_many_failures(struct vt *t)
{
	for (int i = 0; i < 1000; i++)
		VT_EXPECT_EQ(t, i, -1);
}

static void skips(struct vt *t)
{
	VT_SKIP(t, "for a reason & <no> \"other\"");
}

static void crashes(struct vt *t)
{
	vt_row(t, "the fatal row");
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void hangs(struct vt *t)
{
	for (;;)
		pause();
}

/* Neither the runner nor the next test may wait for what a test started. */
static void leaves_a_process(struct vt *t)
{
	pid_t pid = fork();

	VT_CHECK(t, pid >= 0);
	if (!pid)
		hangs(t);
}

static void exits(struct vt *t)
{
	exit(3);
}

static void leaks(struct vt *t)
{
	VT_PTR(t, vb_alloc_pd(t->a.ctx));
}

static void has_random_numbers(struct vt *t)
{
	printf("random %llx\n", (unsigned long long)vt_random(t));
	VT_FAIL(t, "to be shown");
}

static void writes_control_characters(struct vt *t)
{
	fputs("\001\033[31m\377]]>\n", stdout);
	VT_FAIL(t, "to be shown");
}

static bool is_in_two(struct vt *t)
{
	return vb_context_backend(t->a.ctx) != vb_context_backend(t->b.ctx);
}

static void end_pd(void *arg)
{
	vb_dealloc_pd(arg);
}

static struct ibv_pd *pd_of_b(struct vt *t)
{
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(t->b.ctx));

	vt_defer(t, end_pd, pd);
	return pd;
}

static void uses_b(struct vt *t)
{
	VT_CHECK(t, pd_of_b(t)->context == t->b.ctx);
}

static void end_qp(void *arg)
{
	struct ibv_qp *qp = arg;
	struct ibv_cq *cq = qp->recv_cq;

	vb_destroy_qp(qp);
	vb_destroy_cq(cq);
}

static void receives_on_b(struct vt *t)
{
	struct ibv_pd *pd = pd_of_b(t);
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(t->b.ctx, 5, NULL, NULL, 0));
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_recv_wr = 3, .max_recv_sge = 1},
					.qp_type = IBV_QPT_UD};
	struct ibv_qp *qp = VT_PTR(t, vb_create_qp(pd, &init));
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = t->b.port};

	vt_defer(t, end_qp, qp);
	VT_OK(t, vb_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	VT_OK(t, vb_modify_qp(qp, &attr, IBV_QP_STATE));
}

static void receives_and_fails(struct vt *t)
{
	receives_on_b(t);
	VT_FAIL(t, "to be counted as no pass");
}

static void differs_in_two(struct vt *t)
{
	uses_b(t);
	VT_EXPECT_EQ(t, is_in_two(t), 0);
}

/* Nothing is mapped at the address. */
static void kills_b(struct vt *t)
{
	if (!is_in_two(t))
		VT_SKIP(t, "A and B are in one process");
	vt_defer(t, says, (void *)"not reached");
	vb_query_device(t->b.ctx, (struct ibv_device_attr *)64);
	puts("not reached");
}

static void leaks_in_b(struct vt *t)
{
	if (!is_in_two(t))
		VT_SKIP(t, "A and B are in one process");
	VT_PTR(t, vb_alloc_pd(t->b.ctx));
}

static void gives_own_memory(struct vt *t)
{
	static unsigned char memory[64];
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr(pd_of_b(t), memory, sizeof(memory), 0));

	VT_OK(t, vb_dereg_mr(mr));
}

static const struct vt_test good_tests[] = {
	{"passes", "unsourced", 0, passes},
	{"skips", "unsourced", 0, skips},
	{"needs", "unsourced", VT_NEEDS_INFINIBAND, passes},
	{"leaves_a_process", "unsourced", 0, leaves_a_process, VT_MAY_FORK},
	{NULL},
};

static const struct vt_test bad_tests[] = {
	{"fails", "unsourced", 0, fails},
	{"has_many_failures", "unsourced", 0, has_many_failures},
	{"crashes", "unsourced", 0, crashes},
	{"hangs", "unsourced", 0, hangs},
	{"exits", "unsourced", 0, exits},
	{"leaks", "unsourced", VT_NEEDS_SIM, leaks},
	{"has_random_numbers", "unsourced", 0, has_random_numbers},
	{"writes_control_characters", "unsourced", 0, writes_control_characters},
	{NULL},
};

static const struct vt_test two_tests[] = {
	{"uses_b", "unsourced", 0, uses_b},
	{"receives_on_b", "unsourced", 0, receives_on_b},
	{"receives_and_fails", "unsourced", 0, receives_and_fails},
	{"differs_in_two", "unsourced", 0, differs_in_two},
	{"kills_b", "unsourced", 0, kills_b},
	{"leaks_in_b", "unsourced", 0, leaks_in_b},
	{"gives_own_memory", "unsourced", 0, gives_own_memory},
	{NULL},
};

static const struct vt_test elsewhere_tests[] = {
	{"passes", "unsourced", 0, passes},
	{NULL},
};

static const struct vt_suite good = {"good", "tests that do not fail", good_tests};
static const struct vt_suite bad = {"bad", "tests that fail", bad_tests};
static const struct vt_suite two = {"two", "tests with B in another process", two_tests};
static const struct vt_suite elsewhere = {"elsewhere", "another link layer", elsewhere_tests,
					  .link_layer = IBV_LINK_LAYER_INFINIBAND};

const struct vt_suite *const vt_suites[] = {&good, &bad, &two, &elsewhere, NULL};
