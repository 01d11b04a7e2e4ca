/* SPDX-License-Identifier: MIT */
/*
 * Why completions fail: each mistake, and the whole sentence of vb_explain() on each side.
 */
#include "src/guard/guard.h"
#include "test/unit/sim_explain.h"

#include <sys/mman.h>
#include <unistd.h>
#include <verbena/verbs.h>

static struct ibv_qp *from, *to; /* at a and at b */

void setUp(void)
{
	struct ibv_qp_init_attr_ex attr;

	open_pair();
	/* The QPNs of the two devices differ by one. */
	attr = qp_attr(&b, IBV_QPT_RC);
	TEST_ASSERT_NOT_NULL(B.create_qp_ex(b.context, &attr));
	connect_pair(&from, &to);
	guard_install(); /* above the test framework's own handler */
}

void tearDown(void)
{
	close_pair();
}

static void send_sges(struct ibv_sge *sges, int count, struct ibv_send_wr wr)
{
	wr.sg_list = sges;
	wr.num_sge = count;
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void send_bytes(uint32_t length, struct ibv_send_wr wr)
{
	struct ibv_sge sge = sge_of(&a, 0, length);

	send_sges(&sge, 1, wr);
}

static struct ibv_send_wr remote(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = opcode};

	if (opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

static uint64_t there(size_t offset)
{
	return (uintptr_t)b.buffer + offset;
}

/* --- refused by the peer's memory --- */

/* The sentence of the peer about a remote access; then the pair is connected anew. */
static void expect_access(enum vb_reason reason, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void expect_access(enum vb_reason reason, const char *format, ...)
{
	char words[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	expect_explained(&a, 7, IBV_WC_REM_ACCESS_ERR, reason,
			 "sim0 QP 0x%x, wr_id 7: IBV_WC_REM_ACCESS_ERR: sim1 QP 0x%x %s",
			 from->qp_num, to->qp_num, words);
	connect_pair(&from, &to);
}

void test_rights_and_ranges_of_the_peers_memory(void)
{
	struct ibv_mr *plain = B.reg_mr(b.pd, b.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *short_mr = B.reg_mr(b.pd, b.buffer + 64, 64, ACCESS_ALL);

	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), plain->rkey));
	expect_access(VB_WHY_RKEY_RIGHT,
		      "refused RDMA WRITE at PSN 0: "
		      "rkey 0x%x is valid, but the region lacks IBV_ACCESS_REMOTE_WRITE; register "
		      "the region with IBV_ACCESS_REMOTE_WRITE",
		      plain->rkey);
	send_bytes(8, remote(IBV_WR_RDMA_READ, there(0), plain->rkey));
	expect_access(VB_WHY_RKEY_RIGHT,
		      "refused RDMA READ at PSN 0: "
		      "rkey 0x%x is valid, but the region lacks IBV_ACCESS_REMOTE_READ; register "
		      "the region with IBV_ACCESS_REMOTE_READ",
		      plain->rkey);
	send_bytes(8, remote(IBV_WR_ATOMIC_FETCH_AND_ADD, there(0), plain->rkey));
	expect_access(VB_WHY_RKEY_RIGHT,
		      "refused FETCH ADD at PSN 0: "
		      "rkey 0x%x is valid, but the region lacks IBV_ACCESS_REMOTE_ATOMIC; register "
		      "the region with IBV_ACCESS_REMOTE_ATOMIC",
		      plain->rkey);
	send_bytes(64, remote(IBV_WR_RDMA_READ, there(72), short_mr->rkey));
	expect_access(VB_WHY_RKEY_BEHIND,
		      "refused RDMA READ at PSN 0: "
		      "its 64 bytes at 0x%" PRIx64 " end 8 bytes behind the region of the rkey "
		      "0x%x, which ends before 0x%" PRIx64
		      "; access fewer bytes, or register more memory",
		      there(72), short_mr->rkey, there(128));
	send_bytes(64, remote(IBV_WR_RDMA_WRITE, there(63), short_mr->rkey));
	expect_access(VB_WHY_RKEY_BEFORE,
		      "refused RDMA WRITE at PSN 0: "
		      "its 64 bytes at 0x%" PRIx64 " begin 1 byte before the region of the rkey "
		      "0x%x, which begins at 0x%" PRIx64 "; give an address inside the region",
		      there(63), short_mr->rkey, there(64));
	send_bytes(8, remote(IBV_WR_ATOMIC_FETCH_AND_ADD, there(128), short_mr->rkey));
	expect_access(VB_WHY_RKEY_BEHIND,
		      "refused FETCH ADD at PSN 0: "
		      "its 8 bytes at 0x%" PRIx64 " end 8 bytes behind the region of the rkey "
		      "0x%x, which ends before 0x%" PRIx64
		      "; access fewer bytes, or register more memory",
		      there(128), short_mr->rkey, there(128));
}

/* Ranges are those of the addresses that the peer uses. */
void test_ranges_of_a_region_with_an_iova(void)
{
	struct ibv_mr *mr = B.reg_mr_iova(b.pd, b.buffer, 64, 0x1000, ACCESS_ALL);

	TEST_ASSERT_NOT_NULL(mr);
	send_bytes(64, remote(IBV_WR_RDMA_WRITE, 0x1008, mr->rkey));
	expect_access(VB_WHY_RKEY_BEHIND,
		      "refused RDMA WRITE at PSN 0: its 64 bytes at 0x1008 end 8 bytes behind the "
		      "region of the rkey 0x%x, which ends before 0x1040; access fewer bytes, or "
		      "register more memory",
		      mr->rkey);
}

void test_keys_of_the_peers_memory(void)
{
	struct ibv_mr *gone = B.reg_mr(b.pd, b.buffer, 64, ACCESS_ALL);
	struct ibv_pd *pd = B.alloc_pd(b.context);
	struct ibv_mr *foreign = B.reg_mr(pd, b.buffer, 64, ACCESS_ALL);
	const uint32_t stale = gone->rkey;

	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(gone));
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), stale));
	expect_access(
		VB_WHY_RKEY_STALE,
		"refused RDMA WRITE at PSN 0: "
		"the rkey 0x%x is stale: its MR was deregistered, or its window has another "
		"rkey now; keep the MR while the peer uses it, and send the peer each new rkey",
		stale);
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), stale + 0x1000));
	expect_access(VB_WHY_RKEY_UNKNOWN,
		      "refused RDMA WRITE at PSN 0: "
		      "no MR or window of the device has the rkey 0x%x; send the rkey of a "
		      "registered MR to the peer",
		      stale + 0x1000);
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), b.mr->lkey));
	expect_access(
		VB_WHY_RKEY_IS_LKEY,
		"refused RDMA WRITE at PSN 0: "
		"0x%x is an lkey, and a remote access needs an rkey; send mr->rkey to the peer",
		b.mr->lkey);
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), foreign->rkey));
	expect_access(VB_WHY_RKEY_PD,
		      "refused RDMA WRITE at PSN 0: "
		      "the MR or window with the rkey 0x%x belongs to another PD than the QP, or "
		      "than the XRC SRQ of the message; register the memory in that PD",
		      foreign->rkey);
}

