/* SPDX-License-Identifier: MIT */
/*
 * Reasons of protection domains, memory regions, memory windows and device memory: each mistake, and
 * the whole sentence that the program gets.
 */
#include "test/unit/sim_import.h"
#include "test/unit/sim_sentence.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair_and_import();
}

/* --- objects that do not exist --- */

void test_a_destroyed_object(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);

	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_reason(VB_WHY_OBJECT_GONE,
		      "dealloc_pd: the PD of handle %u is not live: the program has destroyed it, "
		      "or gives a copy of its structure; give the pointer that the verb returned "
		      "which made the PD, and only until the PD is destroyed",
		      pd->handle);
}

void test_an_overwritten_handle(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);
	const uint32_t handle = pd->handle;

	pd->handle = 77;
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_reason(VB_WHY_OBJECT_HANDLE,
		      "dealloc_pd: the PD has handle %u, and the program has overwritten the "
		      "handle in its structure with 77; leave the fields of libibverbs' structures "
		      "unchanged",
		      handle);
	pd->handle = handle;
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_an_import_without_its_original(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context), *imported;

	import_device();
	imported = B.import_pd(importing, pd->handle);
	TEST_ASSERT_NOT_NULL(imported);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(imported));
	expect_reason(VB_WHY_IMPORT_GONE,
		      "dealloc_pd: the PD of handle %u is an import, and the PD that it stands for "
		      "was destroyed; unimport the PD",
		      imported->handle);
	B.unimport_pd(imported);
}

void test_no_object_and_an_object_of_another_context(void)
{
	struct ibv_parent_domain_init_attr attr = {0};

	expect_null(EINVAL, B.alloc_parent_domain(a.context, &attr));
	expect_reason(VB_WHY_OBJECT_NULL,
		      "alloc_parent_domain: the PD is NULL; make the PD first; the verb that makes "
		      "it returns NULL if it fails");
	attr.pd = b.pd;
	expect_null(EINVAL, B.alloc_parent_domain(a.context, &attr));
	expect_reason(VB_WHY_OBJECT_FOREIGN,
		      "alloc_parent_domain: the PD belongs to another ibv_context than the other "
		      "objects of the call; make all objects that work together in one "
		      "ibv_context");
}

void test_a_closed_context(void)
{
	struct ibv_context *context = a.context;

	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	a.context = NULL;
	expect_null(EINVAL, B.alloc_pd(context));
	expect_reason(VB_WHY_CONTEXT_CLOSED,
		      "alloc_pd: the ibv_context is closed; close the device after the last use of "
		      "its context");
}

/* --- limits and memory --- */

/* The call of aligned_alloc(3), calloc(3) or posix_memalign(3) that fails, counted from 1; 0: all work. */
static unsigned int failing;

static bool reallocs_fail;

void *__real_aligned_alloc(size_t align_bytes, size_t size_bytes);
void *__real_calloc(size_t count, size_t size_bytes);
void *__real_realloc(void *memory, size_t size_bytes);
int __real_posix_memalign(void **memory, size_t align_bytes, size_t size_bytes);

void *__wrap_aligned_alloc(size_t align_bytes, size_t size_bytes)
{
	return failing && !--failing ? NULL : __real_aligned_alloc(align_bytes, size_bytes);
}

void *__wrap_calloc(size_t count, size_t size_bytes)
{
	return failing && !--failing ? NULL : __real_calloc(count, size_bytes);
}

void *__wrap_realloc(void *memory, size_t size_bytes)
{
	return reallocs_fail ? NULL : __real_realloc(memory, size_bytes);
}

int __wrap_posix_memalign(void **memory, size_t align_bytes, size_t size_bytes)
{
	return failing && !--failing ? ENOMEM
				     : __real_posix_memalign(memory, align_bytes, size_bytes);
}

static void *make_mr(void)
{
	return B.reg_mr(a.pd, a.buffer, 64, 0);
}

