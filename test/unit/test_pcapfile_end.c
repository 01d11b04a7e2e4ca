/* SPDX-License-Identifier: MIT */
/*
 * How processes end that have a trace open. pcapfile installs its handlers at a process' first
 * open; so only children open files here, and each of them is the first.
 */
#include "test/support/capture.h"
#include "unity.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES	     500
#define BEHIND_BYTES 65536

void setUp(void)
{
	capture_begin();
}

void tearDown(void)
{
	capture_end();
}

/* Runs end in a child that has opened the file and added FRAMES frames; its wait status. */
static int in_child(void (*end)(struct pcapfile *file))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		const struct rlimit no_core = {0, 0};
		struct pcapfile *file;

		setrlimit(RLIMIT_CORE, &no_core);
		/* The runner has handlers of its own for these. */
		signal(SIGSEGV, SIG_DFL);
		file = capture_open();
		if (!file)
			_exit(99);
		capture_add(file, 0, FRAMES);
		end(file);
		_exit(98);
	}
	TEST_ASSERT_TRUE(child > 0);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	return status;
}

static void end_exit(struct pcapfile *file)
{
	(void)file;
	exit(0);
}

static void end_abort(struct pcapfile *file)
{
	(void)file;
	abort();
}

/* A page that cannot be written: a real fault, and no pointer that a sanitizer objects to. */
static volatile char *no_access(void)
{
	return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void end_fault(struct pcapfile *file)
{
	(void)file;
	*no_access() = 1;
}

static void end_term(struct pcapfile *file)
{
	(void)file;
	kill(getpid(), SIGTERM);
}

static void end_interrupt(struct pcapfile *file)
{
	(void)file;
	kill(getpid(), SIGINT);
}

static void end_kill(struct pcapfile *file)
{
	(void)file;
	kill(getpid(), SIGKILL);
}

static void check_signal(void (*end)(struct pcapfile *), int number)
{
	const int status = in_child(end);

	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_INT(number, WTERMSIG(status));
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

void test_pcapfile_end_exit_loses_nothing(void)
{
	const int status = in_child(end_exit);

	TEST_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

void test_pcapfile_end_abort_loses_nothing(void)
{
	check_signal(end_abort, SIGABRT);
}

void test_pcapfile_end_fault_loses_nothing(void)
{
	check_signal(end_fault, SIGSEGV);
}

void test_pcapfile_end_sigterm_loses_nothing(void)
{
	check_signal(end_term, SIGTERM);
}

void test_pcapfile_end_sigint_loses_nothing(void)
{
	check_signal(end_interrupt, SIGINT);
}

void test_pcapfile_end_sigkill_loses_at_most_64_kib(void)
{
	const int status = in_child(end_kill);
	size_t lost_bytes = 0;

	TEST_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	for (unsigned int i = capture_read_back(); i < FRAMES; i++)
		lost_bytes += 16 + capture_frame_bytes(i);
	TEST_ASSERT_TRUE(lost_bytes > 0);
	TEST_ASSERT_TRUE(lost_bytes <= BEHIND_BYTES);
}

/*
 * SIGKILL at any moment, in the middle of a write too, leaves whole records. The pipe ends when
 * the child and the process that writes for it are both gone.
 */
static void kill_while_it_writes(off_t at_bytes)
{
	struct stat size = {0};
	int alive[2];
	char byte;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, truncate(capture_path, 0));
	TEST_ASSERT_EQUAL_INT(0, pipe(alive));
	child = fork();
	if (child == 0) {
		struct pcapfile *file = capture_open();

		for (unsigned int i = 0;; i++)
			capture_add(file, i, 1);
	}
	close(alive[1]);
	while (size.st_size < at_bytes)
		TEST_ASSERT_EQUAL_INT(0, stat(capture_path, &size));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, read(alive[0], &byte, 1));
	close(alive[0]);
	TEST_ASSERT_TRUE(capture_read_back() > 0);
}

void test_pcapfile_end_sigkill_at_any_moment_cuts_no_record(void)
{
	for (off_t at_bytes = 1000; at_bytes < 8000000; at_bytes += 400000)
		kill_while_it_writes(at_bytes);
}

/* A program that catches SIGTERM itself, before it opens a trace, keeps its handler. */
static void on_term(int number)
{
	(void)number;
	_exit(42);
}

/* A guard, as around a copy from memory that may be gone: the fault is not the end. */
static sigjmp_buf guard;

static void on_guarded_fault(int number)
{
	(void)number;
	siglongjmp(guard, 1);
}

void test_pcapfile_end_earlier_handlers_are_called(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		volatile char *nowhere = no_access();
		struct pcapfile *file;

		signal(SIGTERM, on_term);
		signal(SIGSEGV, on_guarded_fault);
		file = capture_open();
		for (volatile unsigned int i = 0; i < FRAMES; i += 100) {
			capture_add(file, i, 100);
			if (!sigsetjmp(guard, 1))
				*nowhere = 1;
		}
		pcapfile_flush(file);
		kill(getpid(), SIGTERM);
		_exit(98);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(42, WEXITSTATUS(status));
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

/* A grandchild that exits with its parent's trace open leaves it alone. */
static void end_after_fork(struct pcapfile *file)
{
	pid_t child = fork();

	if (child == 0) {
		capture_add(file, 7, 100);
		pcapfile_close(file);
		exit(0);
	}
	waitpid(child, NULL, 0);
	exit(0);
}

void test_pcapfile_end_fork_writes_nothing(void)
{
	in_child(end_after_fork);
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

/*
 * A file size limit stands in for a full disk: the write comes back short. The child reports what
 * it saw through its status, and its stderr is kept.
 */
void test_pcapfile_end_full_disk_keeps_whole_records(void)
{
	char said[sizeof(capture_path) + 8];
	char text[512] = "";
	struct stat size;
	pid_t child;
	FILE *stream;
	int status;

	snprintf(said, sizeof(said), "%s.said", capture_path);
	child = fork();
	if (child == 0) {
		const struct rlimit limit = {100000, 100000};
		struct pcapfile *file;

		if (!freopen(said, "w", stderr) || setrlimit(RLIMIT_FSIZE, &limit))
			_exit(97);
		file = capture_open();
		capture_add(file, 0, 3 * FRAMES);
		if (!pcapfile_failed(file))
			_exit(96);
		pcapfile_close(file);
		exit(0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	stream = fopen(said, "r");
	TEST_ASSERT_NOT_NULL(stream);
	text[fread(text, 1, sizeof(text) - 1, stream)] = 0;
	fclose(stream);
	unlink(said);

	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	TEST_ASSERT_NOT_NULL(strstr(text, capture_path));
	TEST_ASSERT_NOT_NULL(strstr(text, "File too large"));
	TEST_ASSERT_EQUAL_PTR(text + strlen(text) - 1, strchr(text, '\n')); /* one line */
	TEST_ASSERT_TRUE(capture_read_back() > 0);
	TEST_ASSERT_EQUAL_INT(0, stat(capture_path, &size));
	TEST_ASSERT_TRUE(size.st_size > 100000 - 4200 && size.st_size <= 100000);
}