static uint8_t *map_page(void)
{
	uint8_t *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT_TRUE(page != MAP_FAILED);
	return page;
}

void test_memory_of_the_peer_that_is_unmapped(void)
{
	uint8_t *page = map_page();
	struct ibv_mr *mr = B.reg_mr(b.pd, page, 4096, ACCESS_ALL);

	TEST_ASSERT_EQUAL_INT(0, munmap(page, 4096));
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, (uintptr_t)page, mr->rkey));
	expect_access(
		VB_WHY_RKEY_UNMAPPED,
		"refused RDMA WRITE at PSN 0: "
		"the 8 bytes at 0x%" PRIx64 " are inside the region of the rkey 0x%x, but "
		"the process has unmapped or protected a page of them; keep the memory mapped "
		"while the peer uses it",
		(uint64_t)(uintptr_t)page, mr->rkey);
}

static struct ibv_mr *map_half(void)
{
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = B.reg_mr(b.pd, pages, 8192, ACCESS_ALL);

	TEST_ASSERT_NOT_NULL(mr);
	TEST_ASSERT_EQUAL_INT(0, munmap(pages + 4096, 4096));
	return mr;
}

/* The packet that is refused is not the first of its message: path_mtu is 1024. */
void test_memory_of_the_peer_that_is_unmapped_from_the_middle(void)
{
	static uint8_t local[8192];
	struct ibv_mr *own = B.reg_mr(a.pd, local, sizeof(local), ACCESS_ALL);
	struct ibv_mr *mr = map_half();
	struct ibv_sge sge = {(uintptr_t)local, sizeof(local), own->lkey};
	const uint64_t behind = (uintptr_t)mr->addr + 4096;

	send_sges(&sge, 1, remote(IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mr->rkey));
	expect_access(
		VB_WHY_RKEY_UNMAPPED,
		"refused RDMA WRITE at PSN 4: "
		"the 1024 bytes at 0x%" PRIx64 " are inside the region of the rkey 0x%x, but "
		"the process has unmapped or protected a page of them; keep the memory mapped "
		"while the peer uses it",
		behind, mr->rkey);
}

