/* SPDX-License-Identifier: MIT */
/* Memory windows of the backend sim, and changing the region under them. */
#include "test/unit/sim_pair.h"

static struct ibv_qp *from, *to;

void setUp(void)
{
	open_pair();
	connect_pair(&from, &to);
}

void tearDown(void)
{
	close_pair();
}

/* Writes 8 bytes from A to B's buffer. Returns the status of the completion. */
static enum ibv_wc_status write_to(uint32_t rkey, size_t offset)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = (uintptr_t)b.buffer + offset, .rkey = rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	return wait_wc(&a).status;
}

static struct ibv_mw_bind_info window_info(size_t offset, uint64_t length, unsigned int access)
{
	return (struct ibv_mw_bind_info){
		.mr = length ? b.mr : NULL,
		.addr = length ? (uintptr_t)b.buffer + offset : 0,
		.length = length,
		.mw_access_flags = access,
	};
}

static int bind_1(struct ibv_mw *mw, size_t offset, uint64_t length)
{
	struct ibv_mw_bind bind = {
		.wr_id = 5,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = window_info(offset, length, IBV_ACCESS_REMOTE_WRITE),
	};

	return B.bind_mw(to, mw, &bind);
}

static int bind_2(struct ibv_mw *mw, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 6,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			    .rkey = rkey,
			    .bind_info = window_info(0, 64, IBV_ACCESS_REMOTE_WRITE)},
	};

	return post_wr(to, &wr);
}

/* ibv_bind_mw(3): the new key is in mw->rkey on return. */
void test_a_type_1_window_opens_its_range_only(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t before;

	TEST_ASSERT_NOT_NULL(mw);
	before = mw->rkey;
	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 128, 64));
	TEST_ASSERT_TRUE(mw->rkey != before);
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	a.buffer[0] = 3;
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(mw->rkey, 128));
	TEST_ASSERT_EQUAL_INT(3, b.buffer[128]);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, write_to(mw->rkey, 128 + 57));
}

/* ibv_alloc_mw(3): a length of zero unbinds; ibv_dereg_mr() fails while one is bound. */
void test_dereg_is_busy_while_a_window_is_bound(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t bound;

	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 0, 64));
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	bound = mw->rkey;
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dereg_mr(b.mr));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(b.pd));
	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 0, 0));
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, write_to(bound, 0));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(b.mr));
}

void test_dealloc_unbinds(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);

	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 0, 64));
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_mw(mw));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_mw(mw));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(b.mr));
}

/* The low 8 bits of a type 2 window's key are the program's: ibv_inc_rkey(3). */
void test_a_type_2_window_is_bound_by_a_wr_and_invalidated(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr invalidate = {.wr_id = 7, .opcode = IBV_WR_LOCAL_INV};
	uint32_t rkey;

	TEST_ASSERT_NOT_NULL(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	TEST_ASSERT_EQUAL_INT(0, bind_2(mw, rkey));
	expect_wc(&b, 6, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(rkey, 0));
	invalidate.invalidate_rkey = rkey;
	TEST_ASSERT_EQUAL_INT(0, post_wr(to, &invalidate));
	expect_wc(&b, 7, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, write_to(rkey, 0));
}

void test_a_send_with_invalidate_ends_a_window(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_sge sge = sge_of(&b, 256, 64);
	struct ibv_recv_wr *bad, recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND_WITH_INV};
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, bind_2(mw, rkey));
	expect_wc(&b, 6, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad));
	send.invalidate_rkey = rkey;
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &send));
	wc = wait_wc(&b);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
	TEST_ASSERT_EQUAL_UINT32(rkey, wc.invalidated_rkey);
	expect_wc(&a, 0, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, write_to(rkey, 0));
}

