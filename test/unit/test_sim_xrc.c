/* SPDX-License-Identifier: MIT */
/* XRC domains, SRQs and QPs of the backend sim. */
#include "test/unit/sim_pair.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq;
static struct ibv_qp *from, *to;
static uint32_t srqn;

static struct ibv_xrcd *open_domain(struct ibv_context *context, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return B.open_xrcd(context, &attr);
}

static struct ibv_qp *make_target(struct ibv_context *context, struct ibv_xrcd *in)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = in,
	};

	return B.create_qp_ex(context, &attr);
}

static struct ibv_qp *open_target(struct ibv_context *context, struct ibv_xrcd *in, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = in,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return B.open_qp(context, &attr);
}

void setUp(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp_init_attr_ex sender;

	open_pair();
	xrcd = open_domain(b.context, -1, O_CREAT);
	TEST_ASSERT_NOT_NULL(xrcd);
	attr.pd = b.pd;
	attr.xrcd = xrcd;
	attr.cq = b.cq;
	srq = B.create_srq_ex(b.context, &attr);
	TEST_ASSERT_NOT_NULL(srq);
	TEST_ASSERT_EQUAL_INT(0, B.get_srq_num(srq, &srqn));
	to = make_target(b.context, xrcd);
	TEST_ASSERT_NOT_NULL(to);
	sender = qp_attr(&a, IBV_QPT_XRC_SEND);
	from = B.create_qp_ex(a.context, &sender);
	TEST_ASSERT_NOT_NULL(from);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
}

void tearDown(void)
{
	close_pair();
}

static void post_srq(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_srq_recv(srq, &wr, &bad));
}

static void send_one(uint64_t wr_id, uint32_t to_srq)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .qp_type.xrc.remote_srqn = to_srq};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

void test_a_send_reaches_the_srq_that_it_names(void)
{
	memset(a.buffer, 9, 8);
	post_srq(1);
	send_one(2, srqn);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	expect_wc(&a, 2, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(9, b.buffer[0]);
}

/* ibv_close_xrcd(3): may fail while any resource is associated with it. */
void test_close_is_busy_while_it_is_used(void)
{
	TEST_ASSERT_EQUAL_INT(EBUSY, B.close_xrcd(xrcd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.close_xrcd(xrcd));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_cq(b.cq));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(srq));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(xrcd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.close_xrcd(xrcd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(b.cq));
}

/* ibv_open_xrcd(3), and Linux drivers/infiniband/core/uverbs_cmd.c for the errors. */
void test_an_inode_has_one_domain(void)
{
	FILE *file = tmpfile();
	struct ibv_xrcd *first, *second;
	struct ibv_qp *target;
	int fd;

	TEST_ASSERT_NOT_NULL(file);
	fd = fileno(file);
	expect_null(EAGAIN, open_domain(b.context, fd, 0));
	first = open_domain(b.context, fd, O_CREAT | O_EXCL);
	TEST_ASSERT_NOT_NULL(first);
	expect_null(EINVAL, open_domain(b.context, fd, O_CREAT | O_EXCL));
	second = open_domain(b.context, fd, 0);
	TEST_ASSERT_NOT_NULL(second);
	TEST_ASSERT_TRUE(first != second);
	target = make_target(b.context, first);
	TEST_ASSERT_NOT_NULL(target);
	TEST_ASSERT_NOT_NULL(open_target(b.context, second, target->qp_num));
	expect_null(EINVAL, open_target(b.context, xrcd, target->qp_num));
	fclose(file);
	expect_null(EBADF, open_domain(b.context, 1 << 20, O_CREAT));
}

/* ibv_open_qp(3): ibv_destroy_qp() ends the QP with its last handle. */
void test_a_target_lives_as_long_as_its_last_handle(void)
{
	struct ibv_qp *again = open_target(b.context, xrcd, to->qp_num);

	TEST_ASSERT_NOT_NULL(again);
	TEST_ASSERT_EQUAL_UINT32(to->qp_num, again->qp_num);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, again->state);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_qp(to));
	post_srq(1);
	send_one(2, srqn);
	expect_wc(&a, 2, IBV_WC_SUCCESS);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(again));
	expect_null(EINVAL, open_target(b.context, xrcd, again->qp_num));
}

/* Linux drivers/infiniband/core/verbs.c: each handle of a shared QP gets its events. */
void test_events_go_to_every_handle(void)
{
	struct ibv_qp *again = open_target(b.context, xrcd, to->qp_num);
	struct ibv_async_event event[2];

	post_srq(1);
	send_one(2, srqn + 1); /* there is no such SRQ */
	expect_wc(&a, 2, IBV_WC_REM_INV_REQ_ERR);
	for (int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(0, B.get_async_event(b.context, &event[i]));
		B.ack_async_event(&event[i]);
	}
	TEST_ASSERT_EQUAL_INT(event[0].event_type, event[1].event_type);
	TEST_ASSERT_TRUE((event[0].element.qp == to && event[1].element.qp == again) ||
			 (event[0].element.qp == again && event[1].element.qp == to));
}

void test_what_a_type_needs_is_checked(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_XRC_RECV);

	expect_null(EINVAL, B.create_qp_ex(a.context, &attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = xrcd; /* of the other context */
	expect_null(EINVAL, B.create_qp_ex(a.context, &attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	expect_null(EINVAL, B.create_qp_ex(a.context, &attr));
}

/* Neither has a receive queue: ibv_create_qp_ex(3); EINVAL: unsourced. */
void test_post_recv_is_refused(void)
{
	struct ibv_qp *const qps[] = {from, to};

	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_recv_wr *bad = NULL, wr = {0};

		TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(qps[i], &wr, &bad));
		TEST_ASSERT_EQUAL_PTR(&wr, bad);
	}
}

/* A requester's peer has to be a responder: packets for another requester are dropped. */
void test_two_initiators_do_not_connect(void)
{
	struct ibv_qp_init_attr_ex here = qp_attr(&a, IBV_QPT_XRC_SEND);
	struct ibv_qp_init_attr_ex there = qp_attr(&b, IBV_QPT_XRC_SEND);
	struct ibv_qp *other = B.create_qp_ex(b.context, &there);

	from = B.create_qp_ex(a.context, &here);
	TEST_ASSERT_TRUE(from && other);
	connect_qp(from, &b, other->qp_num);
	connect_qp(other, &a, from->qp_num);
	post_srq(1);
	send_one(2, srqn);
	expect_wc(&a, 2, IBV_WC_RETRY_EXC_ERR);
	expect_nothing(&b);
}