static void *make_null_mr(void)
{
	return B.alloc_null_mr(a.pd);
}

static void *make_mw(void)
{
	return B.alloc_mw(a.pd, IBV_MW_TYPE_1);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};

	return B.create_ah(a.pd, &attr);
}

static void *make_cq(void)
{
	return B.create_cq(a.context, 4, NULL, NULL, 0);
}

static void *make_pd(void)
{
	return B.alloc_pd(a.context);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};

	return B.alloc_dm(a.context, &attr);
}

static void *make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};

	return B.open_xrcd(a.context, &attr);
}

void test_no_memory(void)
{
	static const struct {
		void *(*make)(void);
		const char *verb;
		unsigned int failing;
	} rows[] = {
		{make_mr, "reg_mr", 1},	     {make_null_mr, "alloc_null_mr", 2},
		{make_mw, "alloc_mw", 1},    {make_ah, "create_ah", 1},
		{make_cq, "create_cq", 1},   {make_dm, "alloc_dm", 1},
		{make_xrcd, "open_xrcd", 1}, {make_xrcd, "open_xrcd", 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *made;

		failing = rows[i].failing;
		made = rows[i].make();
		failing = 0;
		expect_null(ENOMEM, made);
		expect_reason(VB_WHY_NO_MEMORY,
			      "%s: the process has no memory left; free memory, or raise the limit "
			      "of the process (ulimit -v)",
			      rows[i].verb);
		TEST_ASSERT_NOT_NULL(rows[i].make());
	}
}

/* The objects of libibverbs come in slabs. */
void test_no_memory_for_an_object(void)
{
	unsigned int made = 0;

	failing = 1;
	while (made < 1000 && make_pd())
		made++;
	TEST_ASSERT_EQUAL_UINT(0, failing);
	expect_reason(VB_WHY_NO_MEMORY, "alloc_pd: the process has no memory left; free memory, or "
					"raise the limit of the process (ulimit -v)");
	TEST_ASSERT_NOT_NULL(make_pd());
}

/* The tables of handles and of keys grow at different numbers of MRs. */
void test_no_memory_for_tables(void)
{
	unsigned int refused = 0;

	for (unsigned int made = 0; made < 300; made++) {
		void *mr;

		reallocs_fail = true;
		mr = make_mr();
		reallocs_fail = false;
		if (mr)
			continue;
		refused++;
		expect_reason(VB_WHY_NO_MEMORY,
			      "reg_mr: the process has no memory left; free memory, or raise the "
			      "limit of the process (ulimit -v)");
		TEST_ASSERT_NOT_NULL(make_mr());
	}
	TEST_ASSERT_TRUE(refused >= 2);
}

void test_the_limits_of_a_device(void)
{
	static const struct {
		void *(*make)(void);
		const char *verb, *limit;
		int value;
	} rows[] = {
		{make_pd, "alloc_pd", "max_pd", 2},  {make_mr, "reg_mr", "max_mr", 2},
		{make_mw, "alloc_mw", "max_mw", 1},  {make_ah, "create_ah", "max_ah", 1},
		{make_cq, "create_cq", "max_cq", 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_EQUAL_INT(0,
				      vb_sim_lower_limit(a.context, rows[i].limit, rows[i].value));
		TEST_ASSERT_NOT_NULL(rows[i].make());
		expect_null(ENOMEM, rows[i].make());
		expect_reason(VB_WHY_DEVICE_LIMIT,
			      "%s: the device has %d of these objects, which is its %s of "
			      "ibv_query_device(); destroy objects that are not used",
			      rows[i].verb, rows[i].value, rows[i].limit);
	}
}

/* --- ibv_reg_mr(3) --- */

void test_mistakes_of_access_flags(void)
{
	expect_null(EINVAL,
		    B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
	expect_reason(VB_WHY_MR_LOCAL_WRITE,
		      "reg_mr: access has IBV_ACCESS_REMOTE_WRITE without IBV_ACCESS_LOCAL_WRITE; "
		      "add IBV_ACCESS_LOCAL_WRITE: peers can write only to memory that the device "
		      "may write to");
	expect_null(EINVAL, B.reg_mr(a.pd, a.buffer, 64,
				     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC));
	expect_reason(VB_WHY_MR_LOCAL_WRITE,
		      "reg_mr: access has IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC "
		      "without IBV_ACCESS_LOCAL_WRITE; add IBV_ACCESS_LOCAL_WRITE: peers can write "
		      "only to memory that the device may write to");
	expect_null(EINVAL, B.reg_mr(a.pd, a.buffer, 64, 1 << 15 | IBV_ACCESS_REMOTE_READ));
	expect_reason(VB_WHY_MR_ACCESS_UNKNOWN,
		      "reg_mr: access has the unknown bits 0x8000; give flags of enum "
		      "ibv_access_flags");
	open_profile("rxe-6.1");
	expect_null(EINVAL, B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_ON_DEMAND));
	expect_reason(VB_WHY_MR_ON_DEMAND,
		      "reg_mr: access has IBV_ACCESS_ON_DEMAND, and the device has no on-demand "
		      "paging; remove the flag, or choose a device whose odp_caps of "
		      "ibv_query_device_ex() have IBV_ODP_SUPPORT");
	open_profile("rxe-6.12");
	expect_null(EOPNOTSUPP,
		    B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
	expect_reason(VB_WHY_MR_SPECIAL,
		      "reg_mr: access has IBV_ACCESS_ZERO_BASED, and the device has no such "
		      "regions; remove these flags");
}

void test_mistakes_of_ranges(void)
{
	expect_null(EFAULT, B.reg_mr(a.pd, (void *)(UINTPTR_MAX - 9), 11, 0));
	expect_reason(VB_WHY_MR_ADDRESS_WRAPS,
		      "reg_mr: 11 bytes at 0xfffffffffffffff6 reach beyond the end of the address "
		      "space; give the address and the length of memory of the process");
	expect_null(EINVAL, B.reg_mr_iova(a.pd, a.buffer, 11, UINT64_MAX - 9, 0));
	expect_reason(VB_WHY_MR_IOVA_WRAPS,
		      "reg_mr: 11 bytes at iova 0xfffffffffffffff6 reach beyond iova 2^64; give a "
		      "lower iova");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "empty_regions_refused", true));
	expect_null(EINVAL, B.reg_mr(a.pd, (void *)4096, 0, 0));
	expect_reason(VB_WHY_MR_EMPTY,
		      "reg_mr: length is 0, and the device registers no empty region at a page "
		      "boundary; register at least 1 byte");
	own_profile(a.context)->limits.max_mr_size = 4095;
	expect_null(EINVAL, B.reg_mr(a.pd, a.buffer, 4096, 0));
	expect_reason(VB_WHY_MR_TOO_LONG,
		      "reg_mr: the region of 4096 bytes is longer than the device's max_mr_size of "
		      "4095 bytes; register several shorter regions");
}

/* Registers the range, which fails with EFAULT. */
static void expect_fault(const char *map, size_t offset, size_t length, size_t hole,
			 size_t hole_bytes, const char *what)
{
	expect_null(EFAULT, B.reg_mr(a.pd, (void *)(map + offset), length, IBV_ACCESS_LOCAL_WRITE));
	expect_reason(VB_WHY_MEMORY_FAULT,
		      "reg_mr: of the %zu bytes at 0x%lx, %zu bytes from 0x%lx are %s; map the "
		      "memory first, with PROT_WRITE if the device has to write to it",
		      length, (long)(map + offset), hole_bytes, (long)(map + hole), what);
}

/* A range of few pages is touched, a range of many is looked up: both lead to the same sentence. */
void test_memory_that_cannot_be_touched(void)
{
	const size_t page = 4096, few = 4 * page, many = 600 * page;
	char *map = mmap(NULL, many, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT_TRUE(map != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, mprotect(map + 3 * page, page, PROT_READ));
	expect_fault(map, 8, few - 8, 3 * page, page, "read-only");
	expect_fault(map, 8, 3 * page - 6, 3 * page, 2, "read-only");
	expect_fault(map, 8, many - 8, 3 * page, page, "read-only");
	TEST_ASSERT_EQUAL_INT(0, mprotect(map + 3 * page, page, PROT_NONE));
	expect_fault(map, 0, few, 3 * page, page, "mapped without PROT_READ");
	TEST_ASSERT_EQUAL_INT(0, munmap(map + page, 2 * page));
	expect_fault(map, 8, few - 8, page, 2 * page, "not mapped");
	expect_fault(map, page + 5, 7, page + 5, 7, "not mapped");
	TEST_ASSERT_EQUAL_INT(0, munmap(map, many));
	/* Behind the last mapping. */
	expect_fault((char *)UINTPTR_MAX - page, 0, page, 0, page, "not mapped");
}

void test_memory_behind_the_end_of_its_file(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	char *map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);

	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, 4096));
	expect_null(EFAULT, B.reg_mr(a.pd, map, 8192, 0));
	expect_reason(VB_WHY_MEMORY_BEHIND_FILE,
		      "reg_mr: the 8192 bytes at 0x%lx are mapped, but reading or writing them "
		      "faults; if the memory is a mapped file, extend the file (ftruncate(2)) to "
		      "the end of the mapping",
		      (long)map);
	TEST_ASSERT_EQUAL_INT(0, munmap(map, 8192));
	TEST_ASSERT_EQUAL_INT(0, close(fd));
}

