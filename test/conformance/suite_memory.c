/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: what can be registered, and what a key then allows.
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/support.h"

#include <sys/mman.h>
#include <unistd.h>

#define ALL TS_ACCESS_ALL
#define LW  IBV_ACCESS_LOCAL_WRITE
#define RW  IBV_ACCESS_REMOTE_WRITE
#define RR  IBV_ACCESS_REMOTE_READ
#define RA  IBV_ACCESS_REMOTE_ATOMIC

static void region_has_the_attributes_of_its_registration(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 8192);
	struct ibv_mr *mr = ts_mr(t, pd, memory, 5000, ALL);

	VT_CHECK(t, mr->addr == memory);
	VT_EQ(t, mr->length, 5000);
	VT_CHECK(t, mr->pd == pd);
	VT_CHECK(t, mr->context == t->a.ctx);
}

static void every_combination_of_rights(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);
	struct ibv_mr *mr;
	int access;
	bool legal;

	for (access = 0; access < 16; access++) {
		vt_row(t, "access 0x%x", access);
		legal = !(access & (RW | RA)) || (access & LW);
		errno = 0;
		mr = vb_reg_mr(pd, memory, 4096, access);
		VT_EXPECT_EQ(t, mr != NULL, legal);
		if (mr)
			VT_EXPECT_OK(t, vb_dereg_mr(mr));
		else
			VT_EXPECT_EQ(t, errno, EINVAL);
	}
}

static void unknown_right_is_refused(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);

	VT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 4096, LW | 1 << 15), EINVAL);
}

static void unsupported_optional_right_is_ignored(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);

	ts_mr(t, pd, ts_memory(t, 4096), 4096, LW | IBV_ACCESS_RELAXED_ORDERING);
}

/* An address that mmap(2) does not choose itself: no other thread maps memory into the hole. */
#define LONELY_PLACE ((void *)0x200000000000)

static void unmapped_range_is_efault(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	char *memory = mmap(LONELY_PLACE, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	VT_CHECK(t, memory != MAP_FAILED);
	VT_OK(t, munmap(memory + 4096, 4096));
	VT_EXPECT_NULL_ERRNO(t, vb_reg_mr(pd, memory + 4096, 100, LW), EFAULT);
	VT_EXPECT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 4097, LW), EFAULT);
	VT_OK(t, munmap(memory, 4096));
}

static void overflowing_range_is_refused(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);

	VT_CHECK(t, !vb_reg_mr(pd, (void *)(UINTPTR_MAX - 100), 4096, LW));
	VT_CHECK(t, errno == EFAULT || errno == EINVAL);
}

static void read_only_page_with_local_write_is_efault(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);

	ts_protect(t, memory, 4096, PROT_READ);
	VT_NULL_ERRNO(t, vb_reg_mr(pd, memory, 4096, LW), EFAULT);
	ts_mr(t, pd, memory, 4096, RR);
}

static void zero_length_is_allowed(struct vt *t)
{
	ts_mr(t, ts_pd(t, &t->a), ts_memory(t, 4096), 0, LW);
}

static void keys_differ(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);
	struct ibv_mr *mrs[32];
	int i, j;

	for (i = 0; i < 32; i++)
		mrs[i] = ts_mr(t, pd, memory, 4096, ALL);
	for (i = 0; i < 32; i++)
		for (j = 0; j < i; j++) {
			VT_CHECK(t, mrs[i]->lkey != mrs[j]->lkey);
			VT_CHECK(t, mrs[i]->rkey != mrs[j]->rkey);
		}
}

