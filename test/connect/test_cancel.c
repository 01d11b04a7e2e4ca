/* SPDX-License-Identifier: MIT */
/* pthread_cancel(3) in the waits of <verbena/connect.h> and <verbena/channel.h>. */
#include "test/connect/connect.h"

#include <semaphore.h>
#include <unistd.h>

#define HANG_SECONDS 20

static struct node a, b;
static sem_t started;

void setUp(void)
{
	alarm(HANG_SECONDS);
	sem_init(&started, 0, 0);
	fresh_world(2, VB_SIM_CLOCK_REAL);
	node_open(&a, 0);
	node_open(&b, 1);
	join(&a, &b, NULL);
}

void tearDown(void)
{
	node_close(&a);
	node_close(&b);
	assert_nothing_left();
	sem_destroy(&started);
	alarm(0);
}

static void cancel_in(void *(*wait)(void *))
{
	pthread_t thread;
	void *end;

	OK(pthread_create(&thread, NULL, wait, NULL));
	sem_wait(&started);
	OK(pthread_cancel(thread));
	pthread_join(thread, &end);
	TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
}

static struct vb_work post(struct node *node, enum vb_operation operation, struct vb_scope *scope)
{
	const struct vb_slice piece = slice(node, 0, 64);
	const struct vb_request request = {
		.operation = operation, .slices = &piece, .slice_count = 1, .scope = scope};
	struct vb_work work = {0};

	OK(vb_channel_post(node->channel, &request, scope ? NULL : &work));
	return work;
}

static void *wait_for_cq(void *arg)
{
	struct ibv_wc wc;

	sem_post(&started);
	vb_cq_wait(vb_group_cq(a.group), &wc, 1, VB_FOREVER);
	return arg;
}

void test_the_wait_for_a_cq(void)
{
	struct vb_work received, sent;
	struct vb_result result;

	cancel_in(wait_for_cq);
	received = post(&b, VB_RECEIVE, NULL);
	sent = post(&a, VB_SEND, NULL);
	OK(vb_work_wait(sent, 10 * S, &result));
	OK(vb_work_wait(received, 10 * S, &result));
}

/* The scope is on the stack of the thread: afterwards nothing refers to it. */
static void *wait_for_scope(void *arg)
{
	struct vb_scope scope;

	vb_scope_begin(&scope, a.group);
	post(&a, VB_RECEIVE, &scope);
	sem_post(&started);
	vb_scope_end(&scope, VB_FOREVER);
	return arg;
}

void test_the_end_of_a_scope(void)
{
	cancel_in(wait_for_scope);
	TEST_ASSERT_EQUAL_UINT(0, vb_channel_pending(a.channel));
	/* tearDown() closes the channel: EBUSY if a scope holds a work of it. */
}
