/* SPDX-License-Identifier: MIT */
/*
 * Files of a trace that another process removes, replaces or begins to write between two steps of this one: fcntl(),
 * rename() and unlink() are the test's own (--wrap).
 */
#include "backends/sim/capture/pcapfile.h"
#include "src/parts/merge.h"
#include "src/parts/part.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], whole[PART_NAME_BYTES];

/* What the other process does before a lock, while `rounds` is not 0. */
static void (*meddle)(int fd);
static unsigned int rounds, locks;

/* What the other process does before the next unlink(), and after the next rename() to the name of the whole file. */
static void (*before_unlink)(const char *path), (*after_rename)(void);

int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_OFD_SETLK && ((struct flock *)argument)->l_type == F_WRLCK) {
		locks++;
		if (rounds && rounds--)
			meddle(fd);
	}
	return __real_fcntl64(fd, command, argument);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	void (*act)(const char *) = before_unlink;

	before_unlink = NULL;
	if (act)
		act(path);
	return __real_unlink(path);
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	const int status = __real_rename(from, to);

	void (*act)(void) = after_rename;

	if (act && strcmp(to, whole) == 0) {
		after_rename = NULL;
		act();
	}
	return status;
}

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-lock-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(whole, sizeof(whole), "%s/t.pcap", folder);
	locks = 0;
}

void tearDown(void)
{
	char command[128];

	rounds = 0;
	before_unlink = NULL;
	after_rename = NULL;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void make_file(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
}

/* The path of an open file, before somebody removes the file. */
static const char *path_of(int fd)
{
	static char path[256];
	char link[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	TEST_ASSERT_GREATER_THAN(0, length);
	path[length] = '\0';
	return path;
}

static void remove_file(int fd)
{
	TEST_ASSERT_EQUAL_INT(0, unlink(path_of(fd)));
}

static void replace_file(int fd)
{
	const char *path = path_of(fd);

	TEST_ASSERT_EQUAL_INT(0, unlink(path));
	make_file(path);
}

static void expect_at(int fd, const char *path)
{
	struct stat open_file, there;

	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &open_file));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, stat(path, &there), "the file is gone");
	TEST_ASSERT_TRUE_MESSAGE(open_file.st_ino == there.st_ino, "another file is there");
}

void test_a_file_that_is_replaced_before_it_is_locked(void)
{
	int fd;

	make_file(whole);
	meddle = replace_file;
	rounds = 3;
	fd = part_lock(whole, 0);
	expect_at(fd, whole);
	TEST_ASSERT_EQUAL_UINT(4, locks);
	close(fd);
}

void test_a_file_that_is_removed_before_it_is_locked(void)
{
	make_file(whole);
	meddle = remove_file;
	rounds = 1;
	TEST_ASSERT_EQUAL_INT(-1, part_lock(whole, 0));
	TEST_ASSERT_EQUAL_INT(ENOENT, errno);
}

/* The process that has the file joined the parts and replaced the file by the whole: a new run begins. */
void test_a_trace_that_is_replaced_before_it_is_locked(void)
{
	static void (*const ways[])(int fd) = {replace_file, remove_file};

	for (unsigned int i = 0; i < 2; i++) {
		struct part part;

		meddle = ways[i];
		rounds = 3;
		TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &part));
		expect_at(part.fd, whole);
		TEST_ASSERT_EQUAL_STRING(whole, part.name);
		close(part.fd);
	}
}

/* Who reads the parts takes one that is not locked for a finished one, and removes it. */
void test_a_part_that_is_removed_before_it_is_locked(void)
{
	struct part part;

	meddle = remove_file;
	rounds = 2;
	TEST_ASSERT_EQUAL_INT(0, part_open_beside(whole, O_RDWR, &part));
	expect_at(part.fd, part.name);
	TEST_ASSERT_EQUAL_UINT(3, locks);
	close(part.fd);
}

/* --- two processes that begin at the same time --- */

/* The process that finds NAME locked has made its part, and has not locked it yet. */
static char late_part[PART_NAME_BYTES + 16];
static int late;