static void lkey_cannot_serve_as_rkey(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_CHECK(t, pair->b.mr->lkey != pair->b.mr->rkey);
	ts_write(&pair->a, .wr_id = 1, .length = 8, .rkey = pair->b.mr->lkey);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static void old_key_is_not_reused(struct vt *t)
{
	struct ibv_pd *pd = ts_pd(t, &t->a);
	void *memory = ts_memory(t, 4096);
	uint32_t lkey[200], rkey[200];
	struct ibv_mr *mr;
	int i, j;

	for (i = 0; i < 200; i++) {
		mr = VT_PTR(t, vb_reg_mr(pd, memory, 4096, ALL));
		lkey[i] = mr->lkey;
		rkey[i] = mr->rkey;
		VT_OK(t, vb_dereg_mr(mr));
		for (j = 0; j < i; j++)
			VT_CHECK(t, lkey[j] != lkey[i] && rkey[j] != rkey[i]);
	}
}

/* Every byte of the region can be reached, and no byte beside it. */
static void bounds_are_exact(struct vt *t)
{
	static const struct {
		const char *name;
		size_t offset;
		uint32_t length;
		bool inside;
	} rows[] = {
		{"first byte", 1000, 1, true},	  {"last byte", 2999, 1, true},
		{"all of it", 1000, 2000, true},  {"byte before", 999, 1, false},
		{"byte behind", 3000, 1, false},  {"one too long", 1000, 2001, false},
		{"one too early", 999, 2, false}, {"across the end", 2999, 2, false},
	};
	struct ts_pair *pair;
	struct ibv_mr *mr;
	size_t i;

	for (i = 0; i < TS_COUNT(rows); i++) {
		vt_row(t, "%s", rows[i].name);
		pair = ts_connected(t, IBV_QPT_RC);
		mr = ts_mr(t, pair->b.pd, pair->b.buffer + 1000, 2000, ALL);
		ts_write(&pair->a, .wr_id = 1, .rkey = mr->rkey, .remote_offset = rows[i].offset,
			 .length = rows[i].length);
		ts_expect_at(t, VT_HERE, pair->a.send_cq, 1,
			     rows[i].inside ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
			     IBV_WC_RDMA_WRITE);
		if (rows[i].inside)
			ts_verify(t, pair->b.buffer + rows[i].offset, rows[i].length, 1);
		else
			ts_blank(t, pair->b.buffer, 4096);
	}
}

static void region_addressed_from_iova(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint64_t iova = 0x100000000000ull + ((uintptr_t)pair->b.buffer & 4095);
	struct ibv_mr *mr = VT_PTR(t, vb_reg_mr_iova(pair->b.pd, pair->b.buffer, 4096, iova, ALL));

	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = mr->rkey,
		 .remote_address = iova + 200);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer + 200, 100, 1);
	ts_recv(&pair->b, .wr_id = 5, .address = iova + 1000, .length = 100, .lkey = mr->lkey);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_received(t, pair->b.recv_cq, 5, 100);
	ts_verify(t, pair->b.buffer + 1000, 100, 1);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_SEND);
	ts_write(&pair->a, .wr_id = 3, .length = 100, .rkey = mr->rkey);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
	VT_OK(t, vb_dereg_mr(mr));
}

static void overlapping_regions_have_rights_of_their_own(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *read_only = ts_mr(t, pair->b.pd, pair->b.buffer, 4096, RR);

	ts_read(&pair->a, .wr_id = 1, .length = 100, .rkey = read_only->rkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_READ);
	ts_write(&pair->a, .wr_id = 2, .length = 100);
	ts_done(t, pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	ts_write(&pair->a, .wr_id = 3, .length = 100, .rkey = read_only->rkey);
	ts_failed(t, pair->a.send_cq, 3, IBV_WC_REM_ACCESS_ERR);
}

static void local_read_is_always_allowed(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	struct ibv_mr *mr = ts_mr(t, pair->a.pd, pair->a.buffer, 4096, 0);

	ts_write(&pair->a, .wr_id = 1, .length = 100, .lkey = mr->lkey);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 100, 1);
}

static void dereg_under_a_posted_receive(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 100);
	VT_OK(t, vb_dereg_mr(pair->b.mr));
	ts_gone(t, pair->b.mr);
	ts_send(&pair->a, .wr_id = 1, .length = 100, .rkey = 1);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_OP_ERR);
	ts_failed(t, pair->b.recv_cq, 5, IBV_WC_LOC_PROT_ERR);
	ts_blank(t, pair->b.buffer, 100);
}

static void dereg_under_a_posted_send(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_drained(&pair->a);
	ts_write(&pair->a, .wr_id = 1, .length = 100);
	VT_OK(t, vb_dereg_mr(pair->a.mr));
	ts_gone(t, pair->a.mr);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	ts_settle(t);
	ts_blank(t, pair->b.buffer, 100);
}

