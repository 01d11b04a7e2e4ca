/* SPDX-License-Identifier: MIT */
/* The table of descriptors on the virtual clock, while threads fork: pthread_mutex_unlock() is the test's own (--wrap). */
#include "backends/sim/base/descriptor.h"
#include "unity.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FD	     100
#define HOLD_NS	     100000000
#define HANG_SECONDS 10
#define NS_PER_S     1000000000

static sem_t has_lock, forked;
static _Atomic bool lingers;
static int owner;

void setUp(void)
{
}

void tearDown(void)
{
}

/* Keeps the lock until the process has forked, or for HOLD_NS: fork() may wait for the lock. */
static void linger(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += HOLD_NS;
	until.tv_sec += until.tv_nsec / NS_PER_S;
	until.tv_nsec %= NS_PER_S;
	sem_post(&has_lock);
	sem_timedwait(&forked, &until);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (atomic_exchange(&lingers, false))
		linger();
	return __real_pthread_mutex_unlock(mutex);
}

static void *enter(void *arg)
{
	(void)arg;
	atomic_store(&lingers, true);
	return descriptor_enter(FD + 1, &owner) ? NULL : &owner;
}

void test_a_child_can_enter_a_descriptor_while_another_thread_does(void)
{
	pthread_t thread;
	void *entered;
	pid_t child;
	int status;

	TEST_ASSERT_EQUAL_INT(0, sem_init(&has_lock, 0, 0));
	TEST_ASSERT_EQUAL_INT(0, sem_init(&forked, 0, 0));
	TEST_ASSERT_EQUAL_INT(0, descriptor_enter(FD, &owner));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, enter, NULL));
	TEST_ASSERT_EQUAL_INT(0, sem_wait(&has_lock));
	child = fork();
	if (child == 0) {
		alarm(HANG_SECONDS);
		_exit(descriptor_enter(FD + 2, &owner) || descriptor_owner(FD) != &owner);
	}
	sem_post(&forked);
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &entered));
	TEST_ASSERT_EQUAL_PTR(&owner, entered);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, status, "the child hangs");
	descriptor_leave(FD);
	descriptor_leave(FD + 1);
}

void test_entries_stay_while_the_table_grows(void)
{
	static const int all[] = {3, 62, 64, 1000, 100000};
	const int count = sizeof(all) / sizeof(all[0]);

	for (int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_INT(0, descriptor_enter(all[i], (void *)&all[i]));
	for (int i = 0; i < count; i++) {
		TEST_ASSERT_EQUAL_PTR(&all[i], descriptor_owner(all[i]));
		TEST_ASSERT_NULL(descriptor_owner(all[i] - 1));
	}
	TEST_ASSERT_NULL(descriptor_owner(-1));
	TEST_ASSERT_NULL(descriptor_owner(INT_MAX));
	TEST_ASSERT_TRUE(descriptor_any());
	for (int i = 0; i < count; i++)
		descriptor_leave(all[i]);
	TEST_ASSERT_FALSE(descriptor_any());
	TEST_ASSERT_NULL(descriptor_owner(all[0]));
}
