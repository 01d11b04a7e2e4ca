/* SPDX-License-Identifier: MIT */
/* Shared receive queues of the backend sim. */
#include "test/unit/sim_pair.h"

static struct ibv_srq *srq;
static struct ibv_qp *from, *to;

static struct ibv_srq *make_srq(struct end *end, uint32_t max_wr)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = 1}};
	struct ibv_srq *made = B.create_srq(end->pd, &attr);

	if (made) {
		TEST_ASSERT_TRUE(attr.attr.max_wr >= max_wr);
		TEST_ASSERT_TRUE(attr.attr.max_sge >= 1);
	}
	return made;
}

static struct ibv_qp *make_qp(struct end *end, struct ibv_srq *with)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(end, IBV_QPT_RC);

	attr.srq = with;
	return B.create_qp_ex(end->context, &attr);
}

void setUp(void)
{
	open_pair();
	srq = make_srq(&b, 4);
	TEST_ASSERT_NOT_NULL(srq);
	from = make_qp(&a, NULL);
	to = make_qp(&b, srq);
	TEST_ASSERT_NOT_NULL(to);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
}

void tearDown(void)
{
	close_pair();
}

static int post_srq(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&b, 64 * (wr_id % 16), 64);
	struct ibv_recv_wr *bad = NULL, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	TEST_ASSERT_EQUAL_PTR(err ? &wr : NULL, bad);
	return err;
}

static void send_one(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

void test_receives_are_taken_in_the_order_of_posting(void)
{
	TEST_ASSERT_EQUAL_INT(0, post_srq(1));
	TEST_ASSERT_EQUAL_INT(0, post_srq(2));
	memset(a.buffer, 7, 8);
	send_one(10);
	send_one(11);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	expect_wc(&b, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(7, b.buffer[64]);
	TEST_ASSERT_EQUAL_INT(7, b.buffer[128]);
}

void test_a_full_srq_refuses_and_takes_again_when_its_completion_is_polled(void)
{
	for (uint64_t i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, post_srq(i));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_srq(4));
	send_one(10);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_srq(4));
	expect_wc(&b, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, post_srq(4));
}

/* ibv_post_recv(3): not for a QP that is associated with an SRQ. */
void test_post_recv_on_a_qp_with_an_srq_is_refused(void)
{
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct ibv_recv_wr *bad = NULL, wr = {.sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(to, &wr, &bad));
	TEST_ASSERT_EQUAL_PTR(&wr, bad);
	wr = (struct ibv_recv_wr){0}; /* no SGE that would be one too many */
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(to, &wr, &bad));
}

/* ibv_destroy_srq(3): fails while a QP uses it. */
void test_destroy_is_busy_while_a_qp_uses_it(void)
{
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_srq(srq));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(b.pd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(srq));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_srq(srq));
	TEST_ASSERT_EQUAL_INT(EINVAL, post_srq(1));
}

void test_the_limit_event_comes_once_and_is_acknowledged(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_async_event event;

	TEST_ASSERT_EQUAL_INT(0, post_srq(1));
	TEST_ASSERT_EQUAL_INT(0, post_srq(2));
	TEST_ASSERT_EQUAL_INT(0, B.modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	send_one(10);
	send_one(11);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	expect_wc(&b, 2, IBV_WC_SUCCESS);
	do
		TEST_ASSERT_EQUAL_INT(0, B.get_async_event(b.context, &event));
	while (event.event_type == IBV_EVENT_COMM_EST && (B.ack_async_event(&event), true));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
	TEST_ASSERT_EQUAL_PTR(srq, event.element.srq);
	TEST_ASSERT_EQUAL_INT(0, B.query_srq(srq, &attr));
	TEST_ASSERT_EQUAL_UINT32(0, attr.srq_limit);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(EDEADLK, B.destroy_srq(srq));
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(srq));
}

void test_modify_and_query(void)
{
	struct ibv_srq_attr attr = {.max_wr = 9};

	TEST_ASSERT_EQUAL_INT(0, B.modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	TEST_ASSERT_EQUAL_INT(0, B.query_srq(srq, &attr));
	TEST_ASSERT_TRUE(attr.max_wr >= 9);
	for (uint64_t i = 0; i < 9; i++)
		TEST_ASSERT_EQUAL_INT(0, post_srq(i));
	attr.max_wr = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	attr.srq_limit = 100;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, 1 << 5));
}

/* Objects of another context are refused, as objects that do not exist. */
void test_foreign_parts_are_refused(void)
{
	struct ibv_srq *foreign = make_srq(&a, 4);

	TEST_ASSERT_NOT_NULL(foreign);
	expect_null(EINVAL, make_qp(&b, foreign));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(foreign));
	expect_null(ENOENT, make_qp(&a, foreign));
}

void test_create_srq_ex_checks_what_it_is_asked_for(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = b.pd,
	};
	struct ibv_srq *made = B.create_srq_ex(b.context, &attr);
	uint32_t number;

	TEST_ASSERT_NOT_NULL(made);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.get_srq_num(made, &number));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(made));
	attr.srq_type = IBV_SRQT_TM;
	expect_null(EOPNOTSUPP, B.create_srq_ex(b.context, &attr));
	attr.srq_type = IBV_SRQT_XRC;
	expect_null(EINVAL, B.create_srq_ex(b.context, &attr));
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	expect_null(EINVAL, B.create_srq_ex(b.context, &attr));
	attr.attr.max_wr = 0;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	expect_null(EINVAL, B.create_srq_ex(b.context, &attr));
}
