/* SPDX-License-Identifier: MIT */
/* Imports from another process: content by each way of access, the end of objects, contexts and processes,
 * and what a file must be for an import. */
#include "backends/sim/guard/distant.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/world.h"
#include "test/unit/exporter.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

static struct exporter other;
/* The test's own context is `a`; these are the imports. */
static struct ibv_context *imported;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_qp *near, *far; /* of the imported PD, and of a's PD; connected to each other */
static bool denied;		  /* the kernel denies the other process's memory */

int __real_distant_open(uint32_t pid);
int __wrap_distant_open(uint32_t pid);

int __wrap_distant_open(uint32_t process)
{
	if (!denied)
		return __real_distant_open(process);
	errno = EACCES;
	return -1;
}

static int windows; /* to memory of other processes */

void *__real_distant_map(const struct distant_range *range);
void *__wrap_distant_map(const struct distant_range *range);
void *__wrap_distant_map(const struct distant_range *range)
{
	void *window = __real_distant_map(range);

	windows += window != NULL;
	return window;
}

void __real_distant_unmap(void *window);
void __wrap_distant_unmap(void *window);
void __wrap_distant_unmap(void *window)
{
	windows--;
	__real_distant_unmap(window);
}

static void name_world(void)
{
	static unsigned int count;

	snprintf(import_world, sizeof(import_world), "import-%d-%u", (int)getpid(), ++count);
}

/* A world of this process, whose default world was another one's. */
static void open_own(void)
{
	struct vb_sim_config config;

	shared_world(&config);
	open_alone(&config);
}

static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_pd *of, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	attr.pd = of;
	attr.send_cq = attr.recv_cq = cq;
	return B.create_qp_ex(context, &attr);
}

void setUp(void)
{
	denied = false;
	name_world();
	start_exporter(&other);
	open_own();
	imported = NULL;
}

void tearDown(void)
{
	if (imported)
		B.close_device(imported);
	kill_exporter(&other);
	close(other.cmd_fd);
	close_pair();
	TEST_ASSERT_EQUAL_INT(0, windows);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

static void import_all(void)
{
	imported = B.import_device(dup(other.cmd_fd));
	TEST_ASSERT_NOT_NULL(imported);
	pd = B.import_pd(imported, other.has.pd);
	TEST_ASSERT_NOT_NULL(pd);
	mr = B.import_mr(pd, other.has.mr);
	TEST_ASSERT_NOT_NULL(mr);
}

/* Imports, and connects a QP of the imported PD to one of this process's own. */
static void import_and_connect(void)
{
	import_all();
	near = make_qp(imported, pd, B.create_cq(imported, 64, NULL, NULL, 0));
	far = make_qp(a.context, a.pd, a.cq);
	connect_qp(near, &a, far->qp_num);
	connect_qp(far, &a, near->qp_num);
}

static enum ibv_wc_status next_status(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n = 0;

	for (int i = 0; i < 10000000 && !n; i++)
		n = ibv_poll_cq(cq, 1, &wc);
	TEST_ASSERT_EQUAL_INT(1, n);
	return wc.status;
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t addr,
		 uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
}

/* An SGE of the other process's memory. */
static struct ibv_sge theirs(size_t offset, uint32_t length)
{
	return (struct ibv_sge){other.has.addr + offset, length, other.has.lkey};
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
}

static void fill(uint8_t *bytes, size_t length, uint8_t seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed + i * 13 + i / 100);
}

/* --- the imported objects --- */

static unsigned int count_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Counts the mapped files of cmd_fds and of other memfds. */
static unsigned int count_mapped_files(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int count = 0;
	char line[512];

	TEST_ASSERT_NOT_NULL(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/memfd:") != NULL;
	fclose(maps);
	return count;
}

void test_imports_leave_no_descriptor_and_no_mapping(void)
{
	const unsigned int before = count_descriptors(), mapped_before = count_mapped_files();

	import_all();
	B.unimport_mr(mr);
	B.unimport_pd(pd);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(imported));
	imported = NULL;
	TEST_ASSERT_EQUAL_UINT(before, count_descriptors());
	TEST_ASSERT_EQUAL_UINT(mapped_before, count_mapped_files());
}

