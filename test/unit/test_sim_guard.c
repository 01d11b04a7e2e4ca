/* SPDX-License-Identifier: MIT */
#include "src/guard/guard.h"
#include "unity.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t page;
static uint8_t *map; /* five pages; each test takes rights from some */

void setUp(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	map = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(map != MAP_FAILED);
}

void tearDown(void)
{
	munmap(map, 5 * page);
}

void test_copies_every_length_and_nothing_beside_it(void)
{
	uint8_t *from = map, *to = map + 2 * page + 7;

	for (size_t i = 0; i < page; i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (size_t n = 0; n <= page; n += n < 300 ? 1 : 61) {
		memset(to - 1, 0xee, page + 2);
		TEST_ASSERT_EQUAL_INT(0, guard_copy(to, from, n));
		TEST_ASSERT_EQUAL_INT(0, memcmp(to, from, n));
		TEST_ASSERT_EQUAL_HEX8(0xee, to[-1]);
		TEST_ASSERT_EQUAL_HEX8(0xee, to[n]);
	}
	TEST_ASSERT_EQUAL_INT(0, guard_copy(map + 2 * page, map, 2 * page));
}

#define FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* Of each count and alignment, and each word counts. */
void test_sums_words(void)
{
	for (size_t i = 0; i < page; i++)
		map[i] = (uint8_t)(i * 7 + 1);
	for (size_t count = 0; count < 20; count++)
		for (size_t at = 0; at < 9; at++) {
			uint64_t sum = 5, expected = 5, word;

			for (size_t i = 0; i < count; i++) {
				memcpy(&word, map + at + 8 * i, 8);
				expected = expected * FACTOR + word;
			}
			TEST_ASSERT_EQUAL_INT(0, guard_sum(&sum, map + at, count, FACTOR));
			TEST_ASSERT_EQUAL_HEX64(expected, sum);
		}
}

void test_a_sum_survives_unmapped_words(void)
{
	guard_install();
	munmap(map + page, page);
	for (size_t count = 1; count < 20; count++) {
		uint64_t sum = 5;

		TEST_ASSERT_NOT_EQUAL(0,
				      guard_sum(&sum, map + page - 8 * count + 1, count, FACTOR));
		TEST_ASSERT_EQUAL_HEX64(5, sum);
		TEST_ASSERT_EQUAL_INT(0, guard_sum(&sum, map + page - 8 * count, count, FACTOR));
	}
}

/*
 * CMocka installs its own handlers when a test begins, so that each test installs the guard's
 * again.
 */
static const size_t lengths[] = {1, 7, 8, 15, 16, 31, 32, 33, 64, 65, 200, 1024, 4096};

void test_survives_an_unmapped_source(void)
{
	guard_install();
	munmap(map + page, page);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		TEST_ASSERT_NOT_EQUAL(0, guard_copy(map + 2 * page, map + page, lengths[i]));
		if (lengths[i] > 1) /* only the last byte is beyond the end */
			TEST_ASSERT_NOT_EQUAL(0,
					      guard_copy(map + 2 * page,
							 map + page - lengths[i] + 1, lengths[i]));
	}
}

void test_survives_an_unmapped_destination(void)
{
	guard_install();
	munmap(map + page, page);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		TEST_ASSERT_NOT_EQUAL(0, guard_copy(map + page, map + 2 * page, lengths[i]));
		if (lengths[i] > 1)
			TEST_ASSERT_NOT_EQUAL(0, guard_copy(map + page - lengths[i] + 1,
							    map + 2 * page, lengths[i]));
	}
}

void test_survives_a_hole_in_the_middle(void)
{
	guard_install();
	mprotect(map + page, page, PROT_NONE);
	TEST_ASSERT_NOT_EQUAL(0, guard_copy(map, map + 2 * page, 2 * page));
	mprotect(map + 3 * page, page, PROT_NONE);
	mprotect(map + page, page, PROT_READ | PROT_WRITE);
	TEST_ASSERT_NOT_EQUAL(0, guard_copy(map, map + 2 * page, 2 * page));
}

