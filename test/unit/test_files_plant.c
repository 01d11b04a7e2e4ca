/* SPDX-License-Identifier: MIT */
/*
 * The folder with the devices' files, while another process takes back what killed processes left: it may come
 * before each step that makes the new folder its maker's own. mkdir(), flock() and syscall() are the test's own
 * (--wrap).
 */
#include "src/files/content.h"
#include "src/files/plant.h"
#include "src/files/remove.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char parent[64], wanted[128], fresh[160];

/* What the other process does after mkdir(), or before a lock, while `rounds` is not 0. */
enum place { AFTER_MKDIR, BEFORE_FLOCK, BEFORE_SYSCALL };
static void (*meddle)(void);
static enum place where;
static unsigned int rounds;

static void come(enum place now)
{
	if (where != now || !rounds)
		return;
	rounds--;
	meddle();
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
	const int status = __real_mkdir(path, mode), err = errno;

	come(AFTER_MKDIR);
	errno = err;
	return status;
}

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	come(BEFORE_FLOCK);
	return __real_flock(fd, operation);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long words[5];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_flock)
		come(BEFORE_SYSCALL);
	return __real_syscall(number, words[0], words[1], words[2], words[3], words[4]);
}

void setUp(void)
{
	strcpy(parent, "/tmp/verbena-test-plant-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(parent));
	snprintf(wanted, sizeof(wanted), "%s/files", parent);
	snprintf(fresh, sizeof(fresh), "%s.%d", wanted, (int)getpid());
	rounds = 0;
}

void tearDown(void)
{
	char command[128];

	rounds = 0;
	snprintf(command, sizeof(command), "rm -r %s", parent);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

/* Has `act` done so many times at a place. */
static void let(enum place at, unsigned int times, void (*act)(void))
{
	where = at;
	rounds = times;
	meddle = act;
}

/* With the files that a machine without adapters has. */
static int plant(void)
{
	struct ibv_device *none = NULL;

	return files_plant(wanted, &none);
}

static bool has_files(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/sys/class/infiniband_verbs/abi_version", wanted);
	return access(path, R_OK) == 0;
}

/* Returns true if the parent has the wanted folder only. */
static bool is_alone(void)
{
	char command[256];

	snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = files", parent);
	return system(command) == 0;
}

static void take_back_fresh(void)
{
	files_take_back(fresh);
}

void test_removed_before_it_was_opened(void)
{
	let(AFTER_MKDIR, 3, take_back_fresh);
	TEST_ASSERT_EQUAL_INT(0, plant());
	TEST_ASSERT_EQUAL_UINT(0, rounds);
	TEST_ASSERT_TRUE(has_files());
	TEST_ASSERT_TRUE(is_alone());
}

void test_removed_before_it_was_locked(void)
{
	let(BEFORE_FLOCK, 3, take_back_fresh);
	TEST_ASSERT_EQUAL_INT(0, plant());
	TEST_ASSERT_EQUAL_UINT(0, rounds);
	TEST_ASSERT_TRUE(has_files());
	TEST_ASSERT_TRUE(is_alone());
}

/* A process of the same number was killed while it made its folder. */
void test_folder_of_a_killed_process(void)
{
	TEST_ASSERT_EQUAL_INT(0, mkdir(fresh, 0755));
	TEST_ASSERT_EQUAL_INT(0, plant());
	TEST_ASSERT_TRUE(has_files());
	TEST_ASSERT_TRUE(is_alone());
}

/* Another process removes the folder, and a third one makes it anew. */
static void replace(void)
{
	files_remove(wanted);
	TEST_ASSERT_EQUAL_INT(0, plant());
}

void test_a_new_folder_of_the_same_name_stays(void)
{
	TEST_ASSERT_EQUAL_INT(0, plant());
	let(BEFORE_SYSCALL, 1, replace);
	files_take_back(wanted);
	TEST_ASSERT_EQUAL_UINT(0, rounds);
	TEST_ASSERT_TRUE(has_files());
	files_take_back(wanted);
	TEST_ASSERT_FALSE(has_files());
}

/* Another program keeps the new folder locked: each attempt takes 1 ms, which the test does not wait. */
int __wrap_nanosleep(const struct timespec *duration, struct timespec *left);
int __wrap_nanosleep(const struct timespec *duration, struct timespec *left)
{
	(void)duration;
	(void)left;
	return 0;
}

static int other;

static void lock_fresh(void)
{
	other = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT(0, flock(other, LOCK_EX));
}

void test_a_lock_that_another_program_keeps_is_an_error(void)
{
	let(AFTER_MKDIR, 1, lock_fresh);
	TEST_ASSERT_EQUAL_INT(EBUSY, plant());
	close(other);
	TEST_ASSERT_NOT_EQUAL(0, access(fresh, F_OK));
}

void test_a_locked_folder_stays(void)
{
	int fd;

	TEST_ASSERT_EQUAL_INT(0, plant());
	fd = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	TEST_ASSERT_EQUAL_INT(0, flock(fd, LOCK_SH));
	files_take_back(wanted);
	TEST_ASSERT_TRUE(has_files());
	TEST_ASSERT_EQUAL_INT(EEXIST, plant());
	close(fd);
	files_take_back(wanted);
	TEST_ASSERT_FALSE(has_files());
}