/* The pages are gone when the requester copies from them. */
void test_a_read_of_memory_that_is_unmapped(void)
{
	struct ibv_mr *mr = map_half();
	struct ibv_sge sge = sge_of(&a, 0, 4096);
	struct ibv_wc wc;

	send_sges(&sge, 1, remote(IBV_WR_RDMA_READ, (uintptr_t)mr->addr + 2048, mr->rkey));
	wc = expect_failed(&a, 7, IBV_WC_LOC_PROT_ERR);
	expect_sentence(&a, &wc, VB_WHY_RESPONSE_UNREADABLE,
			"sim0 QP 0x%x, wr_id 7: IBV_WC_LOC_PROT_ERR: the peer has unmapped or "
			"protected a page of the memory that the READ reads, so that the response "
			"at PSN 2 brought no data; keep the peer's memory mapped until the READ "
			"has completed",
			from->qp_num);
}

/* --- windows --- */

static void bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
		 uint64_t length, unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {.mw = mw,
			    .rkey = ibv_inc_rkey(mw->rkey),
			    .bind_info = {.mr = mr,
					  .addr = addr,
					  .length = length,
					  .mw_access_flags = access}},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
}

static void invalidate(struct ibv_qp *qp, uint32_t rkey)
{
	struct ibv_send_wr wr = {.wr_id = 7, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey};

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
}

void test_windows_of_the_peer(void)
{
	struct ibv_mw *mw = B.alloc_mw(b.pd, IBV_MW_TYPE_2);
	struct ibv_qp *other_from, *other_to;

	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), mw->rkey));
	expect_access(VB_WHY_RKEY_UNBOUND,
		      "refused RDMA WRITE at PSN 0: "
		      "the window with the rkey 0x%x is not bound: it was never bound, or it was "
		      "invalidated; bind the window before the peer uses it",
		      mw->rkey);
	connect_pair(&other_from, &other_to);
	bind(other_to, mw, b.mr, there(0), 64, IBV_ACCESS_REMOTE_WRITE);
	expect_wc(&b, 7, IBV_WC_SUCCESS);
	send_bytes(8, remote(IBV_WR_RDMA_WRITE, there(0), mw->rkey));
	expect_access(VB_WHY_RKEY_OWNER,
		      "refused RDMA WRITE at PSN 0: "
		      "the window with the rkey 0x%x was bound on QP 0x%x, through which alone it "
		      "can be used; bind the window on the QP that the request comes to",
		      mw->rkey, other_to->qp_num);
}