void test_imports_have_handles_and_keys_of_the_other_process(void)
{
	import_all();
	TEST_ASSERT_EQUAL_UINT32(other.has.pd, pd->handle);
	TEST_ASSERT_EQUAL_UINT32(other.has.mr, mr->handle);
	TEST_ASSERT_EQUAL_HEX32(other.has.lkey, mr->lkey);
	TEST_ASSERT_EQUAL_HEX32(other.has.rkey, mr->rkey);
	TEST_ASSERT_EQUAL_UINT64(EXPORTED_BYTES, mr->length);
	TEST_ASSERT_NULL(mr->addr);
	TEST_ASSERT_TRUE(imported->device == a.context->device);
	TEST_ASSERT_TRUE(mr->context == imported);
	TEST_ASSERT_TRUE(mr->pd == pd);
	B.unimport_mr(mr);
	B.unimport_pd(pd);
	pd = B.import_pd(imported, other.has.pd);
	TEST_ASSERT_EQUAL_HEX32(other.has.lkey, B.import_mr(pd, other.has.mr)->lkey);
}

void test_each_sge_of_a_send_is_read_from_the_other_process(void)
{
	import_and_connect();
	for (unsigned int round = 0; round < 3; round++) {
		post_receive(far, sge_of(&a, 0, 4096));
		post(near, IBV_WR_SEND, theirs(100 + 5000 * round, 4000), 0, 0);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
		for (size_t i = 0; i < 4000; i++)
			TEST_ASSERT_EQUAL_HEX8(exported_byte(100 + 5000 * round + i), a.buffer[i]);
	}
}

void test_a_receive_writes_to_the_other_process(void)
{
	import_and_connect();
	fill(a.buffer, 4096, 1);
	post_receive(near, theirs(0, 4096));
	post(far, IBV_WR_SEND, sge_of(&a, 0, 4096), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->recv_cq));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, order(&other, ORDER_BYTES), 4096);
}

void test_remote_keys_lead_to_the_other_process(void)
{
	import_and_connect();
	fill(a.buffer, 4096, 77);
	post(far, IBV_WR_RDMA_WRITE, sge_of(&a, 0, 3000), other.has.addr + 60, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, order(&other, ORDER_BYTES) + 60, 3000);
	TEST_ASSERT_EQUAL_HEX8(exported_byte(59), order(&other, ORDER_BYTES)[59]);
	TEST_ASSERT_EQUAL_HEX8(exported_byte(3060), order(&other, ORDER_BYTES)[3060]);
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 4096), other.has.addr + 40000, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	for (size_t i = 0; i < 4096; i++)
		TEST_ASSERT_EQUAL_HEX8(exported_byte(40000 + i), a.buffer[i]);
}

void test_an_atomic_changes_the_other_process(void)
{
	uint64_t before, after;

	import_and_connect();
	memcpy(&before, order(&other, ORDER_BYTES) + 8, sizeof(before));
	post(far, IBV_WR_ATOMIC_FETCH_AND_ADD, sge_of(&a, 0, 8), other.has.addr + 8,
	     other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	memcpy(&after, order(&other, ORDER_BYTES) + 8, sizeof(after));
	TEST_ASSERT_EQUAL_UINT64(before + 5, after);
	TEST_ASSERT_EQUAL_MEMORY(&before, a.buffer, sizeof(before));
}

/* Both ends of the copy are in the other process, and longer than one step of it. */
void test_a_copy_inside_the_other_process(void)
{
	struct ibv_qp *second;

	import_all();
	near = make_qp(imported, pd, B.create_cq(imported, 64, NULL, NULL, 0));
	second = make_qp(imported, pd, near->send_cq);
	connect_qp(near, &a, second->qp_num);
	connect_qp(second, &a, near->qp_num);
	post(near, IBV_WR_RDMA_WRITE, theirs(30000, 20000), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	/* The other process has them all: read them back by another QP. */
	far = make_qp(a.context, a.pd, a.cq);
	near = make_qp(imported, pd, near->send_cq);
	connect_qp(near, &a, far->qp_num);
	connect_qp(far, &a, near->qp_num);
	for (size_t at = 0; at < 20000; at += 4000) {
		post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 4000), other.has.addr + at,
		     other.has.rkey);
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
		for (size_t i = 0; i < 4000; i++)
			TEST_ASSERT_EQUAL_HEX8(exported_byte(30000 + at + i), a.buffer[i]);
	}
}

void test_an_mr_of_this_process_in_the_imported_pd(void)
{
	struct ibv_sge own = sge_of(&a, 0, 500);
	struct ibv_mr *mine;

	import_and_connect();
	fill(a.buffer, 4096, 9);
	mine = B.reg_mr(pd, a.buffer, 4096, ACCESS_ALL);
	own.lkey = mine->lkey;
	post_receive(far, sge_of(&a, 1000, 500));
	post(near, IBV_WR_SEND, own, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, a.buffer + 1000, 500);
	/* The MR of the other PD does not work. */
	post(near, IBV_WR_SEND, sge_of(&a, 0, 500), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, next_status(near->send_cq));
}

