/* SPDX-License-Identifier: MIT */
/* Posting by calls, ibv_wr_post(3), on the backend sim. */
#include "test/unit/sim_pair.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>

#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

static struct ibv_qp *from, *to;
static struct ibv_qp_ex *ex;

static struct ibv_qp *make_qp(struct end *end, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(end, type);

	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = ops;
	return B.create_qp_ex(end->context, &attr);
}

static void start_with(enum ibv_qp_type type, uint64_t ops)
{
	from = make_qp(&a, type, ops);
	to = make_qp(&b, type, ops);
	TEST_ASSERT_NOT_NULL(to);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	ex = B.qp_to_qp_ex(from);
	TEST_ASSERT_NOT_NULL(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
}

void setUp(void)
{
	open_pair();
	start_with(IBV_QPT_RC, RC_OPS);
}

void tearDown(void)
{
	close_pair();
}

static void post_recv(uint64_t wr_id)
{
	struct ibv_sge sge = sge_of(&b, 512, 256);
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &wr, &bad));
}

static uint64_t remote(size_t offset)
{
	return (uintptr_t)b.buffer + offset;
}

static void set_sge(size_t offset, uint32_t length)
{
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buffer + offset, length);
}

void test_a_batch_of_all_operations_is_done_in_order(void)
{
	uint64_t *counter = (uint64_t *)b.buffer;
	struct ibv_sge pieces[2] = {sge_of(&a, 0, 8), sge_of(&a, 64, 8)};

	post_recv(100);
	post_recv(101);
	memset(a.buffer, 1, 8);
	memset(a.buffer + 64, 2, 8);
	*counter = 40;
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(64));
	ibv_wr_set_sge_list(ex, 2, pieces);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	set_sge(0, 8);
	ex->wr_id = 3;
	ibv_wr_rdma_write_imm(ex, b.mr->rkey, remote(128), htobe32(77));
	set_sge(0, 8);
	ex->wr_id = 4;
	ibv_wr_atomic_fetch_add(ex, b.mr->rkey, remote(0), 2);
	set_sge(256, 8);
	ex->wr_id = 5;
	ibv_wr_atomic_cmp_swp(ex, b.mr->rkey, remote(0), 42, 7);
	set_sge(264, 8);
	ex->wr_id = 6;
	ibv_wr_rdma_read(ex, b.mr->rkey, remote(64));
	set_sge(320, 16);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	for (uint64_t i = 1; i <= 6; i++)
		expect_wc(&a, i, IBV_WC_SUCCESS);
	expect_wc(&b, 100, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_UINT32(77, be32toh(wait_wc(&b).imm_data));
	TEST_ASSERT_EQUAL_UINT64(7, *counter);
	TEST_ASSERT_EQUAL_INT(2, b.buffer[72]);
	TEST_ASSERT_EQUAL_MEMORY(b.buffer + 64, a.buffer + 320, 16);
}

/* ibv_wr_post(3): no work is executed until ibv_wr_complete(); abort discards it. */
void test_abort_posts_nothing(void)
{
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
	set_sge(0, 8);
	expect_nothing(&a);
	ibv_wr_abort(ex);
	expect_nothing(&a);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	ibv_wr_start(ex);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_nothing(&a);
}

/* ibv_wr_post(3): the copy is made by the setter. */
void test_inline_data_is_copied_by_the_setter(void)
{
	char first[] = "first", second[] = "second";
	struct ibv_data_buf both[] = {{first, 5}, {second, 7}};

	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
	ibv_wr_set_inline_data(ex, first, sizeof(first));
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(64));
	ibv_wr_set_inline_data_list(ex, 2, both);
	memset(first, 'x', sizeof(first));
	memset(second, 'x', sizeof(second));
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	wait_wc(&a);
	wait_wc(&a);
	TEST_ASSERT_EQUAL_STRING("first", (char *)b.buffer);
	TEST_ASSERT_EQUAL_STRING("firstsecond", (char *)b.buffer + 64);
}