/* The sentence of a send that fails at a; then the QP is connected anew. */
static void expect_local(enum ibv_wc_status status, enum vb_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void expect_local(enum ibv_wc_status status, enum vb_reason reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	expect_failed_send(from, status, reason, format, arguments);
	va_end(arguments);
	connect_pair(&from, &to);
}

#define BIND_ERR IBV_WC_MW_BIND_ERR

static struct ibv_mw *window(void)
{
	struct ibv_mw *mw = B.alloc_mw(a.pd, IBV_MW_TYPE_2);

	TEST_ASSERT_NOT_NULL(mw);
	return mw;
}

void test_windows_that_cannot_be_bound(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);
	struct ibv_mw *mw = window(), *foreign_mw = B.alloc_mw(pd, IBV_MW_TYPE_2);
	const uint64_t here = (uintptr_t)a.buffer;
	uint32_t rkey;

	bind(from, mw, a.mr, here, 64, IBV_ACCESS_REMOTE_READ);
	expect_wc(&a, 7, IBV_WC_SUCCESS);
	rkey = mw->rkey;
	bind(from, mw, a.mr, here, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(
		BIND_ERR, VB_WHY_BIND_WINDOW_BOUND,
		"the window of type 2 with the rkey 0x%x is bound; invalidate the window first, "
		"by IBV_WR_LOCAL_INV or by a SEND with invalidate",
		rkey);
	mw = window();
	bind(from, mw, a.mr, here, 0, IBV_ACCESS_REMOTE_READ);
	expect_local(
		BIND_ERR, VB_WHY_BIND_EMPTY,
		"a binding of 0 bytes does not unbind a window of type 2; invalidate the window "
		"by IBV_WR_LOCAL_INV");
	mw = window();
	bind(from, mw, a.mr, here + 4000, 100, IBV_ACCESS_REMOTE_READ);
	expect_local(BIND_ERR, VB_WHY_BIND_RANGE,
		     "the 100 bytes at 0x%" PRIx64
		     " are not inside the MR with the lkey 0x%x, which "
		     "has 4096 bytes from 0x%" PRIx64 "; bind a range of the MR",
		     here + 4000, a.mr->lkey, here);
	mw = window();
	bind(from, mw, a.mr, here, 64, IBV_ACCESS_HUGETLB);
	expect_local(
		BIND_ERR, VB_WHY_BIND_FLAGS,
		"mw_access_flags has IBV_ACCESS_HUGETLB, which a window of type 2 does not take; "
		"give remote rights, and IBV_ACCESS_ZERO_BASED for a window of type 2 only");
	rkey = foreign_mw->rkey;
	bind(from, foreign_mw, a.mr, here, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(
		BIND_ERR, VB_WHY_BIND_WINDOW_PD,
		"the window with the rkey 0x%x belongs to another PD than the QP; allocate the "
		"window in the QP's PD",
		rkey);
	mw = window();
	rkey = mw->rkey;
	bind(from, mw, a.mr, here, 64, IBV_ACCESS_REMOTE_READ);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_mw(mw));
	expect_local(
		BIND_ERR, VB_WHY_BIND_NO_WINDOW,
		"the window with the rkey 0x%x has been deallocated; keep the window until its "
		"binding has completed",
		rkey);
}

void test_regions_that_no_window_can_be_bound_to(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);
	struct ibv_mr *plain = B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_MW_BIND);
	struct ibv_mr *elsewhere =
		B.reg_mr_iova(a.pd, a.buffer, 64, 0x1000, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	struct ibv_mr *closed = B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *foreign = B.reg_mr(pd, a.buffer, 64, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	struct ibv_mr *gone = B.reg_mr(a.pd, a.buffer, 64, ACCESS_ALL | IBV_ACCESS_MW_BIND);
	const uint64_t here = (uintptr_t)a.buffer;
	const uint32_t lkey = gone->lkey;

	bind(from, window(), plain, here, 64, IBV_ACCESS_REMOTE_WRITE);
	expect_local(BIND_ERR, VB_WHY_BIND_REGION_RIGHT,
		     "the MR with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE; register the MR with "
		     "IBV_ACCESS_LOCAL_WRITE",
		     plain->lkey);
	bind(from, window(), plain, here, 64, IBV_ACCESS_REMOTE_ATOMIC);
	expect_local(BIND_ERR, VB_WHY_BIND_REGION_RIGHT,
		     "the MR with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE; register the MR with "
		     "IBV_ACCESS_LOCAL_WRITE",
		     plain->lkey);
	bind(from, window(), elsewhere, 0x1020, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(BIND_ERR, VB_WHY_BIND_RANGE,
		     "the 64 bytes at 0x1020 are not inside the MR with the lkey 0x%x, which has "
		     "64 bytes from 0x1000; bind a range of the MR",
		     elsewhere->lkey);
	bind(from, window(), closed, here, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(BIND_ERR, VB_WHY_BIND_REGION_RIGHT,
		     "the MR with the lkey 0x%x lacks IBV_ACCESS_MW_BIND; register the MR with "
		     "IBV_ACCESS_MW_BIND",
		     closed->lkey);
	bind(from, window(), foreign, here, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(
		BIND_ERR, VB_WHY_BIND_REGION_PD,
		"the MR with the lkey 0x%x belongs to another PD than the QP; register the MR in "
		"the QP's PD",
		foreign->lkey);
	bind(from, window(), gone, here, 64, IBV_ACCESS_REMOTE_READ);
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(gone));
	expect_local(
		BIND_ERR, VB_WHY_BIND_REGION,
		"the lkey 0x%x of the binding is of no MR that a window can be bound to; give a "
		"registered MR, and keep it until the binding has completed",
		lkey);
}

void test_a_binding_with_a_stale_rkey(void)
{
	struct ibv_mw *mw = window();
	const uint32_t rkey = mw->rkey;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "stale_window_rkeys_refused", true));
	connect_pair(&from, &to);
	mw->rkey ^= 0x10000;
	bind(from, mw, a.mr, (uintptr_t)a.buffer, 64, IBV_ACCESS_REMOTE_READ);
	expect_local(BIND_ERR, VB_WHY_BIND_OLD_RKEY,
		     "mw->rkey was 0x%x when the binding was posted, but the window has the rkey "
		     "0x%x; let the binding before complete, or leave mw->rkey to the library",
		     rkey ^ 0x10000, rkey);
}

void test_windows_that_cannot_be_invalidated(void)
{
	struct ibv_mw *mw = window();
	struct ibv_qp *other_from, *other_to;

	invalidate(from, mw->rkey);
	expect_local(
		BIND_ERR, VB_WHY_INVALIDATE_UNBOUND,
		"the window with the rkey 0x%x is not bound; invalidate a window once for each "
		"binding",
		mw->rkey);
	invalidate(from, a.mr->rkey);
	expect_local(BIND_ERR, VB_WHY_INVALIDATE_TYPE,
		     "0x%x is the rkey of an MR or of a window of type 1, which cannot be "
		     "invalidated; invalidate windows of type 2 only",
		     a.mr->rkey);
	invalidate(from, 0x77777777);
	expect_local(
		BIND_ERR, VB_WHY_INVALIDATE_UNKNOWN,
		"no window has the rkey 0x77777777; give the rkey that the window has since its "
		"last binding");
	connect_pair(&other_from, &other_to);
	bind(other_from, mw, a.mr, (uintptr_t)a.buffer, 64, IBV_ACCESS_REMOTE_READ);
	expect_wc(&a, 7, IBV_WC_SUCCESS);
	invalidate(from, mw->rkey);
	expect_local(
		BIND_ERR, VB_WHY_INVALIDATE_OWNER,
		"the window with the rkey 0x%x was bound on QP 0x%x, which alone may invalidate "
		"it; invalidate the window on that QP, or from its peer",
		mw->rkey, other_from->qp_num);
}

/* --- the memory of sends --- */

#define PROT_ERR IBV_WC_LOC_PROT_ERR

void test_keys_of_the_own_memory(void)
{
	struct ibv_mr *gone = B.reg_mr(a.pd, a.buffer, 64, ACCESS_ALL);
	struct ibv_mr *foreign = B.reg_mr(B.alloc_pd(a.context), a.buffer, 64, ACCESS_ALL);
	const struct ibv_send_wr plain = {.wr_id = 7, .opcode = IBV_WR_SEND};
	struct ibv_sge sges[2] = {sge_of(&a, 0, 8), sge_of(&a, 8, 8)};

	sges[1].lkey = a.mr->lkey ^ 0x1000;
	send_sges(sges, 2, plain);
	expect_local(
		PROT_ERR, VB_WHY_LKEY_UNKNOWN,
		"SGE 1 of the send: no MR of the device has the lkey 0x%x; set lkey to mr->lkey "
		"of a registered MR",
		sges[1].lkey);
	/* An SGE without bytes needs no key. */
	sges[0] = (struct ibv_sge){.addr = 0};
	send_sges(sges, 2, plain);
	expect_local(
		PROT_ERR, VB_WHY_LKEY_UNKNOWN,
		"SGE 1 of the send: no MR of the device has the lkey 0x%x; set lkey to mr->lkey "
		"of a registered MR",
		sges[1].lkey);
	sges[0] = sge_of(&a, 0, 8);
	sges[1].lkey = gone->lkey;
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(gone));
	send_sges(sges, 2, plain);
	expect_local(
		PROT_ERR, VB_WHY_LKEY_STALE,
		"SGE 1 of the send: the MR with the lkey 0x%x has been deregistered; keep the MR "
		"until the work request has completed",
		sges[1].lkey);
	sges[1].lkey = a.mr->rkey;
	send_sges(sges, 2, plain);
	expect_local(PROT_ERR, VB_WHY_LKEY_IS_RKEY,
		     "SGE 1 of the send: 0x%x is an rkey, and an SGE needs an lkey; set lkey to "
		     "mr->lkey",
		     a.mr->rkey);
	sges[1].lkey = foreign->lkey;
	send_sges(sges, 2, plain);
	expect_local(PROT_ERR, VB_WHY_LKEY_PD,
		     "SGE 1 of the send: the MR with the lkey 0x%x belongs to another PD than the "
		     "work queue; register the memory in the PD of the QP, or for a shared receive "
		     "in the PD of the SRQ",
		     foreign->lkey);
}

