/* SPDX-License-Identifier: MIT */
/* Memory regions: permissions, keys, and buffers that belong to works. */
#include "test/connect/connect.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct node a, b;

void setUp(void)
{
	setenv("VERBENA_CHECKED", "1", 1);
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	node_open(&a, 0);
	node_open(&b, 1);
	join(&a, &b, NULL);
}

void tearDown(void)
{
	node_close(&a);
	node_close(&b);
	assert_nothing_left();
	unsetenv("VERBENA_CHECKED");
}

void test_an_allocated_region_is_zeroed_and_begins_at_a_page(void)
{
	TEST_ASSERT_EQUAL_UINT64(0, (uintptr_t)a.region->addr % (size_t)sysconf(_SC_PAGESIZE));
	TEST_ASSERT_EQUAL_UINT64(REGION_BYTES, a.region->length_bytes);
	for (size_t i = 0; i < REGION_BYTES; i++)
		TEST_ASSERT_EQUAL_UINT8(0, *bytes(&a, i));
}

/* RDMA requests carry addresses: a region that the kernel places anew in each process would change
 * the bytes of a trace. ThreadSanitizer keeps these places for itself. */
void test_the_place_of_a_region_is_the_same_in_each_process(void)
{
#ifndef __SANITIZE_THREAD__
	TEST_ASSERT_EQUAL_HEX64(0x22, (uintptr_t)a.region->addr >> 40);
	TEST_ASSERT_EQUAL_HEX64(0x22, (uintptr_t)b.region->addr >> 40);
#endif
}