void test_a_qp_of_another_pd_cannot_use_the_imported_mr(void)
{
	import_and_connect();
	post(far, IBV_WR_SEND, theirs(0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, next_status(a.cq));
}

void test_the_bounds_are_those_of_the_mr(void)
{
	import_and_connect();
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(EXPORTED_BYTES - 10, 11), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, next_status(near->send_cq));
}

/* Two contexts of one file have one PD of a handle. */
void test_two_imports_of_a_pd_are_one(void)
{
	struct ibv_context *second = B.import_device(dup(other.cmd_fd));
	struct ibv_pd *again = B.import_pd(second, other.has.pd);

	import_and_connect();
	TEST_ASSERT_NOT_NULL(again);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(second));
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(0, 300), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	TEST_ASSERT_EQUAL_HEX8(exported_byte(299), a.buffer[299]);
}

/* Each has objects of the same handles. */
void test_imports_from_two_processes(void)
{
	struct exporter another;
	struct ibv_context *second;
	const struct ibv_mr *seconds;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	start_exporter(&another);
	open_own();
	TEST_ASSERT_EQUAL_UINT32(other.has.mr, another.has.mr);
	import_all();
	second = B.import_device(dup(another.cmd_fd));
	TEST_ASSERT_NOT_NULL(second);
	seconds = B.import_mr(B.import_pd(second, another.has.pd), another.has.mr);
	TEST_ASSERT_NOT_NULL(seconds);
	TEST_ASSERT_EQUAL_HEX32(other.has.lkey, mr->lkey);
	TEST_ASSERT_EQUAL_HEX32(another.has.lkey, seconds->lkey);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(second));
	kill_exporter(&another);
	close(another.cmd_fd);
}

/* --- device memory --- */

void test_device_memory_is_one_for_both_processes(void)
{
	struct ibv_mr *of_dm;
	struct ibv_dm *dm;

	import_and_connect();
	dm = B.import_dm(imported, other.has.dm);
	TEST_ASSERT_NOT_NULL(dm);
	TEST_ASSERT_EQUAL_UINT32(other.has.dm, dm->handle);
	fill(a.buffer, 4096, 30);
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_to_dm(dm, 64, a.buffer, 1024));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, order(&other, ORDER_DM_BYTES) + 64, 1024);
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_from_dm(a.buffer + 2048, dm, 64, 1024));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, a.buffer + 2048, 1024);
	/* An MR that this process makes of it, and the one that the other process has made. */
	of_dm = B.reg_dm_mr(pd, dm, 0, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	TEST_ASSERT_NOT_NULL(of_dm);
	post(far, IBV_WR_RDMA_WRITE, sge_of(&a, 0, 200), 2000, of_dm->rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, order(&other, ORDER_DM_BYTES) + 2000, 200);
	TEST_ASSERT_NOT_NULL(B.import_mr(pd, other.has.dm_mr));
	post(far, IBV_WR_RDMA_WRITE, sge_of(&a, 0, 300), 3000, other.has.dm_rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, order(&other, ORDER_DM_BYTES) + 3000, 300);
}

/* An MR of this process covers device memory that the other process frees: its addresses stay taken. */
void test_device_memory_that_the_other_process_frees(void)
{
	struct ibv_dm *dm;
	struct ibv_mr *of_dm;
	uint8_t *next;

	import_and_connect();
	dm = B.import_dm(imported, other.has.spare_dm);
	of_dm = B.reg_dm_mr(pd, dm, 0, 4096, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	fill(a.buffer, 4096, 30);
	post(far, IBV_WR_RDMA_WRITE, sge_of(&a, 0, 200), 0, of_dm->rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	order(&other, ORDER_FREE_DM);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.free_dm(dm));
	TEST_ASSERT_NOT_NULL(B.import_pd(imported, other.has.pd + 2));
	next = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	post(far, IBV_WR_RDMA_WRITE, sge_of(&a, 0, 200), 0, of_dm->rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, next_status(a.cq));
	TEST_ASSERT_EQUAL_HEX8(0, next[199]);
	munmap(next, 4096);
}

/* --- ends --- */

static void expect_no_access(void)
{
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, next_status(near->send_cq));
}

void test_an_mr_that_the_other_process_deregisters(void)
{
	import_and_connect();
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 100), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	order(&other, ORDER_DEREGISTER);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(mr));
	expect_reason(
		VB_WHY_IMPORT_GONE,
		"dereg_mr: the MR of handle %u is an import, and the MR that it stands for was "
		"destroyed; unimport the MR",
		other.has.mr);
	expect_null(ENOENT, B.import_mr(pd, other.has.mr));
	expect_reason(VB_WHY_IMPORT_HANDLE,
		      "import_mr: the original context has no MR of handle %u; give the handle in "
		      "the structure of the MR, while the MR is live",
		      other.has.mr);
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 100), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, next_status(a.cq));
	B.unimport_mr(mr);
}