void test_ranges_and_rights_of_the_own_memory(void)
{
	struct ibv_mr *mr = B.reg_mr(a.pd, a.buffer + 64, 64, 0);
	const struct ibv_send_wr plain = {.wr_id = 7, .opcode = IBV_WR_SEND};
	const uint64_t here = (uintptr_t)a.buffer;
	struct ibv_sge sge = {here + 60, 8, mr->lkey};

	send_sges(&sge, 1, plain);
	expect_local(PROT_ERR, VB_WHY_LKEY_BEFORE,
		     "SGE 0 of the send: its 8 bytes at 0x%" PRIx64 " begin 4 bytes before the MR "
		     "with the lkey 0x%x, which begins at 0x%" PRIx64
		     "; give an address inside the "
		     "MR",
		     here + 60, mr->lkey, here + 64);
	sge = (struct ibv_sge){here + 64, 65, mr->lkey};
	send_sges(&sge, 1, plain);
	expect_local(PROT_ERR, VB_WHY_LKEY_BEHIND,
		     "SGE 0 of the send: its 65 bytes at 0x%" PRIx64
		     " end 1 byte behind the MR with "
		     "the lkey 0x%x, which ends before 0x%" PRIx64 "; give a shorter length, or "
		     "register more memory",
		     here + 64, mr->lkey, here + 128);
	sge = (struct ibv_sge){here + 64, 8, mr->lkey};
	send_sges(&sge, 1, remote(IBV_WR_RDMA_READ, there(0), b.mr->rkey));
	expect_local(PROT_ERR, VB_WHY_LKEY_RIGHT,
		     "SGE 0 of the send: the MR with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE; "
		     "register the MR with IBV_ACCESS_LOCAL_WRITE",
		     mr->lkey);
}