static void make_late_part(void)
{
	snprintf(late_part, sizeof(late_part), "%s.1.part", whole);
	late = open(late_part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	TEST_ASSERT_GREATER_OR_EQUAL(0, late);
}

/* Returns true if the process now writes the part. */
static bool lock_late(void)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = INT64_C(1) << 62, .l_len = 1};

	return __real_fcntl64(late, F_OFD_SETLK, &lock) == 0;
}

/* It locks the part as soon as it can, and then writes the part if it is still there. */
static void lock_late_part(const char *path)
{
	TEST_ASSERT_EQUAL_STRING(late_part, path);
	if (lock_late())
		TEST_FAIL_MESSAGE("a process writes a part that is about to be removed");
}

void test_a_part_is_locked_before_it_is_removed(void)
{
	struct part part;

	make_late_part();
	before_unlink = lock_late_part;
	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &part));
	TEST_ASSERT_NULL(before_unlink);
	TEST_ASSERT_EQUAL_STRING(whole, part.name);
	/* It then sees that the part is gone, and makes another one. */
	TEST_ASSERT_TRUE(lock_late());
	TEST_ASSERT_NOT_EQUAL(0, access(late_part, F_OK));
	close(late);
	close(part.fd);
}

/* Locks the part when this process has seen that nobody writes it: before its second lock. */
static void lock_late_at_second(int fd)
{
	(void)fd;
	if (locks == 2)
		TEST_ASSERT_TRUE(lock_late());
}

void test_a_part_that_is_locked_before_it_is_removed_stays(void)
{
	struct part part;

	make_late_part();
	meddle = lock_late_at_second;
	rounds = 2;
	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &part));
	TEST_ASSERT_EQUAL_STRING(whole, part.name);
	expect_at(late, late_part);
	close(late);
	close(part.fd);
}

/* --- a file that is another one at each look, as on some file systems --- */

void test_a_file_that_is_replaced_for_ever_is_given_up(void)
{
	struct part part;

	make_file(whole);
	meddle = replace_file;
	rounds = UINT_MAX;
	TEST_ASSERT_EQUAL_INT(-1, part_lock(whole, 0));
	TEST_ASSERT_EQUAL_INT(ESTALE, errno);
	TEST_ASSERT_EQUAL_INT(ESTALE, part_open(whole, O_RDWR, -1, &part));
}

/* --- joins --- */

static unsigned int joins;

static void expect_locked(void)
{
	joins++;
	TEST_ASSERT_EQUAL_INT(-1, part_lock(whole, 0));
	TEST_ASSERT_EQUAL_INT(EWOULDBLOCK, errno);
}

/* A run that begins, and a join that begins, would take what is left of this join for their own. */
void test_the_new_file_is_locked_until_the_join_has_ended(void)
{
	char error[256] = "";
	struct pcapfile *first = pcapfile_open(whole, false, NULL, error, sizeof(error));
	struct pcapfile *second = pcapfile_open(whole, false, NULL, error, sizeof(error));
	int fd;

	TEST_ASSERT_NOT_NULL_MESSAGE(first, error);
	TEST_ASSERT_NOT_NULL_MESSAGE(second, error);
	pcapfile_close(first);
	joins = 0;
	after_rename = expect_locked;
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(second));
	TEST_ASSERT_EQUAL_UINT(1, joins);
	fd = part_lock(whole, 0);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
}

static struct pcapfile *last;

static void end_last(void)
{
	struct pcapfile *file = last;

	last = NULL;
	pcapfile_close(file);
}

/* The last process ends while `verbena trace merge` joins: it finds the file locked, and leaves its part to who has the
 * lock. */
void test_a_process_that_ends_during_a_join_leaves_no_part(void)
{
	char error[256] = "", sentence[MERGE_SENTENCE_BYTES], command[128];
	struct pcapfile *files[3];

	for (unsigned int i = 0; i < 3; i++) {
		files[i] = pcapfile_open(whole, false, NULL, error, sizeof(error));
		TEST_ASSERT_NOT_NULL_MESSAGE(files[i], error);
	}
	pcapfile_close(files[0]);
	pcapfile_close(files[1]);
	last = files[2];
	after_rename = end_last;
	TEST_ASSERT_EQUAL_INT(0, merge_parts(whole, sentence));
	snprintf(command, sizeof(command), "test \"$(ls %s)\" = t.pcap", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}