void test_a_local_key_of_an_mr_that_is_deregistered(void)
{
	import_and_connect();
	order(&other, ORDER_DEREGISTER);
	expect_no_access();
}

/* The handle and the memory are those of the first MR, the key is not. */
void test_an_import_does_not_reach_the_next_mr_of_its_handle(void)
{
	struct ibv_mr *next;
	uint32_t handle;

	import_and_connect();
	memcpy(&handle, order(&other, ORDER_REGISTER_AGAIN), sizeof(handle));
	TEST_ASSERT_EQUAL_UINT32(other.has.mr, handle);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(mr));
	next = B.import_mr(pd, handle);
	TEST_ASSERT_NOT_NULL(next);
	TEST_ASSERT_TRUE(next->lkey != mr->lkey);
	TEST_ASSERT_EQUAL_UINT64(EXPORTED_BYTES / 2, next->length);
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND,
	     (struct ibv_sge){other.has.addr + EXPORTED_BYTES / 2, 100, next->lkey}, 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	TEST_ASSERT_EQUAL_HEX8(exported_byte(EXPORTED_BYTES / 2 + 99), a.buffer[99]);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	expect_no_access();
}

void test_an_mr_that_is_reregistered_is_imported_anew(void)
{
	import_and_connect();
	order(&other, ORDER_REREGISTER);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(mr));
	TEST_ASSERT_NOT_NULL(B.import_mr(pd, other.has.mr));
	TEST_ASSERT_EQUAL_INT(1, windows);
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 100), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, next_status(a.cq));
}

void test_a_pd_that_the_other_process_frees(void)
{
	struct ibv_pd *spare;

	import_all();
	spare = B.import_pd(imported, other.has.pd + 2);
	TEST_ASSERT_NOT_NULL(spare);
	order(&other, ORDER_FREE_PD);
	expect_null(ENOENT, B.reg_mr(spare, a.buffer, 10, 0));
	TEST_ASSERT_NOT_NULL(B.reg_mr(pd, a.buffer, 10, 0));
	B.unimport_pd(spare);
}

void test_the_other_process_closes_its_device(void)
{
	import_and_connect();
	order(&other, ORDER_CLOSE);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_no_access();
}

/* The memory is as memory that the program has unmapped under its MR. */
static void expect_fault(void)
{
	fill(a.buffer, 200, 3);
	post_receive(near, theirs(0, 100));
	post(far, IBV_WR_SEND, sge_of(&a, 0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_LOC_PROT_ERR, next_status(near->recv_cq));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_OP_ERR, next_status(a.cq));
}

/* As in the kernel, the PD lives as long as a process has the file. The memory is the process's. */
void test_the_other_process_is_killed(void)
{
	const int pid = (int)other.pid;

	import_and_connect();
	post(near, IBV_WR_RDMA_WRITE, theirs(0, 100), (uintptr_t)a.buffer, a.mr->rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	kill_exporter(&other);
	TEST_ASSERT_NOT_NULL(B.reg_mr(pd, a.buffer, 10, 0));
	expect_fault();
	expect_null(ENODEV, B.import_mr(pd, other.has.dm_mr));
	expect_reason(VB_WHY_IMPORT_ENDED,
		      "import_mr: process %d, which the original context is of, has ended; import "
		      "while that process runs",
		      pid);
}

/* --- an importer destroys --- */

void test_an_importer_destroys_the_objects(void)
{
	struct ibv_mr *second;
	struct ibv_pd *spare;
	struct ibv_dm *dm;

	import_and_connect();
	second = B.import_mr(pd, other.has.mr);
	spare = B.import_pd(imported, other.has.pd + 2);
	dm = B.import_dm(imported, other.has.spare_dm);
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	TEST_ASSERT_EQUAL_INT(2, windows);
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(1, windows);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(spare));
	TEST_ASSERT_EQUAL_INT(0, B.free_dm(dm));
	TEST_ASSERT_EQUAL_INT(0, windows);
	order(&other, ORDER_EXPECT_GONE);
	expect_null(ENOENT, B.import_mr(pd, other.has.mr));
	expect_null(ENOENT, B.import_pd(imported, other.has.pd + 2));
	expect_null(ENOENT, B.import_dm(imported, other.has.spare_dm));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(second));
	B.unimport_mr(second);
	expect_no_access();
}

/* The MR is gone for the QPs of its own process, too. */
void test_the_keys_of_an_mr_that_an_importer_has_destroyed(void)
{
	import_and_connect();
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 100), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	post(far, IBV_WR_RDMA_READ, sge_of(&a, 0, 100), other.has.addr, other.has.rkey);
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, next_status(a.cq));
}