void test_own_memory_that_is_unmapped(void)
{
	uint8_t *page = map_page();
	struct ibv_mr *mr = B.reg_mr(a.pd, page, 4096, ACCESS_ALL);
	struct ibv_sge sge = {(uintptr_t)page, 8, mr->lkey};

	TEST_ASSERT_EQUAL_INT(0, munmap(page, 4096));
	send_sges(&sge, 1, remote(IBV_WR_RDMA_READ, there(0), b.mr->rkey));
	expect_local(
		PROT_ERR, VB_WHY_LKEY_UNMAPPED,
		"SGE 0 of the send: the 8 bytes at 0x%" PRIx64 " are inside the MR with the "
		"lkey 0x%x, but the process has unmapped or protected a page of them; keep the "
		"memory mapped until the work request has completed",
		(uint64_t)(uintptr_t)page, mr->lkey);
}

/* The sentence names the SGE whose page cannot be written. */
void test_own_memory_that_is_protected(void)
{
	uint8_t *page = map_page();
	struct ibv_mr *mr = B.reg_mr(a.pd, page, 4096, ACCESS_ALL);
	struct ibv_sge sges[2] = {sge_of(&a, 0, 8), {(uintptr_t)page, 8, mr->lkey}};

	TEST_ASSERT_EQUAL_INT(0, mprotect(page, 4096, PROT_READ));
	send_sges(sges, 2, remote(IBV_WR_RDMA_READ, there(0), b.mr->rkey));
	expect_local(
		PROT_ERR, VB_WHY_LKEY_UNMAPPED,
		"SGE 1 of the send: the 8 bytes at 0x%" PRIx64 " are inside the MR with the "
		"lkey 0x%x, but the process has unmapped or protected a page of them; keep the "
		"memory mapped until the work request has completed",
		(uint64_t)(uintptr_t)page, mr->lkey);
	TEST_ASSERT_EQUAL_INT(0, munmap(page, 4096));
}

/* --- lengths and operations --- */