/* --- windows --- */

static struct ibv_mw_bind bind_of(struct end *end)
{
	return (struct ibv_mw_bind){.bind_info = {.mr = end->mr,
						  .addr = (uintptr_t)end->buffer,
						  .length = 8,
						  .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
}

void test_an_mr_with_bound_windows(void)
{
	struct ibv_mw *first = make_mw(), *second = make_mw();
	struct ibv_mw_bind bind = bind_of(&a);
	struct ibv_qp *from, *to;

	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, B.bind_mw(from, second, &bind));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dereg_mr(a.mr));
	expect_reason(VB_WHY_MR_BOUND,
		      "dereg_mr: the MR of lkey 0x%x has 1 bound memory window, the first of rkey "
		      "0x%x; unbind, invalidate or deallocate the windows first",
		      a.mr->lkey, second->rkey);
	TEST_ASSERT_EQUAL_INT(0, B.bind_mw(from, first, &bind));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD,
			      B.rereg_mr(a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, errno);
	expect_reason(VB_WHY_MR_BOUND,
		      "rereg_mr: the MR of lkey 0x%x has 2 bound memory windows, the first of rkey "
		      "0x%x; unbind, invalidate or deallocate the windows first",
		      a.mr->lkey, first->rkey);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "bound_regions_are_einval", true));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.dereg_mr(a.mr));
	expect_reason(VB_WHY_MR_BOUND_RXE,
		      "dereg_mr: the device keeps the MR of lkey 0x%x while it has 2 bound memory "
		      "windows, the first of rkey 0x%x; unbind, invalidate or deallocate the "
		      "windows first",
		      a.mr->lkey, first->rkey);
}