/* The users in both processes keep an object. */
void test_an_object_that_is_used_is_not_destroyed(void)
{
	struct ibv_dm *dm;

	import_and_connect();
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	expect_reason(VB_WHY_PD_BUSY,
		      "dealloc_pd: PD %u still has 1 QP (number 0x%x); destroy these objects first",
		      other.has.pd, near->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(near));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_PD_BUSY, B.last_why()->reason);
	TEST_ASSERT_NOT_NULL(strstr(sentence(), "still has 3 MRs (first: lkey 0x"));
	dm = B.import_dm(imported, other.has.dm);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.free_dm(dm));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_DM_BUSY, B.last_why()->reason);
	TEST_ASSERT_NOT_NULL(strstr(sentence(), "is still covered by 1 MR"));
	/* Nothing has changed. */
	near = make_qp(imported, pd, B.create_cq(imported, 64, NULL, NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(far, &(struct ibv_qp_attr){0}, IBV_QP_STATE));
	connect_qp(near, &a, far->qp_num);
	connect_qp(far, &a, near->qp_num);
	post_receive(far, sge_of(&a, 0, 4096));
	post(near, IBV_WR_SEND, theirs(0, 100), 0, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(near->send_cq));
	order(&other, ORDER_DM_BYTES);
}

void test_a_process_that_has_ended_destroys_nothing(void)
{
	const unsigned int pid = (unsigned int)other.pid;

	import_and_connect();
	kill_exporter(&other);
	TEST_ASSERT_EQUAL_INT(EIO, B.dereg_mr(mr));
	expect_reason(VB_WHY_IMPORT_SILENT,
		      "dereg_mr: process %u, which has the MR of handle %u, has ended, or does not "
		      "answer; unimport the MR; the end of its process has destroyed it",
		      pid, other.has.mr);
	B.unimport_mr(mr);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(near));
	TEST_ASSERT_EQUAL_INT(EIO, B.dealloc_pd(pd));
	B.unimport_pd(pd);
}

/* --- what cannot be imported --- */

void test_objects_that_cannot_be_imported(void)
{
	import_all();
	expect_null(ENOENT, B.import_pd(imported, other.has.parent));
	expect_reason(VB_WHY_IMPORT_PARENT,
		      "import_pd: the PD of handle %u is a parent domain, which exists in its own "
		      "context only; import the PD that the parent domain extends",
		      other.has.parent);
	expect_null(EOPNOTSUPP, B.import_mr(pd, other.has.null_mr));
	expect_reason(
		VB_WHY_IMPORT_NO_BYTES,
		"import_mr: the MR of handle %u is a null MR or reaches every address, which no "
		"other process can import; register the range that the other process is to use",
		other.has.null_mr);
	expect_null(ENOENT, B.import_pd(imported, UINT32_MAX));
	expect_null(ENOENT, B.import_mr(pd, 1u << 19));
	expect_null(ENOENT, B.import_dm(imported, other.has.spare_dm + 1));
}

void test_descriptors_of_something_else(void)
{
	int fds[] = {open("/dev/null", O_RDWR), memfd_create("x", 0),
		     memfd_create("x", MFD_ALLOW_SEALING), open("/proc/self/exe", O_RDONLY)};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		expect_null(EINVAL, B.import_device(fds[i]));
		expect_reason(
			VB_WHY_IMPORT_DESCRIPTOR,
			"import_device: descriptor %d is no duplicate of the cmd_fd of an open "
			"ibv_context; give dup(context->cmd_fd), or a descriptor that a process "
			"of this world has passed",
			fds[i]);
		TEST_ASSERT_EQUAL_INT(0, close(fds[i]));
	}
	expect_null(EINVAL, B.import_device(-1));
}

void test_the_descriptor_of_an_import_is_taken(void)
{
	import_all();
	expect_null(EINVAL, B.import_device(imported->cmd_fd));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_ORIGINAL, B.last_why()->reason);
}

void test_a_process_of_another_world(void)
{
	struct vb_sim_config config;
	unsigned int mapped;

	name_world();
	open_own();
	mapped = count_mapped_files();
	expect_null(EINVAL, B.import_device(other.cmd_fd));
	TEST_ASSERT_EQUAL_UINT(mapped, count_mapped_files());
	expect_reason(
		VB_WHY_IMPORT_WORLD,
		"import_device: the original context is of process %d, which is in another "
		"world; give both processes the wire shared and the same world (--world NAME, "
		"VERBENA_WORLD)",
		(int)other.pid);
	/* A world without the wire shared. */
	shared_world(&config);
	config.devices[0].wire = VB_SIM_WIRE_MEMORY;
	open_alone(&config);
	expect_null(EINVAL, B.import_device(other.cmd_fd));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_WORLD, B.last_why()->reason);
}

