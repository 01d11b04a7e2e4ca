/* SPDX-License-Identifier: MIT */
/*
 * Reasons of ibv_wr_start() to ibv_wr_complete() and of polling: each mistake, and the whole sentence
 * that the program gets. The mistakes of ibv_post_send() are in test_sim_reasons.c.
 */
#include "src/guard/guard.h"
#include "test/unit/sim_sentence.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOWHERE	     ((void *)16)

static struct ibv_qp_ex *ex;
static uint32_t qpn;

static struct ibv_qp *make_qp(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, type);
	struct ibv_qp *qp;

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = ops;
	qp = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	connect_qp(qp, &b, 1);
	ex = B.qp_to_qp_ex(qp);
	qpn = qp->qp_num;
	return qp;
}

void setUp(void)
{
	open_pair();
	make_qp(IBV_QPT_RC,
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_ATOMIC_WRITE);
}

void tearDown(void)
{
	close_pair();
}

/* A send that is right, as WR 0. */
static void good_send(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
}

/* --- mistakes between ibv_wr_start() and ibv_wr_complete() --- */

static void start_again(void)
{
	ibv_wr_start(ex);
}

static void operation_not_asked_for(void)
{
	good_send();
	ibv_wr_rdma_read(ex, 1, 1);
}

static void too_many_wrs(void)
{
	for (int i = 0; i < 9; i++)
		good_send();
}

static void send_without_data(void)
{
	good_send();
	ibv_wr_send(ex);
}

static void sge_without_wr(void)
{
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
}

static void sge_twice(void)
{
	good_send();
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer, 8);
}

static void inline_data_of_a_local_wr(void)
{
	ibv_wr_local_inv(ex, 1);
	ibv_wr_set_inline_data(ex, a.buffer, 8);
}

static void address_of_an_rc_wr(void)
{
	good_send();
	ibv_wr_set_ud_addr(ex, NULL, 1, QKEY);
}

static void three_sges(void)
{
	const struct ibv_sge sges[3] = {{0}};

	good_send();
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, sges);
}

static void long_inline_data(void)
{
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, a.buffer, 65);
}

static void inline_data_of_nowhere(void)
{
	const struct ibv_data_buf buffers[2] = {{a.buffer, 8}, {NOWHERE, 8}};

	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, buffers);
}

static void atomic_write_of_nowhere(void)
{
	ibv_wr_atomic_write(ex, b.mr->rkey, (uintptr_t)b.buffer, NOWHERE);
}

void test_mistakes_of_batches(void)
{
	static const struct {
		enum vb_reason reason;
		int error;
		void (*make)(void);
		const char *sentence; /* %x stands for the QP's number */
	} mistakes[] = {
		{VB_WHY_BATCH_TWICE, EINVAL, start_again,
		 "wr_complete: QP 0x%x: ibv_wr_start() was called twice, so that no WR is posted; "
		 "call ibv_wr_complete() or ibv_wr_abort() between two calls of ibv_wr_start()"},
		{VB_WHY_BATCH_OPERATION, EOPNOTSUPP, operation_not_asked_for,
		 "wr_complete: QP 0x%x: WR 1 of the batch is RDMA_READ, and the QP was created "
		 "without IBV_QP_EX_WITH_RDMA_READ; add the flag to send_ops_flags of "
		 "ibv_create_qp_ex()"},
		{VB_WHY_BATCH_FULL, ENOMEM, too_many_wrs,
		 "wr_complete: QP 0x%x: the batch has more than max_send_wr of 8 WRs; post the WRs "
		 "in several batches, or create the QP with a larger cap.max_send_wr"},
		{VB_WHY_BATCH_NO_DATA, EINVAL, send_without_data,
		 "wr_complete: QP 0x%x: WR 1 of the batch, SEND, has no data; call one of "
		 "ibv_wr_set_sge(), ibv_wr_set_sge_list() and ibv_wr_set_inline_data() after each "
		 "builder; num_sge may be 0"},
		{VB_WHY_BATCH_NO_WR, EINVAL, sge_without_wr,
		 "wr_complete: QP 0x%x: a setter was called before a builder; call a builder, such "
		 "as ibv_wr_send(), and then the setters of its WR"},
		{VB_WHY_BATCH_SETTER, EINVAL, sge_twice,
		 "wr_complete: QP 0x%x: WR 0 of the batch, SEND, does not take data, or has data "
		 "already; call each setter at most once after a builder, and only those that the "
		 "operation and the QP type need"},
		{VB_WHY_BATCH_SETTER, EINVAL, inline_data_of_a_local_wr,
		 "wr_complete: QP 0x%x: WR 0 of the batch, LOCAL_INV, does not take inline data, "
		 "or "
		 "has inline data already; call each setter at most once after a builder, and only "
		 "those that the operation and the QP type need"},
		{VB_WHY_BATCH_SETTER, EINVAL, address_of_an_rc_wr,
		 "wr_complete: QP 0x%x: WR 0 of the batch, SEND, does not take a destination, or "
		 "has"
		 " a destination already; call each setter at most once after a builder, and only "
		 "those that the operation and the QP type need"},
		{VB_WHY_BATCH_SGES, EINVAL, three_sges,
		 "wr_complete: QP 0x%x: WR 1 of the batch, SEND, has 3 SGEs, more than the QP's "
		 "max_send_sge of 2; give fewer SGEs, or create the QP with a larger "
		 "cap.max_send_sge"},
		{VB_WHY_BATCH_INLINE_LENGTH, EINVAL, long_inline_data,
		 "wr_complete: QP 0x%x: the inline data of WR 0 of the batch, SEND, is longer than "
		 "the QP's max_inline_data of 64; give SGEs, or create the QP with a larger "
		 "cap.max_inline_data"},
		{VB_WHY_BATCH_INLINE_FAULT, EFAULT, inline_data_of_nowhere,
		 "wr_complete: QP 0x%x: buffer 1 of the inline data of WR 0 of the batch, SEND, at "
		 "0x10 is not readable memory; give the address of the data"},
		{VB_WHY_BATCH_ATOMIC_FAULT, EFAULT, atomic_write_of_nowhere,
		 "wr_complete: QP 0x%x: the 8 bytes of WR 0 of the batch, ATOMIC_WRITE, at 0x10 "
		 "are not readable memory; give the address of the data"},
	};
	char expected[512];

	guard_install(); /* above the test framework's own handler */
	for (size_t i = 0; i < COUNT(mistakes); i++) {
		ibv_wr_start(ex);
		mistakes[i].make();
		TEST_ASSERT_EQUAL_INT(mistakes[i].error, ibv_wr_complete(ex));
		snprintf(expected, sizeof(expected), mistakes[i].sentence, qpn);
		expect_reason(mistakes[i].reason, "%s", expected);
		expect_nothing(&a);
	}
}