static void dereg_ends_remote_access(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	uint32_t rkey = pair->b.mr->rkey;

	ts_transfer(pair, IBV_WR_RDMA_WRITE, 100);
	VT_OK(t, vb_dereg_mr(pair->b.mr));
	ts_gone(t, pair->b.mr);
	memset(pair->b.buffer, TS_BLANK, 100);
	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = rkey);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_blank(t, pair->b.buffer, 100);
}

/* An adapter would have pinned the pages. The simulator must not crash. */
static void memory_unmapped_under_a_region(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	void *memory = ts_memory(t, 4096);
	struct ibv_mr *mr = ts_mr(t, pair->b.pd, memory, 4096, ALL);

	ts_protect(t, memory, 4096, PROT_NONE);
	ts_write(&pair->a, .wr_id = 1, .length = 100, .rkey = mr->rkey,
		 .remote_address = (uintptr_t)memory);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	ts_state(&pair->a, IBV_QPS_ERR);
}

static const struct vt_test tests[] = {
	{"region_has_the_attributes_of_its_registration", "ibv_reg_mr(3)", 0,
	 region_has_the_attributes_of_its_registration},
	{"every_combination_of_rights",
	 "ibv_reg_mr(3): REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", 0,
	 every_combination_of_rights},
	{"unknown_right_is_refused",
	 "Linux include/rdma/ib_verbs.h, ib_check_mr_access: IB_ACCESS_SUPPORTED", VT_NEEDS_SIM,
	 unknown_right_is_refused},
	{"unsupported_optional_right_is_ignored",
	 SRC_RDMA_CORE "libibverbs/verbs.h: IBV_ACCESS_OPTIONAL_RANGE", 0,
	 unsupported_optional_right_is_ignored},
	{"unmapped_range_is_efault",
	 SRC_CORE "umem.c, ib_umem_get: returns why pinning failed; EFAULT: unsourced", 0,
	 unmapped_range_is_efault},
	{"overflowing_range_is_refused", SRC_CORE "umem.c, ib_umem_get: overflow is EINVAL", 0,
	 overflowing_range_is_refused},
	{"read_only_page_with_local_write_is_efault",
	 SRC_CORE "umem.c, ib_umem_get: pins for writing; EFAULT: unsourced", 0,
	 read_only_page_with_local_write_is_efault},
	{"zero_length_is_allowed", "unsourced", 0, zero_length_is_allowed},
	{"keys_differ", "unsourced", 0, keys_differ},
	{"lkey_cannot_serve_as_rkey", "unsourced", VT_NEEDS_SIM, lkey_cannot_serve_as_rkey},
	{"old_key_is_not_reused", "unsourced", VT_NEEDS_SIM, old_key_is_not_reused},
	{"bounds_are_exact", "ibv_reg_mr(3): addr, length", 0, bounds_are_exact},
	{"region_addressed_from_iova", "ibv_reg_mr(3): ibv_reg_mr_iova", 0,
	 region_addressed_from_iova},
	{"overlapping_regions_have_rights_of_their_own", "ibv_reg_mr(3)", 0,
	 overlapping_regions_have_rights_of_their_own},
	{"local_read_is_always_allowed", "ibv_reg_mr(3): local read access is always enabled", 0,
	 local_read_is_always_allowed},
	{"dereg_under_a_posted_receive",
	 SRC_RVT "qp.c, init_sge: LOC_PROT_ERR; " SRC_QIB "qib_rc.c, qib_rc_rcv: nack_op_err", 0,
	 dereg_under_a_posted_receive},
	{"dereg_under_a_posted_send", "unsourced", 0, dereg_under_a_posted_send},
	{"dereg_ends_remote_access", "ibv_reg_mr(3)", 0, dereg_ends_remote_access},
	{"memory_unmapped_under_a_region", "unsourced", VT_NEEDS_SIM,
	 memory_unmapped_under_a_region},
	{NULL},
};

const struct vt_suite vt_suite_memory = {"memory", "memory regions and their keys", tests};
