/* SPDX-License-Identifier: MIT */
/* fork(2) while another thread is inside a verb that the checks watch. alarm(2) ends a child that hangs. */
#include "test/expect/expect.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <verbena/sim.h>

#define HANG_SECONDS 60
#define INSIDE_NS    200000000

static struct ibv_context *context;
static sem_t inside, forked;
static _Thread_local bool watched; /* set while the thread makes the first object that is watched */

/* The list of objects grows under the lock of the check: for long, or until the other thread has forked. */
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
	struct timespec until;

	if (watched) {
		watched = false;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += INSIDE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		sem_post(&inside);
		while (sem_timedwait(&forked, &until) && errno == EINTR)
			;
	}
	return __real_realloc(old, bytes);
}

void setUp(void)
{
	struct ibv_device **list;

	sem_init(&inside, 0, 0);
	sem_init(&forked, 0, 0);
	vb_expect_set_handler(keep_failure, NULL);
	list = vb_get_device_list("sim", NULL);
	TEST_ASSERT_NOT_NULL(list);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	TEST_ASSERT_NOT_NULL(context);
	/* The backend's lists have grown. */
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(vb_alloc_pd(context)));
	TEST_ASSERT_EQUAL_INT(0, vb_expect_begin());
}

void tearDown(void)
{
	vb_expect_end();
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
}

static void *make_pd(void *unused)
{
	(void)unused;
	watched = true;
	return vb_alloc_pd(context);
}

void test_a_child_has_the_locks_of_the_checks(void)
{
	pthread_t thread;
	void *pd;
	int status;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, make_pd, NULL));
	while (sem_wait(&inside))
		;
	child = fork();
	if (!child) {
		alarm(HANG_SECONDS);
		vb_expect_no_leaks();
		_exit(0);
	}
	sem_post(&forked);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &pd));
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd(pd));
}