/* The errors of ibv_bind_mw() in <infiniband/verbs.h>. */
void test_what_cannot_be_bound(void)
{
	struct ibv_pd *other = B.alloc_pd(b.context);
	struct ibv_mw *two = B.alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_mw *one = B.alloc_mw(b.pd, IBV_MW_TYPE_1);
	struct ibv_mw *elsewhere = B.alloc_mw(other, IBV_MW_TYPE_1);
	struct ibv_mw_bind no_mr = {.bind_info.length = 8};

	TEST_ASSERT_EQUAL_INT(EINVAL, bind_1(two, 0, 64));
	TEST_ASSERT_EQUAL_INT(EPERM, bind_1(elsewhere, 0, 64));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(to, one, &no_mr));
	TEST_ASSERT_EQUAL_INT(EINVAL, bind_2(one, one->rkey + 1));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_mw(one));
	TEST_ASSERT_EQUAL_INT(ENOENT, bind_1(one, 0, 64));
	expect_null(EINVAL, B.alloc_mw(b.pd, 3));
	expect_nothing(&b);
}

/* Two bindings of one window may be posted before the first completes. */
void test_bindings_may_follow_one_another(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t first;

	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 0, 64));
	first = mw->rkey;
	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 64, 64));
	TEST_ASSERT_TRUE(first != mw->rkey);
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(mw->rkey, 64));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, write_to(first, 0));
}

/* It fails as ibv_post_send(3); the window keeps its key. */
void test_a_binding_needs_room(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t rkey;
	int posted = 0, err;

	while (!(err = bind_1(mw, 0, 64)))
		TEST_ASSERT_TRUE(++posted < 1000);
	TEST_ASSERT_EQUAL_INT(ENOMEM, err);
	TEST_ASSERT_TRUE(posted > 0);
	rkey = mw->rkey;
	TEST_ASSERT_EQUAL_INT(ENOMEM, bind_1(mw, 0, 64));
	TEST_ASSERT_EQUAL_UINT32(rkey, mw->rkey);
	while (posted--)
		expect_wc(&b, 5, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(rkey, 0));
}

/* --- ibv_rereg_mr(3) --- */

void test_rereg_changes_range_access_and_pd(void)
{
	static uint8_t elsewhere[64];
	struct ibv_pd *other = B.alloc_pd(b.context);
	const uint32_t rkey = b.mr->rkey;

	TEST_ASSERT_EQUAL_INT(0, B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere,
					    sizeof(elsewhere), 0));
	TEST_ASSERT_EQUAL_PTR(elsewhere, b.mr->addr);
	TEST_ASSERT_EQUAL_UINT64(sizeof(elsewhere), b.mr->length);
	a.buffer[0] = 4;
	TEST_ASSERT_EQUAL_UINT32(rkey, b.mr->rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(b.mr->rkey, (size_t)(elsewhere - b.buffer)));
	TEST_ASSERT_EQUAL_INT(4, elsewhere[0]);
	TEST_ASSERT_EQUAL_INT(0, B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	TEST_ASSERT_EQUAL_PTR(other, b.mr->pd);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(other));
	TEST_ASSERT_EQUAL_INT(0,
			      B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD,
					 b.pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(other));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR,
			      write_to(b.mr->rkey, (size_t)(elsewhere - b.buffer)));
}

void test_rereg_has_its_own_errors(void)
{
	struct ibv_mr *null = B.alloc_null_mr(b.pd);
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_1);

	TEST_ASSERT_NOT_NULL(null);
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT, B.rereg_mr(b.mr, 1 << 5, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(
		IBV_REREG_MR_ERR_INPUT,
		B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buffer, 0, 0));
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT,
			      B.rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD,
			      B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_PD, a.pd, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(
		IBV_REREG_MR_ERR_CMD,
		B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 8, 0));
	TEST_ASSERT_EQUAL_INT(EFAULT, errno);
	TEST_ASSERT_EQUAL_INT(0, bind_1(mw, 0, 64));
	expect_wc(&b, 5, IBV_WC_SUCCESS);
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD,
			      B.rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					 IBV_ACCESS_LOCAL_WRITE));
	TEST_ASSERT_EQUAL_INT(EBUSY, errno);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, write_to(b.mr->rkey, 0));
}