void test_mistakes_of_alloc_mw(void)
{
	expect_null(EINVAL, B.alloc_mw(a.pd, 7));
	expect_reason(VB_WHY_MW_TYPE,
		      "alloc_mw: 7 is no type of memory window; give IBV_MW_TYPE_1 or "
		      "IBV_MW_TYPE_2");
	own_profile(a.context)->limits.device_cap_flags &= ~(unsigned int)IBV_DEVICE_MEM_WINDOW;
	expect_null(EOPNOTSUPP, B.alloc_mw(a.pd, IBV_MW_TYPE_1));
	expect_reason(VB_WHY_MW_TYPE_LACKING,
		      "alloc_mw: the device has no memory windows of type 1: its device_cap_flags "
		      "lack IBV_DEVICE_MEM_WINDOW; choose a device that has them");
	TEST_ASSERT_NOT_NULL(B.alloc_mw(a.pd, IBV_MW_TYPE_2));
	own_profile(a.context)->limits.device_cap_flags = IBV_DEVICE_MEM_WINDOW;
	expect_null(EOPNOTSUPP, B.alloc_mw(a.pd, IBV_MW_TYPE_2));
	expect_reason(
		VB_WHY_MW_TYPE_LACKING,
		"alloc_mw: the device has no memory windows of type 2: its device_cap_flags "
		"lack IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B; choose a "
		"device that has them");
	TEST_ASSERT_NOT_NULL(B.alloc_mw(a.pd, IBV_MW_TYPE_1));
}