void test_a_process_that_has_ended(void)
{
	const int pid = (int)other.pid;

	kill_exporter(&other);
	expect_null(ENODEV, B.import_device(other.cmd_fd));
	expect_reason(
		VB_WHY_IMPORT_ENDED,
		"import_device: process %d, which the original context is of, has ended; import "
		"while that process runs",
		pid);
}

void test_memory_that_the_kernel_denies(void)
{
	const int pid = (int)other.pid;

	denied = true;
	imported = B.import_device(dup(other.cmd_fd));
	pd = B.import_pd(imported, other.has.pd);
	TEST_ASSERT_NOT_NULL(pd);
	expect_null(EACCES, B.import_mr(pd, other.has.mr));
	expect_reason(
		VB_WHY_IMPORT_MEMORY,
		"import_mr: the kernel does not let this process read and write the memory of "
		"process %d; let process %d call prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY), or "
		"give this process CAP_SYS_PTRACE",
		pid, pid);
	expect_null(EACCES, B.import_dm(imported, other.has.dm));
	denied = false;
	TEST_ASSERT_NOT_NULL(B.import_mr(pd, other.has.mr));
}

/* --- a file that another process has written over --- */

/* As backends/sim/object/description.c has them. */
struct file {
	uint64_t magic;
	uint32_t layout;
	struct description_owner owner;
};

struct file_row {
	uint64_t stamp;
	struct described object;
};

#define FILE_ROWS (UINT32_C(1) << 19)

static uint8_t *forge(void)
{
	uint8_t *map = mmap(NULL, 4096 + 3 * FILE_ROWS * sizeof(struct file_row),
			    PROT_READ | PROT_WRITE, MAP_SHARED, other.cmd_fd, 0);

	TEST_ASSERT_TRUE(map != MAP_FAILED);
	return map;
}

static struct file_row *row_of(uint8_t *map, enum description_table table, uint32_t handle)
{
	return (struct file_row *)(map + 4096) + (table - 1) * FILE_ROWS + handle;
}

void test_a_description_of_another_layout(void)
{
	struct file *file = (struct file *)forge();

	file->layout = 9;
	expect_null(EINVAL, B.import_device(other.cmd_fd));
	expect_reason(VB_WHY_IMPORT_LAYOUT,
		      "import_device: the process of the original context describes its objects by "
		      "layout 9, and this process by layout 1; run both processes with the same "
		      "version of Verbena");
}

void test_a_device_that_is_none_of_the_world(void)
{
	struct file *file = (struct file *)forge();

	file->owner.device = 1;
	expect_null(EINVAL, B.import_device(other.cmd_fd));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_DESCRIPTOR, B.last_why()->reason);
	file->owner.device = UINT32_MAX;
	expect_null(EINVAL, B.import_device(other.cmd_fd));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_DESCRIPTOR, B.last_why()->reason);
}

void test_another_pid_namespace(void)
{
	struct file *file = (struct file *)forge();

	file->owner.pid_namespace++;
	imported = B.import_device(dup(other.cmd_fd));
	pd = B.import_pd(imported, other.has.pd);
	expect_null(EOPNOTSUPP, B.import_mr(pd, other.has.mr));
	expect_reason(VB_WHY_IMPORT_NAMESPACE,
		      "import_mr: process %d, which the original context is of, is in another PID "
		      "namespace: its memory cannot be reached; run both processes in one PID "
		      "namespace; PDs can be imported anyway",
		      (int)other.pid);
}

static void expect_damaged(void)
{
	expect_null(EINVAL, B.import_mr(pd, other.has.mr));
	expect_reason(
		VB_WHY_IMPORT_DAMAGED,
		"import_mr: process %d describes its MR of handle %u by a range or keys that it "
		"cannot have; look for what writes into the file of the cmd_fd",
		(int)other.pid, other.has.mr);
}

void test_ranges_and_keys_that_no_mr_has(void)
{
	uint8_t *map = forge();
	struct file_row *row = row_of(map, DESCRIBED_MR, other.has.mr);
	const struct described good = row->object;

	TEST_ASSERT_EQUAL_HEX32(other.has.lkey, good.lkey);
	imported = B.import_device(dup(other.cmd_fd));
	pd = B.import_pd(imported, other.has.pd);
	row->object.length = UINT64_MAX;
	expect_damaged();
	row->object.length = INT64_MAX;
	expect_damaged();
	row->object = good;
	row->object.addr = UINT64_MAX - 10;
	expect_damaged();
	row->object = good;
	row->object.iova = UINT64_MAX - 10;
	expect_damaged();
	/* Keys of this process: its own MR must stay what it is. */
	row->object = good;
	row->object.lkey = a.mr->lkey;
	expect_damaged();
	row->object = good;
	row->object.rkey = a.mr->rkey;
	expect_damaged();
	row->object = good;
	row->object.pd = 99;
	expect_null(ENOENT, B.import_mr(pd, other.has.mr));
	row->object = good;
	TEST_ASSERT_NOT_NULL(B.import_mr(pd, other.has.mr));
}