void test_lengths_of_sends(void)
{
	struct ibv_sge sges[2] = {sge_of(&a, 0, 0x80000000), sge_of(&a, 0, 1)};

	send_sges(sges, 2, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_local(IBV_WC_LOC_LEN_ERR, VB_WHY_LENGTH_MESSAGE,
		     "the message of 2147483649 bytes is longer than the port's max_msg_sz of "
		     "2147483648; divide the message");
	send_bytes(4, remote(IBV_WR_ATOMIC_FETCH_AND_ADD, there(0), b.mr->rkey));
	expect_local(
		IBV_WC_LOC_LEN_ERR, VB_WHY_LENGTH_ATOMIC,
		"the SGEs of ATOMIC_FETCH_AND_ADD have 4 bytes, and the operation needs 8; give "
		"8 bytes of local memory");
}

void test_operations_without_room_for_reads(void)
{
	struct ibv_qp_attr attr = {.max_rd_atomic = 0};

	attr.qp_state = IBV_QPS_SQD;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_MAX_QP_RD_ATOMIC));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	send_bytes(8, remote(IBV_WR_RDMA_READ, there(0), b.mr->rkey));
	expect_local(IBV_WC_LOC_QP_OP_ERR, VB_WHY_OPERATION_NO_READS,
		     "RDMA_READ needs a max_rd_atomic of 1 or more, and the QP's is 0; set "
		     "max_rd_atomic when the QP goes to RTS, and max_dest_rd_atomic of the peer");
}

/* --- the peer's receive --- */

static void receive(struct ibv_sge sge)
{
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &wr, &bad));
}

void test_a_receive_that_is_too_short(void)
{
	struct vb_completion_why why;
	struct ibv_wc wc;
	char text[512];

	receive(sge_of(&b, 0, 8));
	send_bytes(64, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_explained(&a, 7, IBV_WC_REM_INV_REQ_ERR, VB_WHY_LENGTH_RECEIVE,
			 "sim0 QP 0x%x, wr_id 7: IBV_WC_REM_INV_REQ_ERR: sim1 QP 0x%x: the message "
			 "has 64 bytes or more up to PSN 0, and the receive has room for 8; post "
			 "receives that are as long as the longest message",
			 from->qp_num, to->qp_num);
	wc = expect_failed(&b, 3, IBV_WC_LOC_LEN_ERR);
	TEST_ASSERT_EQUAL_INT(0, vb_completion_why(b.context, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_PEER_SENT, why.peer_why.reason);
	TEST_ASSERT_EQUAL_STRING(
		"sent the message: SEND of 64 bytes with wr_id 7; see the completion "
		"of that send",
		vb_why_text(&why.peer_why, text, sizeof(text)));
	expect_sentence(&b, &wc, VB_WHY_LENGTH_RECEIVE,
			"sim1 QP 0x%x, wr_id 3: IBV_WC_LOC_LEN_ERR: the message has 64 bytes or "
			"more up to PSN 0, and the receive has room for 8; sim0 QP 0x%x sent the "
			"message: SEND of 64 bytes with wr_id 7; post receives that are as long as "
			"the longest message",
			to->qp_num, from->qp_num);
}

/* The second packet is the first one that does not fit: path_mtu is 1024. */
void test_a_receive_that_is_too_short_for_the_second_packet(void)
{
	struct ibv_wc wc;

	receive(sge_of(&b, 0, 1500));
	send_bytes(2000, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	wc = expect_failed(&b, 3, IBV_WC_LOC_LEN_ERR);
	expect_sentence(
		&b, &wc, VB_WHY_LENGTH_RECEIVE,
		"sim1 QP 0x%x, wr_id 3: IBV_WC_LOC_LEN_ERR: the message has 2000 bytes or "
		"more up to PSN 1, and the receive has room for 1500; sim0 QP 0x%x sent the "
		"message: SEND of 2000 bytes with wr_id 7; post receives that are as long as "
		"the longest message",
		to->qp_num, from->qp_num);
}

void test_a_receive_that_may_not_be_written(void)
{
	struct ibv_mr *mr = B.reg_mr(b.pd, b.buffer, 64, 0);

	receive((struct ibv_sge){(uintptr_t)b.buffer, 64, mr->lkey});
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_explained(
		&a, 7, IBV_WC_REM_OP_ERR, VB_WHY_LKEY_RIGHT,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_REM_OP_ERR: sim1 QP 0x%x: SGE 0 of the "
		"receive: the MR with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE; register "
		"the MR with IBV_ACCESS_LOCAL_WRITE",
		from->qp_num, to->qp_num, mr->lkey);
	expect_explained(&b, 3, IBV_WC_LOC_PROT_ERR, VB_WHY_LKEY_RIGHT,
			 "sim1 QP 0x%x, wr_id 3: IBV_WC_LOC_PROT_ERR: SGE 0 of the receive: the MR "
			 "with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE; sim0 QP 0x%x sent the "
			 "message: SEND of 8 bytes with wr_id 7; register the MR with "
			 "IBV_ACCESS_LOCAL_WRITE",
			 to->qp_num, mr->lkey, from->qp_num);
}

void test_a_sender_whose_memory_is_unmapped(void)
{
	uint8_t *page = map_page();
	struct ibv_mr *mr = B.reg_mr(a.pd, page, 4096, ACCESS_ALL);
	struct ibv_sge sges[2] = {sge_of(&a, 0, 8), {(uintptr_t)page, 8, mr->lkey}};

	receive(sge_of(&b, 0, 64));
	TEST_ASSERT_EQUAL_INT(0, munmap(page, 4096));
	send_sges(sges, 2, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_explained(
		&a, 7, IBV_WC_REM_OP_ERR, VB_WHY_PAYLOAD_UNREADABLE,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_REM_OP_ERR: sim1 QP 0x%x: the sender of the "
		"message has unmapped or protected a page of its own memory, so that the "
		"receive got no data; keep the sender's memory mapped until the send has "
		"completed",
		from->qp_num, to->qp_num);
}

void test_a_peer_without_receives(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .rnr_retry = 2};
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_RNR_RETRY));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	wc = expect_failed(&a, 7, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_views(
		&a, &wc, VB_WHY_PEER_NO_RECEIVE,
		"the peer answered PSN 0 by 3 RNR NAKs (not ready to receive), and rnr_retry is 2; "
		"post receives at the peer before the sends, or raise rnr_retry; 7 waits for ever");
	expect_sentence(
		&a, &wc, VB_WHY_RNR_RETRY,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RNR_RETRY_EXC_ERR: the peer answered PSN 0 "
		"by 3 RNR NAKs (not ready to receive), and rnr_retry is 2; sim1 QP 0x%x had no "
		"receive when PSN 0 came; post receives at the peer before the sends",
		from->qp_num, to->qp_num);
}

/* Connects a QP with an rnr_retry to a peer that refuses first attempts. */
static void connect_to_refuser(uint8_t rnr_retry)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .rnr_retry = rnr_retry};

	TEST_ASSERT_EQUAL_INT(0,
			      vb_sim_set_quirk(b.context, "first_attempts_find_no_receive", true));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(from));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_RNR_RETRY));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(from, &attr, IBV_QP_STATE));
}