void test_mistakes_of_bind_mw(void)
{
	struct ibv_mw *mw = make_mw(), *mw_2 = B.alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = bind_of(&a);
	struct ibv_qp *from, *to;

	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(from, mw_2, &bind));
	expect_reason(VB_WHY_BIND_MW_TYPE,
		      "bind_mw: the window of rkey 0x%x is of type 2, which ibv_bind_mw() does not "
		      "bind; post IBV_WR_BIND_MW by ibv_post_send()",
		      mw_2->rkey);
	bind.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(from, mw, &bind));
	expect_reason(VB_WHY_BIND_MW_ZERO_BASED,
		      "bind_mw: mw_access_flags has IBV_ACCESS_ZERO_BASED, and the window of rkey "
		      "0x%x is of type 1; remove the flag, or use a window of type 2",
		      mw->rkey);
	bind = bind_of(&a);
	bind.bind_info.mr = NULL;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(from, mw, &bind));
	expect_reason(VB_WHY_BIND_MW_NO_MR,
		      "bind_mw: bind_info has 8 bytes at 0x%lx, but its mr is NULL; set mr; to "
		      "unbind the window, set addr and length to 0 as well",
		      (long)a.buffer);
	bind.bind_info.mr = make_null_mr();
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(from, mw, &bind));
	expect_reason(VB_WHY_BIND_MW_NULL_MR,
		      "bind_mw: the mr of bind_info is a null MR, which has no memory to bind; set "
		      "mr to an MR of ibv_reg_mr()");
	bind.bind_info.mr = b.mr;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(from, mw, &bind));
	expect_reason(VB_WHY_OBJECT_FOREIGN,
		      "bind_mw: the MR belongs to another ibv_context than the other objects of "
		      "the call; make all objects that work together in one ibv_context");
	bind.bind_info.mr = B.reg_mr(make_pd(), a.buffer, 64, IBV_ACCESS_MW_BIND);
	TEST_ASSERT_EQUAL_INT(EPERM, B.bind_mw(from, mw, &bind));
	expect_reason(
		VB_WHY_BIND_MW_PD,
		"bind_mw: the MR of lkey 0x%x and the window of rkey 0x%x belong to different "
		"PDs; register the MR and allocate the window in one PD",
		bind.bind_info.mr->lkey, mw->rkey);
}

/* --- ibv_rereg_mr(3) --- */

static int rereg(struct ibv_mr *mr, int flags, void *addr, size_t length, int access)
{
	return B.rereg_mr(mr, flags, a.pd, addr, length, access);
}

/* The change fails with EINVAL, as libibverbs' own check of the arguments. */
static void expect_rereg(enum vb_reason reason, int code, const char *expected)
{
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT, code);
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(reason, "rereg_mr: %s", expected);
}