void test_ranges_that_no_device_memory_has(void)
{
	struct file_row *row = row_of(forge(), DESCRIBED_DM, other.has.dm);
	const struct described good = row->object;

	imported = B.import_device(dup(other.cmd_fd));
	row->object.length = INT64_MAX / 2;
	expect_null(EINVAL, B.import_dm(imported, other.has.dm));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_DAMAGED, B.last_why()->reason);
	row->object = good;
	row->object.addr = INT64_MAX;
	expect_null(EINVAL, B.import_dm(imported, other.has.dm));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_IMPORT_DAMAGED, B.last_why()->reason);
	row->object = good;
	TEST_ASSERT_NOT_NULL(B.import_dm(imported, other.has.dm));
}

void test_a_stamp_that_changes_while_an_import_is_used(void)
{
	uint8_t *map = forge();

	import_and_connect();
	row_of(map, DESCRIBED_MR, other.has.mr)->stamp += 1000;
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(mr));
	expect_no_access();
}

/* An address that the other process has not mapped is a protection error, not a crash. */
void test_a_range_that_is_not_mapped(void)
{
	struct file_row *row = row_of(forge(), DESCRIBED_MR, other.has.mr);

	row->object.addr = 0x1000;
	import_and_connect();
	expect_fault();
}

void test_no_process_can_cut_the_file(void)
{
	TEST_ASSERT_EQUAL_INT(-1, ftruncate(other.cmd_fd, 0));
	TEST_ASSERT_EQUAL_INT(EPERM, errno);
	import_all();
}

/* --- fork() --- */

/* A child imports from its parent, whose objects it has copies of: it reaches the parent's memory. */
static void import_in_child(int parent)
{
	struct ibv_context *context = B.import_device(dup(a.context->cmd_fd));
	struct ibv_pd *theirs_pd = context ? B.import_pd(context, a.pd->handle) : NULL;
	struct ibv_mr *theirs_mr = theirs_pd ? B.import_mr(theirs_pd, a.mr->handle) : NULL;
	char byte;
	struct ibv_qp *from, *to;
	uint8_t result[64] = {0};
	struct ibv_mr *here;
	struct ibv_cq *cq;

	if (!theirs_mr || theirs_mr->rkey != a.mr->rkey)
		_exit(11);
	/* The parent has changed its buffer since. */
	if (read(parent, &byte, 1) != 1)
		_exit(12);
	cq = B.create_cq(context, 16, NULL, NULL, 0);
	here = B.reg_mr(theirs_pd, result, sizeof(result), ACCESS_ALL);
	from = make_qp(context, theirs_pd, cq);
	to = make_qp(context, theirs_pd, cq);
	connect_qp(from, &a, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	post(from, IBV_WR_RDMA_READ, (struct ibv_sge){(uintptr_t)result, 64, here->lkey},
	     (uintptr_t)a.buffer, a.mr->rkey);
	if (next_status(cq) != IBV_WC_SUCCESS || result[0] != 0xcc || result[63] != 0xcc)
		_exit(13);
	memset(result, 0xdd, sizeof(result));
	post(from, IBV_WR_RDMA_WRITE, (struct ibv_sge){(uintptr_t)result, 64, here->lkey},
	     (uintptr_t)a.buffer + 128, a.mr->rkey);
	if (next_status(cq) != IBV_WC_SUCCESS)
		_exit(14);
	/* The copy that the child has of the parent's MR ends in the child only. */
	B.close_device(a.context);
	_exit(0);
}

void test_a_child_imports_from_its_parent(void)
{
	int ends[2], status;
	pid_t child;

	memset(a.buffer, 0xaa, sizeof(a.buffer));
	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (!child)
		import_in_child(ends[0]);
	memset(a.buffer, 0xcc, 128);
	TEST_ASSERT_EQUAL_INT(1, write(ends[1], "x", 1));
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_HEX8(0xdd, a.buffer[128]);
	TEST_ASSERT_EQUAL_HEX8(0xdd, a.buffer[191]);
	TEST_ASSERT_EQUAL_HEX8(0xaa, a.buffer[192]);
	/* The parent's description has not changed. */
	imported = B.import_device(dup(a.context->cmd_fd));
	TEST_ASSERT_NOT_NULL(B.import_mr(B.import_pd(imported, a.pd->handle), a.mr->handle));
}

/* --- calls that destroy --- */

/* The call by which an importer destroys `a.mr`. */
static struct world_call destroying(void)
{
	struct world_call call = {.what = CALL_DESTROY, .number = a.mr->handle, .mask = KIND_MR};
	struct described object;
	struct stat file;

	TEST_ASSERT_EQUAL_INT(0, fstat(a.context->cmd_fd, &file));
	call.key[0] = file.st_dev;
	call.key[1] = file.st_ino;
	call.stamp = description_read(&context_of(a.context)->description, DESCRIBED_MR,
				      call.number, &object);
	return call;
}

/* Does what another process asks for. Returns the answer. */
static struct world_call serve(struct world_call call)
{
	struct vb_sim *world = context_of(a.context)->world;

	pthread_mutex_lock(&world->driver.mutex);
	world->calls.serve(world, 12345, &call);
	pthread_mutex_unlock(&world->driver.mutex);
	return call;
}

static void expect_nothing_destroyed(struct world_call call)
{
	TEST_ASSERT_EQUAL_INT(ENOENT, serve(call).error);
}

/* A call names the file, the kind, the handle and the stamp of the object. */
void test_calls_that_destroy_nothing(void)
{
	struct world_call call = destroying();

	call.key[0]++;
	expect_nothing_destroyed(call);
	call = destroying();
	call.key[1]++;
	expect_nothing_destroyed(call);
	call = destroying();
	call.stamp++;
	expect_nothing_destroyed(call);
	call = destroying();
	for (call.mask = 0; call.mask < 2 * KINDS; call.mask++)
		if (call.mask != KIND_PD && call.mask != KIND_MR && call.mask != KIND_DM)
			expect_nothing_destroyed(call);
	call.mask = UINT32_MAX;
	expect_nothing_destroyed(call);
	/* The MR still exists. */
	TEST_ASSERT_EQUAL_INT(0, serve(destroying()).error);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(a.mr));
}