/* The sentence names the first mistake, and a right batch after it is posted. */
void test_the_first_mistake_of_a_batch_counts(void)
{
	ibv_wr_start(ex);
	long_inline_data();
	three_sges();
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_BATCH_INLINE_LENGTH, B.last_why()->reason);
	ibv_wr_start(ex);
	good_send();
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
}

void test_a_datagram_without_destination(void)
{
	make_qp(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	ibv_wr_start(ex);
	good_send();
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	expect_reason(VB_WHY_BATCH_NO_ADDRESS,
		      "wr_complete: QP 0x%x: WR 0 of the batch, SEND, has no destination; call "
		      "ibv_wr_set_ud_addr() after each builder of a UD QP, and "
		      "ibv_wr_set_xrc_srqn() of an XRC_SEND QP",
		      qpn);
}

void test_a_batch_that_was_not_started(void)
{
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	expect_reason(VB_WHY_BATCH_CLOSED,
		      "wr_complete: this thread has not called ibv_wr_start() on QP 0x%x; call "
		      "ibv_wr_start(), build the WRs, then call ibv_wr_complete(), all in one "
		      "thread",
		      qpn);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(&ex->qp_base));
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	expect_reason(VB_WHY_BATCH_NONE,
		      "wr_complete: QP 0x%x is destroyed, or was created without send_ops_flags; "
		      "create the QP with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, and use it until it is "
		      "destroyed",
		      qpn);
}

/* Verbs of the data path answer EINVAL for a queue that is destroyed. */
void test_posting_to_a_destroyed_qp(void)
{
	struct ibv_qp *qp = &ex->qp_base;
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	const uint32_t handle = qp->handle;

	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(qp, &send, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&send, bad_send);
	expect_reason(
		VB_WHY_QUEUE_GONE,
		"post_send: the QP of handle %u is not live: it was destroyed, or its handle "
		"was overwritten; use the QP only until it is destroyed, and leave its fields "
		"unchanged",
		handle);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv, bad_recv);
	expect_reason(
		VB_WHY_QUEUE_GONE,
		"post_recv: the QP of handle %u is not live: it was destroyed, or its handle "
		"was overwritten; use the QP only until it is destroyed, and leave its fields "
		"unchanged",
		handle);
}

/* --- polling --- */

void test_mistakes_of_poll_cq(void)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(-1, ibv_poll_cq(a.cq, -3, &wc));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(
		VB_WHY_POLL_COUNT,
		"poll_cq: num_entries is -3, which is negative; give the number of entries of "
		"the array wc, 0 or more");
}

/* Takes two completions into a CQ of one entry, and polls the first. */
static struct ibv_cq_ex *overrun_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 1};
	struct ibv_cq_ex *cq = B.create_cq_ex(a.context, &attr);
	struct ibv_qp_init_attr_ex init = qp_attr(&a, IBV_QPT_RC);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	TEST_ASSERT_NOT_NULL(cq);
	init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = B.create_qp_ex(a.context, &init);
	connect_qp(qp, &b, 1);
	for (int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &error, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(init.recv_cq, 1, &wc));
	return cq;
}

void test_polling_a_cq_that_has_overrun(void)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = overrun_cq();
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(-1, ibv_poll_cq(ibv_cq_ex_to_cq(cq), 1, &wc));
	expect_reason(VB_WHY_CQ_OVERRUN,
		      "poll_cq: the CQ of handle %u has overrun: it has room for 1 completion; "
		      "completions are "
		      "lost, and no more will come; destroy its QPs and the CQ, and create a CQ "
		      "with an entry for each send and receive that can be outstanding",
		      cq->handle);
	TEST_ASSERT_EQUAL_INT(EIO, ibv_start_poll(cq, &attr));
	TEST_ASSERT_EQUAL_STRING("start_poll", B.last_why()->verb);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_CQ_OVERRUN, B.last_why()->reason);
	attr.comp_mask = 3;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_start_poll(cq, &attr));
	expect_reason(VB_WHY_POLL_MASK,
		      "start_poll: comp_mask of struct ibv_poll_cq_attr is 0x3, and no bit is "
		      "defined; set comp_mask to 0");
}