void test_mistakes_of_rereg_mr(void)
{
	struct ibv_mr *null = make_null_mr();

	expect_rereg(VB_WHY_REREG_FLAGS, rereg(a.mr, 1 << 9 | IBV_REREG_MR_CHANGE_PD, NULL, 0, 0),
		     "flags has the unknown bits 0x200; give bits of enum ibv_rereg_mr_flags");
	expect_rereg(VB_WHY_REREG_ACCESS,
		     rereg(a.mr, IBV_REREG_MR_CHANGE_PD, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		     "access is IBV_ACCESS_LOCAL_WRITE, but flags has no "
		     "IBV_REREG_MR_CHANGE_ACCESS; add the flag, or set access to 0");
	expect_rereg(VB_WHY_REREG_RANGE, rereg(a.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, 64, 0),
		     "flags has IBV_REREG_MR_CHANGE_TRANSLATION, but addr is 0x0 and length is 64 "
		     "bytes; give an address and a length above 0");
	expect_rereg(VB_WHY_REREG_KIND, rereg(null, IBV_REREG_MR_CHANGE_PD, NULL, 0, 0),
		     "a null MR cannot change; deregister the MR, and register "
		     "another one");
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD, rereg(a.mr, 0, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(VB_WHY_REREG_NOTHING,
		      "rereg_mr: flags is 0, so there is nothing to change; give the bits of enum "
		      "ibv_rereg_mr_flags that say what changes");
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD, rereg(a.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, 0,
							  IBV_ACCESS_REMOTE_WRITE));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_MR_LOCAL_WRITE, B.last_why()->reason);
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_CMD,
			      B.rereg_mr(a.mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_OBJECT_FOREIGN, B.last_why()->reason);
}

void test_mrs_that_cannot_change(void)
{
	struct ibv_mr *covering = B.reg_dm_mr(a.pd, make_dm(), 0, 64, IBV_ACCESS_ZERO_BASED);
	struct ibv_mr *imported;

	import_device();
	imported = B.import_mr(B.import_pd(importing, a.pd->handle), a.mr->handle);

	expect_rereg(VB_WHY_REREG_KIND, rereg(imported, IBV_REREG_MR_CHANGE_PD, NULL, 0, 0),
		     "an imported MR cannot change; deregister the MR, and register "
		     "another one");
	expect_rereg(VB_WHY_REREG_KIND, rereg(covering, IBV_REREG_MR_CHANGE_PD, NULL, 0, 0),
		     "an MR of device memory cannot change; deregister the MR, and "
		     "register another one");
}

/* --- ibv_advise_mr(3) --- */

/* Advises on SGE 1 of two; SGE 0 is right. */
static int advise(struct ibv_mr *good, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sges[] = {{(uintptr_t)a.buffer, 64, good->lkey}, {addr, length, lkey}};

	return B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sges, 2);
}