/* The answer has the reason. */
void test_a_call_to_destroy_an_mr_with_a_window(void)
{
	struct ibv_mw *mw = B.alloc_mw(a.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = a.mr,
						 .addr = (uintptr_t)a.buffer,
						 .length = 64,
						 .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
	struct world_call answer;

	near = make_qp(a.context, a.pd, a.cq);
	far = make_qp(a.context, a.pd, a.cq);
	connect_qp(near, &a, far->qp_num);
	connect_qp(far, &a, near->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.bind_mw(near, mw, &bind));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, next_status(a.cq));
	answer = serve(destroying());
	TEST_ASSERT_EQUAL_INT(EBUSY, answer.error);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_MR_BOUND, answer.why.reason);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_mw(mw));
	TEST_ASSERT_EQUAL_INT(0, serve(destroying()).error);
}

/* --- both processes destroy --- */

static bool (*receive)(void *arg);
static pthread_t destroyer;
static unsigned int looks;

/* The importer's call comes between the two looks of a verb of this thread, and not before. */
static bool receive_at_second_look(void *arg)
{
	if (!pthread_equal(pthread_self(), destroyer) || ++looks != 2)
		return false;
	while (!receive(arg))
		;
	return true;
}

static void set_receive(bool (*function)(void *arg))
{
	struct driver_wires *wires = &context_of(a.context)->world->driver.wires;
	HOLD hold = world_hold(context_of(a.context)->world);

	(void)hold;
	looks = 0;
	destroyer = pthread_self();
	receive = wires->receive;
	wires->receive = function;
}

static void destroy_in_child(int parent, uint32_t handle)
{
	struct ibv_context *context = B.import_device(dup(a.context->cmd_fd));
	struct ibv_pd *theirs_pd = B.import_pd(context, a.pd->handle);
	struct ibv_mr *theirs_mr = B.import_mr(theirs_pd, handle);
	char byte;

	if (read(parent, &byte, 1) != 1)
		_exit(11);
	_exit(B.dereg_mr(theirs_mr) ? 12 : 0);
}

/* An importer destroys an MR while its own process does. */
void test_an_mr_that_both_processes_destroy(void)
{
	struct ibv_mr *both = B.reg_mr(a.pd, a.buffer, sizeof(a.buffer), ACCESS_ALL);
	int ends[2], status;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (!child)
		destroy_in_child(ends[0], both->handle);
	set_receive(receive_at_second_look);
	TEST_ASSERT_EQUAL_INT(1, write(ends[1], "x", 1));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(both));
	set_receive(receive);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	close(ends[0]);
	close(ends[1]);
}