void test_survives_a_read_only_destination(void)
{
	guard_install();
	mprotect(map, page, PROT_READ);
	TEST_ASSERT_NOT_EQUAL(0, guard_copy(map, map + page, 64));
	TEST_ASSERT_EQUAL_INT(0, guard_copy(map + page, map, 64));
}

void test_probe_tells_what_can_be_touched(void)
{
	map[10] = 0x5a;
	TEST_ASSERT_EQUAL_INT(0, guard_probe(map, 5 * page, true));
	TEST_ASSERT_EQUAL_HEX8(0x5a, map[10]);
	TEST_ASSERT_EQUAL_INT(0, guard_probe(NULL, 0, true));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(NULL, 1, false));
	mprotect(map + 2 * page, page, PROT_READ);
	TEST_ASSERT_EQUAL_INT(0, guard_probe(map, 5 * page, false));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(map, 5 * page, true));
	TEST_ASSERT_EQUAL_INT(0, guard_probe(map, 2 * page, true));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(map, 2 * page + 1, true));
	munmap(map + 2 * page, page);
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(map, 5 * page, false));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(map + 8, SIZE_MAX - 4096, false));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe((void *)(UINTPTR_MAX - 10), 11, false));
}

void test_probe_of_many_pages_reads_the_map(void)
{
	size_t bytes = 300 * page;
	uint8_t *many =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT_TRUE(many != MAP_FAILED);
	TEST_ASSERT_EQUAL_INT(0, guard_probe(many, bytes, true));
	mprotect(many + 150 * page, page, PROT_READ);
	TEST_ASSERT_EQUAL_INT(0, guard_probe(many, bytes, false));
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(many, bytes, true));
	munmap(many + 200 * page, page);
	TEST_ASSERT_EQUAL_INT(EFAULT, guard_probe(many, bytes, false));
	TEST_ASSERT_EQUAL_INT(0, guard_probe(many, 200 * page, false));
	munmap(many, bytes);
}

/* --- faults that are not the guard's, each in a process of its own --- */

static sigjmp_buf back;

static void jump_back(int number)
{
	siglongjmp(back, number);
}

static void leave(int number, siginfo_t *info, void *context)
{
	_exit(info->si_addr == (void *)8 ? 42 : 43);
}

/* Starts this program again, which has no handler yet; the environment says what it has to do. */
static int run_again(const char *what)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		setenv("GUARD_TEST", what, 1);
		execl("/proc/self/exe", "test_sim_guard", (char *)NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	return status;
}

/* A fault that no handler expects and no sanitizer reports. */
static void fault(void)
{
	__asm__ volatile("movb $1, 8" ::: "memory");
}

static void handler_before(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = leave;
	sigaction(SIGSEGV, &action, NULL);
	guard_install();
	if (guard_copy((void *)8, "x", 1) == 0)
		_exit(1);
	fault();
	_exit(2);
}

static void jump_before(void)
{
	signal(SIGSEGV, jump_back);
	guard_install();
	for (volatile int i = 0; i < 3; i++)
		if (!sigsetjmp(back, 1))
			fault();
	_exit(guard_copy((void *)8, "x", 1) ? 42 : 1);
}

/* A handler that is installed later, and passes every fault to the handler before it. */
static struct sigaction found;

static void pass_back(int number, siginfo_t *info, void *context)
{
	found.sa_sigaction(number, info, context);
}

static void handler_after(void)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO};

	action.sa_sigaction = leave;
	sigaction(SIGSEGV, &action, NULL);
	guard_install();
	action.sa_sigaction = pass_back;
	sigaction(SIGSEGV, &action, &found);
	if (guard_copy((void *)8, "x", 1) == 0)
		_exit(1);
	guard_install();
	if (guard_copy((void *)8, "x", 1) == 0)
		_exit(3);
	fault();
	_exit(2);
}

static void no_handler(void)
{
	signal(SIGSEGV, SIG_DFL);
	guard_install();
	fault();
	_exit(2);
}

static void no_handler_sent(void)
{
	signal(SIGSEGV, SIG_DFL);
	guard_install();
	kill(getpid(), SIGSEGV);
	for (;;)
		pause();
}