void test_mistakes_of_advised_sges(void)
{
	const uint64_t addr = (uintptr_t)a.buffer;
	struct ibv_mr *good =
		B.reg_mr(a.pd, a.buffer, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *readable = B.reg_mr(a.pd, a.buffer, 4096, IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *other =
		B.reg_mr(make_pd(), a.buffer, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = make_mw();

	TEST_ASSERT_EQUAL_INT(EINVAL, advise(good, addr, 64, mw->rkey));
	expect_reason(VB_WHY_ADVISE_WINDOW,
		      "advise_mr: SGE 1: 0x%x is the rkey of a memory window; give the lkey of an "
		      "MR",
		      mw->rkey);
	TEST_ASSERT_EQUAL_INT(ENOENT, advise(good, addr, 64, 0x1234));
	expect_reason(VB_WHY_ADVISE_KEY,
		      "advise_mr: SGE 1: no MR of the device has lkey 0x1234; give the lkey of an "
		      "MR that is registered");
	TEST_ASSERT_EQUAL_INT(ENOENT, advise(good, addr, 64, a.mr->lkey));
	expect_reason(VB_WHY_ADVISE_PINNED,
		      "advise_mr: SGE 1: the MR of lkey 0x%x was registered without "
		      "IBV_ACCESS_ON_DEMAND; leave the MR out: its memory is always present",
		      a.mr->lkey);
	TEST_ASSERT_EQUAL_INT(EPERM, advise(good, addr, 64, other->lkey));
	expect_reason(VB_WHY_ADVISE_PD,
		      "advise_mr: SGE 1: the MR of lkey 0x%x belongs to another PD than the one "
		      "given; give the PD in which the MR was registered",
		      other->lkey);
	TEST_ASSERT_EQUAL_INT(EPERM, advise(good, addr, 64, readable->lkey));
	expect_reason(VB_WHY_ADVISE_READ_ONLY,
		      "advise_mr: SGE 1: IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE needs "
		      "IBV_ACCESS_LOCAL_WRITE, and the MR of lkey 0x%x lacks the flag; advise "
		      "IBV_ADVISE_MR_ADVICE_PREFETCH, or register the MR with the flag",
		      readable->lkey);
	TEST_ASSERT_EQUAL_INT(EFAULT, advise(good, addr + 4000, 97, good->lkey));
	expect_reason(VB_WHY_ADVISE_RANGE,
		      "advise_mr: SGE 1: 97 bytes at 0x%lx are not all inside the MR of lkey 0x%x, "
		      "which has 4096 bytes at 0x%lx; give a range of the MR",
		      (long)addr + 4000, good->lkey, (long)addr);
}

void test_mistakes_of_advice(void)
{
	struct ibv_sge sge = sge_of(&a, 0, 8);

	TEST_ASSERT_EQUAL_INT(ENOTSUP, B.advise_mr(a.pd, 99, 0, &sge, 1));
	expect_reason(VB_WHY_ADVISE_ADVICE, "advise_mr: 99 is no advice; give a value of enum "
					    "ib_uverbs_advise_mr_advice");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
						  IBV_ADVISE_MR_FLAG_FLUSH | 0x80, &sge, 1));
	expect_reason(VB_WHY_ADVISE_FLAGS,
		      "advise_mr: flags has the bits 0x80 beside IBV_ADVISE_MR_FLAG_FLUSH; give 0 "
		      "or IBV_ADVISE_MR_FLAG_FLUSH");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0));
	expect_reason(VB_WHY_ADVISE_NO_SGES, "advise_mr: num_sge is 0; give the ranges in sg_list");
}