/* ibv_wr_post(3): a failure is returned by ibv_wr_complete() and aborts the entire posting. */
static void begin(void)
{
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
	set_sge(0, 8);
}

static void expect_aborted(int error)
{
	TEST_ASSERT_EQUAL_INT(error, ibv_wr_complete(ex));
	expect_nothing(&a);
}

void test_a_mistake_aborts_the_whole_batch(void)
{
	static uint8_t large[65];
	struct ibv_sge three[3] = {sge_of(&a, 0, 8), sge_of(&a, 0, 8), sge_of(&a, 0, 8)};
	const struct ibv_mw_bind_info info = {.mr = a.mr};

	/* CMocka has installed its handler for faults after setUp() made the QPs. */
	start_with(IBV_QPT_RC, RC_OPS);
	begin();
	ibv_wr_rdma_read(ex, b.mr->rkey, remote(0)); /* no data setter */
	expect_aborted(EINVAL);
	begin();
	set_sge(0, 8); /* twice */
	expect_aborted(EINVAL);
	begin();
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, three); /* more than max_send_sge */
	expect_aborted(EINVAL);
	begin();
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, large, sizeof(large));
	expect_aborted(EINVAL);
	begin();
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, (void *)4096, 8);
	expect_aborted(EFAULT);
	begin();
	ibv_wr_rdma_read(ex, b.mr->rkey, remote(0));
	ibv_wr_set_inline_data(ex, large, 8); /* SEND and WRITE only */
	expect_aborted(EINVAL);
	begin();
	ibv_wr_set_ud_addr(ex, NULL, 0, 0);
	expect_aborted(EINVAL);
	begin();
	ibv_wr_local_inv(ex, 1);
	set_sge(0, 8);
	expect_aborted(EINVAL);
	begin();
	ibv_wr_bind_mw(ex, NULL, 1, &info);
	expect_aborted(EINVAL);
	begin();
	ibv_wr_send_tso(ex, large, 8, 8);
	expect_aborted(EOPNOTSUPP);
	/* The next batch has no trace of the last one. */
	begin();
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_wc(&a, 0, IBV_WC_SUCCESS);
}

void test_a_batch_that_does_not_fit_is_not_begun(void)
{
	for (int n = 0; n < 2; n++) {
		ibv_wr_start(ex);
		for (int i = 0; i < 5; i++) { /* of 8 */
			ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
			set_sge(0, 8);
		}
		TEST_ASSERT_EQUAL_INT(n ? ENOMEM : 0, ibv_wr_complete(ex));
	}
	for (int i = 0; i < 5; i++)
		expect_wc(&a, 0, IBV_WC_SUCCESS);
	expect_nothing(&a);
	ibv_wr_start(ex);
	for (int i = 0; i < 9; i++) {
		ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
		set_sge(0, 8);
	}
	expect_aborted(ENOMEM);
}

/* ibv_wr_post(3): creation fails unless all of the requested types are supported. */
void test_operations_of_a_type_are_checked_at_creation(void)
{
	static const struct {
		enum ibv_qp_type type;
		uint64_t ops;
		bool good;
	} rows[] = {
		{IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, true},
		{IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, false},
		{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_BIND_MW, true},
		{IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, false},
		{IBV_QPT_RC, IBV_QP_EX_WITH_TSO, false},
		{IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE, true},
		{IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_ATOMIC_WRITE, true},
		{IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE, false},
		{IBV_QPT_RC, UINT64_C(1) << 40, false},
		{IBV_QPT_XRC_SEND, RC_OPS, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_qp *qp = make_qp(&a, rows[i].type, rows[i].ops);

		if (rows[i].good)
			TEST_ASSERT_NOT_NULL(qp);
		else
			expect_null(EOPNOTSUPP, qp);
	}
}

/* The call copies the data, which takes neither SGEs nor inline room of the QP. */
void test_an_atomic_write_brings_its_own_data(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	uint64_t value = 0x1122334455667788, sent = value;

	attr.cap.max_send_sge = 0;
	attr.cap.max_inline_data = 0;
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE;
	from = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(from);
	to = make_qp(&b, IBV_QPT_RC, RC_OPS);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	ex = B.qp_to_qp_ex(from);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	for (int i = 0; i < 3; i++) {
		ex->wr_id = (uint64_t)i;
		ibv_wr_atomic_write(ex, b.mr->rkey, remote(64 + 8 * (size_t)i), &value);
		value = 0;
	}
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	for (uint64_t i = 0; i < 3; i++)
		expect_wc(&a, i, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_MEMORY(&sent, b.buffer + 64, 8);
	TEST_ASSERT_EQUAL_MEMORY(&value, b.buffer + 72, 8);
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, b.mr->rkey, remote(64), (void *)4096);
	expect_aborted(EFAULT);
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, b.mr->rkey, remote(64), &value);
	set_sge(0, 8);
	expect_aborted(EINVAL);
}