/* Each of the four kinds of access succeeds. */
void test_the_default_permissions_allow_everything(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_remote to = remote(&b, 64, 8);
	struct vb_work work;

	OK(vb_channel_write(a.channel, &from, &to, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	OK(vb_channel_read(a.channel, &from, &to, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	OK(vb_channel_fetch_add(a.channel, &from, &to, 1, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_UINT64(1, *(uint64_t *)bytes(&b, 64));
}

void test_fewer_permissions(void)
{
	struct vb_region *closed =
		vb_region_alloc(b.device, vb_group_pd(b.group), 4096, IBV_ACCESS_LOCAL_WRITE);
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_result result;
	struct vb_remote to;
	struct vb_work work;

	HAVE(closed);
	OK(vb_region_remote(closed, 0, 8, &to));
	OK(vb_channel_write(a.channel, &from, &to, &work));
	FAILS(EIO, vb_work_wait(work, VB_FOREVER, &result));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, result.status);
	OK(vb_region_free(closed));
}

void test_registered_memory(void)
{
	static char mine[64] = "mine";
	struct vb_region *region = vb_group_register(b.group, mine, sizeof(mine));
	struct vb_slice into = slice(&a, 0, 64);
	struct vb_remote from;
	struct vb_work work;

	HAVE(region);
	TEST_ASSERT_FALSE(region->checked);
	OK(vb_region_remote(region, 0, 64, &from));
	OK(vb_channel_read(a.channel, &into, &from, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_STRING("mine", a.region->addr);
	OK(vb_region_free(region));
}

void test_invalid_lengths_and_addresses(void)
{
	struct ibv_pd *pd = vb_group_pd(a.group);

	TEST_ASSERT_NULL(vb_region_alloc(a.device, pd, 0, VB_ACCESS_DEFAULT));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(vb_region_alloc(a.device, pd, SIZE_MAX, VB_ACCESS_DEFAULT));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_NULL(vb_region_register(a.device, pd, NULL, 64, VB_ACCESS_DEFAULT));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	/* Remote write without local write: man ibv_reg_mr(3). */
	TEST_ASSERT_NULL(vb_region_alloc(a.device, pd, 64, IBV_ACCESS_REMOTE_WRITE));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("invalid input: region of 64 bytes, access 0x2: ");
}

void test_keys_of_parts(void)
{
	struct vb_remote key;

	OK(vb_region_remote(a.region, 100, 50, &key));
	TEST_ASSERT_EQUAL_UINT64((uintptr_t)a.region->addr + 100, key.addr);
	TEST_ASSERT_EQUAL_UINT64(50, key.length_bytes);
	TEST_ASSERT_EQUAL_UINT(a.region->mr->rkey, key.rkey);
	FAILS(EINVAL, vb_region_remote(a.region, 0, REGION_BYTES + 1, &key));
	FAILS(EINVAL, vb_region_remote(a.region, REGION_BYTES + 1, 0, &key));
	FAILS(EINVAL, vb_region_remote(a.region, 8, SIZE_MAX, &key));
}

void test_a_region_is_not_freed_under_work(void)
{
	struct vb_slice into = slice(&b, 0, 64), from = slice(&a, 0, 64);
	struct vb_work sent, received;

	OK(vb_channel_receive(b.channel, &into, &received));
	FAILS(EBUSY, vb_region_free(b.region));
	assert_says("1 buffers");
	OK(vb_channel_send(a.channel, &from, &sent));
	OK(vb_work_wait(received, VB_FOREVER, NULL));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
}

/* --- touching --- */

/* Runs the access in a child process and returns how the child ended. */
static int child_status(void (*touch)(uint8_t *at), uint8_t *at)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(99);
		touch(at);
		_exit(0);
	}
	TEST_ASSERT_TRUE(child > 0);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	return status;
}

static void read_it(uint8_t *at)
{
	(void)*(volatile uint8_t *)at;
}

static void write_it(uint8_t *at)
{
	*(volatile uint8_t *)at = 1;
}

/* Returns true if the child died, by a signal or by AddressSanitizer. */
static void caught(void (*touch)(uint8_t *at), uint8_t *at)
{
	TEST_ASSERT_TRUE(child_status(touch, at) != 0);
}

static void let_be(void (*touch)(uint8_t *at), uint8_t *at)
{
	TEST_ASSERT_EQUAL_INT(0, child_status(touch, at));
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

void test_a_receive_buffer_is_closed_until_its_end(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct vb_slice into = slice(&b, page, (uint32_t)page * 2), from = slice(&a, 0, 64);
	struct vb_work sent, received;

	if (!b.region->checked)
		TEST_IGNORE_MESSAGE("this kernel has no memfd");
	OK(vb_channel_receive(b.channel, &into, &received));
	caught(read_it, bytes(&b, page));
	caught(write_it, bytes(&b, page * 3 - 1));
	let_be(write_it, bytes(&b, page - 1));
	let_be(write_it, bytes(&b, page * 3));
	memcpy(bytes(&a, 0), "word", 5);
	OK(vb_channel_send(a.channel, &from, &sent));
	OK(vb_work_wait(received, VB_FOREVER, NULL));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_STRING("word", (char *)bytes(&b, page));
	let_be(write_it, bytes(&b, page));
}

void test_a_send_buffer_can_be_read_and_not_written_until_its_end(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct vb_slice into = slice(&b, 0, (uint32_t)page), from = slice(&a, 0, (uint32_t)page);
	struct vb_work sent, received;

	if (!a.region->checked)
		TEST_IGNORE_MESSAGE("this kernel has no memfd");
	OK(vb_channel_receive(b.channel, &into, &received));
	OK(vb_channel_send(a.channel, &from, &sent));
	let_be(read_it, bytes(&a, 10));
	caught(write_it, bytes(&a, 10));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
	let_be(write_it, bytes(&a, 10));
	OK(vb_work_wait(received, VB_FOREVER, NULL));
}

/* A page with two works opens when the last work ends. */
void test_a_page_opens_with_its_last_work(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct vb_slice into = slice(&b, 0, (uint32_t)page), from = slice(&a, 0, (uint32_t)page);
	struct vb_work sent[2], received[2];

	if (!a.region->checked)
		TEST_IGNORE_MESSAGE("this kernel has no memfd");
	OK(vb_channel_send(a.channel, &from, &sent[0]));
	OK(vb_channel_send(a.channel, &from, &sent[1]));
	OK(vb_channel_receive(b.channel, &into, &received[0]));
	OK(vb_work_wait(sent[0], VB_FOREVER, NULL));
	caught(write_it, bytes(&a, 10));
	into.offset_bytes = page;
	OK(vb_channel_receive(b.channel, &into, &received[1]));
	OK(vb_work_wait(sent[1], VB_FOREVER, NULL));
	let_be(write_it, bytes(&a, 10));
	OK(vb_work_wait_all(received, 2, VB_FOREVER, NULL));
}

/* AddressSanitizer alone sees a buffer below a page; the rest of its page is never closed. */
void test_a_small_buffer_under_the_sanitizer(void)
{
	struct vb_slice into = slice(&b, 64, 64), from = slice(&a, 0, 64);
	struct vb_work sent, received;

	OK(vb_channel_receive(b.channel, &into, &received));
	let_be(write_it, bytes(&b, 63));
	let_be(write_it, bytes(&b, 128));
	if (SANITIZED)
		caught(read_it, bytes(&b, 64));
	else
		let_be(read_it, bytes(&b, 64));
	OK(vb_channel_send(a.channel, &from, &sent));
	OK(vb_work_wait(received, VB_FOREVER, NULL));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
	let_be(read_it, bytes(&b, 64));
}

/* A buffer that reaches the end of the region closes the last page as a whole. */
void test_a_buffer_to_the_end_of_a_region(void)
{
	struct vb_region *odd = vb_group_alloc(b.group, 100);
	struct vb_slice into = {odd, 0, 100}, from = slice(&a, 0, 64);
	struct vb_work sent, received;

	HAVE(odd);
	if (!odd->checked)
		TEST_IGNORE_MESSAGE("this kernel has no memfd");
	OK(vb_channel_receive(b.channel, &into, &received));
	caught(read_it, odd->addr);
	OK(vb_channel_send(a.channel, &from, &sent));
	OK(vb_work_wait(received, VB_FOREVER, NULL));
	OK(vb_work_wait(sent, VB_FOREVER, NULL));
	let_be(read_it, odd->addr);
	OK(vb_region_free(odd));
}

void test_a_refused_work_holds_nothing(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct vb_slice into = slice(&b, 0, (uint32_t)page);
	struct vb_work works[17];
	int posted = 0;

	/* The receive queue may be longer than requested; the channel has room for its works
	 * only. */
	while (!vb_channel_receive(b.channel, &into, &works[posted % 17]))
		posted++;
	TEST_ASSERT_TRUE(posted >= 16);
	OK(vb_channel_close(b.channel));
	b.channel = NULL;
	let_be(write_it, bytes(&b, 0));
}

void test_without_the_wish_a_region_is_checked_under_the_sanitizer_only(void)
{
	struct vb_region *plain;

	setenv("VERBENA_CHECKED", "0", 1);
	plain = vb_group_alloc(a.group, 100);
	HAVE(plain);
	TEST_ASSERT_EQUAL_INT(SANITIZED, plain->checked);
	OK(vb_region_free(plain));
}