void test_a_peer_that_refuses_first_attempts(void)
{
	struct ibv_wc wc;

	connect_to_refuser(0);
	receive(sge_of(&b, 0, 64));
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	wc = expect_failed(&a, 7, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_views(
		&a, &wc, VB_WHY_PEER_REFUSES_FIRST,
		"the peer answered PSN 0 by 1 RNR NAK (not ready to receive), and rnr_retry is 0; "
		"post receives at the peer before the sends, or raise rnr_retry; 7 waits for ever");
	expect_sentence(
		&a, &wc, VB_WHY_RNR_RETRY,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RNR_RETRY_EXC_ERR: the peer answered PSN 0 by 1 RNR "
		"NAK (not ready to receive), and rnr_retry is 0; sim1 QP 0x%x had 1 receive when "
		"PSN 0 "
		"came, and refuses the first attempt of each message (quirk "
		"first_attempts_find_no_receive); set rnr_retry to 1 or more; 7 waits for ever",
		from->qp_num, to->qp_num);
}

/* The peer refuses the first attempt by the quirk, and the second attempt for want of a receive. */
void test_a_peer_that_refuses_and_has_no_receive(void)
{
	struct ibv_wc wc;

	connect_to_refuser(1);
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	wc = expect_failed(&a, 7, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_views(
		&a, &wc, VB_WHY_PEER_NO_RECEIVE,
		"the peer answered PSN 0 by 2 RNR NAKs (not ready to receive), and rnr_retry is 1; "
		"post receives at the peer before the sends, or raise rnr_retry; 7 waits for ever");
}

/* --- retries --- */

void test_a_peer_in_init(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(to, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(to, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	send_bytes(8, (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_SEND});
	expect_explained(
		&a, 7, IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_TIMEOUT,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: no answer to PSN 0 came in 4 "
		"ack timeouts of 67.1089 ms each (timeout 14, retry_cnt 3); sim1 QP 0x%x "
		"is in INIT and drops requests; move the peer QP to RTR first",
		from->qp_num, to->qp_num);
}