void test_an_operation_that_was_not_asked_for_is_refused(void)
{
	start_with(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, b.mr->rkey, remote(0));
	set_sge(0, 8);
	expect_aborted(EOPNOTSUPP);
}

void test_a_qp_without_send_ops_has_no_extended_view(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	TEST_ASSERT_NULL(B.qp_to_qp_ex(B.create_qp_ex(a.context, &attr)));
}

void test_a_datagram_needs_its_address(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};
	struct ibv_ah *ah;

	start_with(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	attr.grh.dgid = b.gid;
	ah = B.create_ah(a.pd, &attr);
	TEST_ASSERT_NOT_NULL(ah);
	post_recv(100);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	set_sge(0, 8);
	expect_aborted(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	set_sge(0, 8);
	ibv_wr_set_ud_addr(ex, NULL, to->qp_num, QKEY);
	expect_aborted(EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send_imm(ex, htobe32(5));
	ibv_wr_set_ud_addr(ex, ah, to->qp_num, QKEY);
	set_sge(0, 8);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	TEST_ASSERT_EQUAL_UINT32(5, be32toh(wait_wc(&b).imm_data));
}

void test_windows_are_bound_and_invalidated(void)
{
	struct ibv_mw *mw = B.alloc_mw(a.pd, IBV_MW_TYPE_2);
	const struct ibv_mw_bind_info info = {
		.mr = a.mr,
		.addr = (uintptr_t)a.buffer,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	const uint32_t rkey = ibv_inc_rkey(mw->rkey);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_bind_mw(ex, mw, rkey, &info);
	ex->wr_id = 2;
	ibv_wr_local_inv(ex, rkey);
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_wc(&a, 1, IBV_WC_SUCCESS);
	expect_wc(&a, 2, IBV_WC_SUCCESS);
}

void test_a_state_that_does_not_send_takes_nothing(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	begin();
	expect_aborted(EINVAL);
}

/* Calls through the pointers of a destroyed QP are errors, not crashes. */
void test_a_destroyed_qp_answers_einval(void)
{
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(from));
	begin();
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_wr_complete(ex));
	ibv_wr_abort(ex);
}

/* --- ibv_wr_post(3), CONCURRENCY: start to end is a critical section --- */

static void *post_one(void *arg)
{
	struct ibv_qp_ex *qp = arg;

	for (int i = 0; i < 100; i++) {
		ibv_wr_start(qp);
		qp->wr_id = (uintptr_t)arg;
		ibv_wr_rdma_write(qp, b.mr->rkey, remote(0));
		set_sge(0, 8);
		ibv_wr_rdma_write(qp, b.mr->rkey, remote(0));
		set_sge(0, 8);
		ibv_wr_abort(qp);
	}
	return NULL;
}

void test_threads_keep_one_another_out(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, post_one, ex));
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], NULL));
	begin();
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(ex));
	expect_wc(&a, (uintptr_t)ex, IBV_WC_SUCCESS);
	expect_nothing(&a);
}