/* Runs before main(), when no handler is installed. */
__attribute__((constructor)) static void do_it(void)
{
	static const struct {
		const char *name;
		void (*act)(void);
	} acts[] = {
		{"handler", handler_before}, {"after", handler_after},	{"jump", jump_before},
		{"default", no_handler},     {"sent", no_handler_sent},
	};
	const char *what = getenv("GUARD_TEST");

	for (size_t i = 0; what && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(what, acts[i].name) == 0)
			acts[i].act();
}

void test_a_fault_elsewhere_reaches_the_handler_of_the_program(void)
{
	int status = run_again("handler");

	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(42, WEXITSTATUS(status));
}

void test_a_later_handler_may_pass_faults_back(void)
{
	int status = run_again("after");

	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(42, WEXITSTATUS(status));
}

void test_the_handler_of_the_program_may_jump_out(void)
{
	int status = run_again("jump");

	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(42, WEXITSTATUS(status));
}

void test_without_a_handler_a_fault_ends_the_program(void)
{
	int status = run_again("default");

	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_INT(SIGSEGV, WTERMSIG(status));
}

void test_without_a_handler_a_sent_signal_ends_the_program(void)
{
	int status = run_again("sent");

	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_INT(SIGSEGV, WTERMSIG(status));
}

/* --- files that become shorter --- */

/* Maps a new file of three pages. */
static uint8_t *map_file(int *fd)
{
	uint8_t *memory;

	*fd = memfd_create("file", MFD_CLOEXEC);
	TEST_ASSERT_GREATER_OR_EQUAL(0, *fd);
	TEST_ASSERT_EQUAL_INT(0, ftruncate(*fd, (off_t)(3 * page)));
	memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	TEST_ASSERT_TRUE(memory != MAP_FAILED);
	memset(memory, 7, 3 * page);
	return memory;
}

void test_a_mapping_of_a_file_that_becomes_shorter_has_zeros(void)
{
	int fd;
	volatile uint8_t *memory = map_file(&fd);
	uint8_t copy[16];

	guard_install();
	TEST_ASSERT_TRUE(guard_add_mapping((void *)memory, 3 * page));
	TEST_ASSERT_EQUAL_INT(0, ftruncate(fd, (off_t)page));
	/* The first page is in the file still. */
	TEST_ASSERT_EQUAL_UINT(7, memory[page - 1]);
	memory[2 * page] = 5;
	TEST_ASSERT_EQUAL_UINT(5, memory[2 * page]);
	TEST_ASSERT_EQUAL_UINT(0, memory[page]);
	TEST_ASSERT_EQUAL_UINT(0, memory[0]);
	TEST_ASSERT_EQUAL_INT(0, guard_copy(copy, (void *)memory, sizeof(copy)));
	guard_remove_mapping((void *)memory);
	munmap((void *)memory, 3 * page);
	close(fd);
}

/* More than one chunk of them; and one that was removed is a fault of its own again. */
void test_many_mappings_of_files_that_become_shorter(void)
{
	enum { COUNT = 200 };
	volatile uint8_t *memories[COUNT];
	int fds[COUNT], status;
	pid_t child;

	guard_install();
	for (unsigned int i = 0; i < COUNT; i++) {
		memories[i] = map_file(&fds[i]);
		TEST_ASSERT_TRUE(guard_add_mapping((void *)memories[i], 3 * page));
		TEST_ASSERT_EQUAL_INT(0, ftruncate(fds[i], 0));
	}
	for (unsigned int i = 0; i < COUNT - 1; i++)
		TEST_ASSERT_EQUAL_UINT(0, memories[i][page]);
	guard_remove_mapping((void *)memories[COUNT - 1]);
	child = fork();
	if (!child) {
		signal(SIGBUS, SIG_DFL);
		guard_install();
		_exit(memories[COUNT - 1][page]);
	}
	waitpid(child, &status, 0);
	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_INT(SIGBUS, WTERMSIG(status));
	for (unsigned int i = 0; i < COUNT; i++) {
		guard_remove_mapping((void *)memories[i]);
		munmap((void *)memories[i], 3 * page);
		close(fds[i]);
	}
}