/* Memory that was mapped when an on-demand MR was made, and is not mapped any more. */
void test_advice_on_memory_that_is_gone(void)
{
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = B.reg_mr(a.pd, map, 4096, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {(uintptr_t)map, 4096, mr->lkey};

	TEST_ASSERT_EQUAL_INT(0, munmap(map, 4096));
	TEST_ASSERT_EQUAL_INT(EFAULT, B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	expect_reason(
		VB_WHY_MEMORY_FAULT,
		"advise_mr: of the 4096 bytes at 0x%lx, 4096 bytes from 0x%lx are not mapped; "
		"map the memory first, with PROT_WRITE if the device has to write to it",
		(long)map, (long)map);
}

/* --- device memory --- */

static struct ibv_dm *ask_dm(size_t length, uint32_t log_align, uint32_t comp_mask)
{
	struct ibv_alloc_dm_attr attr = {length, log_align, comp_mask};

	return B.alloc_dm(a.context, &attr);
}

void test_mistakes_of_alloc_dm(void)
{
	expect_null(EINVAL, ask_dm(0, 0, 0));
	expect_reason(VB_WHY_DM_EMPTY, "alloc_dm: length is 0; ask for at least 1 byte");
	expect_null(EINVAL, ask_dm(64, 21, 0));
	expect_reason(VB_WHY_DM_ALIGNMENT,
		      "alloc_dm: log_align_req 21 is above 20; give the logarithm of the "
		      "alignment, such as 6 for 64 bytes");
	expect_null(EINVAL, ask_dm(64, 0, 4));
	expect_reason(VB_WHY_COMP_MASK,
		      "alloc_dm: comp_mask has the unknown bits 0x4; set only the bits of the "
		      "structure's enum in <infiniband/verbs.h>");
	TEST_ASSERT_NOT_NULL(ask_dm(64, 20, 0));
	expect_null(ENOMEM, ask_dm(1 << 20, 0, 0));
	expect_reason(VB_WHY_DM_FULL,
		      "alloc_dm: 1048576 bytes are asked for; of the 1048576 bytes of the device, "
		      "1048512 bytes are free; free device memory first; max_dm_size of "
		      "ibv_query_device_ex() is the sum");
}

void test_mistakes_of_copies(void)
{
	struct ibv_dm *dm = ask_dm(64, 0, 0);

	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_to_dm(dm, 2, a.buffer, 8));
	expect_reason(
		VB_WHY_DM_COPY_ALIGNMENT,
		"memcpy_to_dm: DM %u: offset 2 or length 8 is not a multiple of 4; copy whole "
		"words",
		dm->handle);
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_from_dm(a.buffer, dm, 4, 6));
	expect_reason(VB_WHY_DM_COPY_ALIGNMENT,
		      "memcpy_from_dm: DM %u: offset 4 or length 6 is not a multiple of 4; copy "
		      "whole words",
		      dm->handle);
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_from_dm(a.buffer, dm, 60, 8));
	expect_reason(VB_WHY_DM_COPY_RANGE,
		      "memcpy_from_dm: DM %u: 8 bytes at offset 60 reach beyond its 64 bytes; copy "
		      "a range of the DM",
		      dm->handle);
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_from_dm((void *)64, dm, 0, 8));
	expect_reason(VB_WHY_DM_COPY_HOST,
		      "memcpy_from_dm: 8 bytes at 0x40 cannot be written; give the address of "
		      "memory of the process");
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_to_dm(dm, 0, (void *)64, 8));
	expect_reason(VB_WHY_DM_COPY_HOST,
		      "memcpy_to_dm: 8 bytes at 0x40 cannot be read; give the address of memory of "
		      "the process");
}

void test_mistakes_of_mrs_of_device_memory(void)
{
	struct ibv_dm *dm = ask_dm(64, 0, 0);

	expect_null(EINVAL, B.reg_dm_mr(a.pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE));
	expect_reason(VB_WHY_DM_MR_ZERO_BASED,
		      "reg_dm_mr: access lacks IBV_ACCESS_ZERO_BASED, which an MR of device memory "
		      "needs; add the flag; SGEs then have offsets as addresses");
	expect_null(EINVAL, B.reg_dm_mr(a.pd, dm, 8, 57, IBV_ACCESS_ZERO_BASED));
	expect_reason(VB_WHY_DM_MR_RANGE,
		      "reg_dm_mr: an MR of 57 bytes at offset 8 reaches beyond the 64 bytes of DM "
		      "%u; register a range of the DM",
		      dm->handle);
	TEST_ASSERT_NOT_NULL(B.reg_dm_mr(a.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
}

/* The import of an MR covers no device memory of its own. */
void test_covered_device_memory_names_its_mrs(void)
{
	struct ibv_dm *dm = ask_dm(64, 0, 0);
	struct ibv_mr *first = B.reg_dm_mr(a.pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED);

	import_device();
	TEST_ASSERT_NOT_NULL(B.import_mr(B.import_pd(importing, a.pd->handle), first->handle));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.free_dm(dm));
	expect_reason(VB_WHY_DM_BUSY,
		      "free_dm: DM %u is still covered by 1 MR (lkey 0x%x); deregister the MRs "
		      "first",
		      dm->handle, first->lkey);
	TEST_ASSERT_NOT_NULL(B.reg_dm_mr(a.pd, dm, 8, 56, IBV_ACCESS_ZERO_BASED));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.free_dm(dm));
	expect_reason(VB_WHY_DM_BUSY,
		      "free_dm: DM %u is still covered by 2 MRs (first: lkey 0x%x); deregister the "
		      "MRs first",
		      dm->handle, first->lkey);
}
