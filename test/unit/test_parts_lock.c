/* SPDX-License-Identifier: MIT */
/*
 * Files of a trace that another process removes or replaces after this one has opened and before it has
 * locked them: flock() is the test's own (--wrap).
 */
#include "src/parts/part.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], whole[PART_NAME_BYTES];

/* What the other process does before a lock, while `rounds` is not 0. */
static void (*meddle)(int fd);
static unsigned int rounds, locks;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	locks++;
	if (rounds && rounds--)
		meddle(fd);
	return __real_flock(fd, operation);
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
