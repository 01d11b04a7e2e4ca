/* SPDX-License-Identifier: MIT */
/*
 * The report at exit(3), also from a thread that is inside a verb. Each test forks a process; alarm(2) ends one that
 * hangs.
 */
#include "backends/sim/world/process.h"
#include "src/explain/report.h"
#include "unity.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define HANG_SECONDS 60
#define STATUS	     7
#define LONG_STATUS  8

static bool
	inside; /* set while the thread that calls exit(3) is inside a verb: no wait can succeed */

static char path[64];
static char lines[8192];

/* The report waits by poll(2). */
int __real_poll(struct pollfd *fds, nfds_t count, int time_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int time_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int time_ms)
{
	return __real_poll(fds, count, inside ? 0 : time_ms);
}

/* After the report, no lock is waited for in vain for a second or more. */
int __real_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (inside && until->tv_sec > now.tv_sec + 1)
		_exit(LONG_STATUS);
	return __real_pthread_mutex_timedlock(mutex, until);
}

void setUp(void)
{
	int fd;

	strcpy(path, "/tmp/verbena-test-report-XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_GREATER_OR_EQUAL(0, fd);
	close(fd);
}

void tearDown(void)
{
	unlink(path);
}

static void exit_outside(void)
{
	exit(STATUS);
}

static void exit_on_signal(int number)
{
	(void)number;
	exit(STATUS); /* NOLINT(bugprone-signal-handler): programs do so */
}

/* As in a verb, the thread has the world's lock. */
static void exit_inside(void)
{
	HOLD hold = process_hold(NULL);

	(void)hold;
	inside = true;
	signal(SIGUSR1, exit_on_signal);
	raise(SIGUSR1);
}

/* In a process that leaves a PD. */
static void report_and(void (*leave)(void))
{
	struct ibv_device **list = vb_get_device_list("sim", NULL);
	struct ibv_context *context = list ? vb_open_device(list[0]) : NULL;
	struct sink sink;

	if (!context || !vb_alloc_pd(context) || !sink_init(&sink, path))
		_exit(1);
	report_start(&sink);
	atexit(report_at_exit); /* in the library, a destructor calls it */
	leave();
}

static void read_lines(void)
{
	FILE *file = fopen(path, "r");

	TEST_ASSERT_NOT_NULL(file);
	lines[fread(lines, 1, sizeof(lines) - 1, file)] = '\0';
	fclose(file);
}

static void expect_status(void (*leave)(void))
{
	int status;
	pid_t child = fork();

	TEST_ASSERT_GREATER_OR_EQUAL(0, child);
	if (!child) {
		alarm(HANG_SECONDS);
		report_and(leave);
		_exit(1);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(STATUS, WEXITSTATUS(status));
}

static void expect_line(void (*leave)(void), const char *words)
{
	expect_status(leave);
	read_lines();
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(lines, words), lines);
}

void test_exit_outside_verbs(void)
{
	expect_line(exit_outside, "PD");
	TEST_ASSERT_NULL(strstr(lines, "there is none"));
}

void test_exit_inside_a_verb(void)
{
	expect_line(exit_inside, "there is none: a thread is inside a verb");
}

/* The report goes to standard error then. */
void test_a_pipe_that_nobody_reads_does_not_hang(void)
{
	TEST_ASSERT_EQUAL_INT(0, unlink(path));
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	expect_status(exit_outside);
}
