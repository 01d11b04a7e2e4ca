/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel(3) in each wait of <verbena/rdma.h>: the agent goes on working, and nothing is left.
 * If the agent's lock is kept, the test hangs; alarm(2) ends it.
 */
#include "test/rdma/rdma.h"

#include <semaphore.h>
#include <unistd.h>

#define HANG_SECONDS 20
#define LONG_BYTES   (1u << 20) /* more than the peer's slots hold */

static struct vb_rdma_agent *agent[2];
static struct vb_rdma_listener *listener;
static struct vb_rdma *rdma[2];
static char address[64];
static struct vb_remote_mr *region;
static struct vb_rdma_op waited;
static sem_t started;

static void *accept_one(void *arg)
{
	*(struct vb_rdma **)arg = vb_rdma_accept(listener, 10 * S);
	return NULL;
}

static void connect_agents(void)
{
	pthread_t thread;

	OK(pthread_create(&thread, NULL, accept_one, &rdma[1]));
	rdma[0] = vb_rdma_connect(agent[0], address, 10 * S);
	pthread_join(thread, NULL);
	HAVE(rdma[0]);
	HAVE(rdma[1]);
}

/* Agent 1 always has a thread. */
static void open_agents(bool threaded)
{
	struct vb_rdma_options options;

	alarm(HANG_SECONDS);
	fresh_world(2, VB_SIM_CLOCK_REAL);
	vb_rdma_options_init(&options);
	options.thread = threaded;
	agent[0] = agent_on(0, NULL, &options);
	options.thread = true;
	agent[1] = agent_on(1, NULL, &options);
	listener = vb_rdma_listen(agent[1], "127.0.0.1:0");
	HAVE(listener);
	OK(vb_rdma_listener_name(listener, address, sizeof(address)));
	connect_agents();
	region = vb_request_remote_mr(rdma[0], 64, 0, VB_MR_ALL, 0, 10 * S);
	HAVE(region);
}

static void close_agents(void)
{
	vb_fault_clear(NULL);
	vb_remote_mr_put(region);
	OK(vb_rdma_close(rdma[0]));
	OK(vb_rdma_close(rdma[1]));
	OK(vb_rdma_listener_close(listener));
	OK(vb_rdma_agent_close(agent[0]));
	OK(vb_rdma_agent_close(agent[1]));
	assert_nothing_left();
	alarm(0);
}

void setUp(void)
{
	sem_init(&started, 0, 0);
}

void tearDown(void)
{
	sem_destroy(&started);
}

/* --- waits --- */

static void wait_accept(void)
{
	vb_rdma_accept(listener, VB_FOREVER);
}

static void close_descriptor(void *fd)
{
	close((int)(intptr_t)fd);
}

/* Nobody accepts from this listener's queue: its agent does not exist. */
static void wait_connect(void)
{
	uint16_t port = 0;
	int fd = vb_tcp_listen("127.0.0.1", &port);
	char deaf[32];

	TEST_ASSERT_TRUE(fd >= 0);
	snprintf(deaf, sizeof(deaf), "127.0.0.1:%u", port);
	pthread_cleanup_push(close_descriptor, (void *)(intptr_t)fd);
	vb_rdma_connect(agent[0], deaf, VB_FOREVER);
	pthread_cleanup_pop(true);
}

/* Memory of the cancelled thread, which must not be used afterwards. */
static void wait_send(void)
{
	char *bytes = calloc(1, LONG_BYTES);

	pthread_cleanup_push(free, bytes);
	vb_rdma_send(rdma[0], bytes, LONG_BYTES, VB_FOREVER);
	pthread_cleanup_pop(true);
}

static void wait_receive(void)
{
	char bytes[64];

	vb_rdma_receive(rdma[0], bytes, sizeof(bytes), NULL, VB_FOREVER);
}

static void wait_receive_local(void)
{
	vb_receive_local_mr(rdma[0], VB_FOREVER);
}

static void wait_receive_remote(void)
{
	vb_receive_remote_mr(rdma[0], VB_FOREVER);
}

static void wait_request(void)
{
	vb_request_remote_mr(rdma[0], 64, 0, VB_MR_ALL, 0, VB_FOREVER);
}

static void wait_write(void)
{
	struct vb_local_mr *mr = vb_alloc_local_mr(agent[0], 64, 0);
	const struct vb_local_slice slice_of_mr = {mr, 0, 64};

	pthread_cleanup_push((void (*)(void *))vb_local_mr_put, mr);
	vb_rdma_write(rdma[0], &slice_of_mr, region, 0, VB_FOREVER);
	pthread_cleanup_pop(true);
}

static void wait_handle(void)
{
	vb_rdma_wait(waited, VB_FOREVER, NULL);
}

static void wait_progress(void)
{
	while (!vb_rdma_progress(agent[0], VB_FOREVER))
		;
}

static void *run_wait(void *wait)
{
	sem_post(&started);
	((void (*)(void))wait)();
	return NULL;
}

static void cancel_in(void (*wait)(void))
{
	pthread_t thread;
	void *end;

	OK(pthread_create(&thread, NULL, run_wait, (void *)wait));
	sem_wait(&started);
	OK(pthread_cancel(thread));
	pthread_join(thread, &end);
	TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
}

struct sender {
	int side;
	int err;
};

static void *send_one(void *arg)
{
	struct sender *sender = arg;

	sender->err = vb_rdma_send(rdma[sender->side], "fine", 5, 10 * S);
	return NULL;
}

/* A message in each direction. The receiver has room for a message that was cancelled. */
static void expect_messages(void)
{
	static char got[LONG_BYTES];
	pthread_t thread;

	for (int side = 0; side < 2; side++) {
		struct sender sender = {.side = side};

		OK(pthread_create(&thread, NULL, send_one, &sender));
		OK(vb_rdma_receive(rdma[!side], got, sizeof(got), NULL, 10 * S));
		TEST_ASSERT_EQUAL_STRING("fine", got);
		pthread_join(thread, NULL);
		OK(sender.err);
	}
}

static void cancel_in_each(bool threaded)
{
	static void (*const waits[])(void) = {wait_accept, wait_connect, wait_receive,
					      wait_receive_local, wait_receive_remote};

	open_agents(threaded);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (waits[i] == wait_accept && !threaded)
			continue; /* of agent 1 */
		cancel_in(waits[i]);
		expect_messages();
	}
	cancel_in(wait_send);
	expect_messages();
	close_agents();
}

void test_each_wait_for_an_agent_thread(void)
{
	cancel_in_each(true);
}

void test_each_wait_that_drives_the_agent(void)
{
	cancel_in_each(false);
}

/* The peer's device is silent, so that what needs it never ends. */
static void cancel_without_a_peer(void (*wait)(void), bool threaded)
{
	static const struct vb_fault_rule lose = {.action = VB_FAULT_DROP};

	open_agents(threaded);
	OK(vb_fault_add(NULL, &lose, NULL));
	cancel_in(wait);
	close_agents();
}

static void wait_close(void)
{
	struct vb_rdma *closing = rdma[0];

	rdma[0] = NULL; /* vb_rdma_close(NULL) does nothing */
	vb_rdma_close(closing);
}

void test_waits_for_a_silent_peer(void)
{
	static void (*const waits[])(void) = {wait_request, wait_write, wait_close};

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		cancel_without_a_peer(waits[i], true);
		cancel_without_a_peer(waits[i], false);
	}
}

/* The handle stays valid: another thread takes the result. */
static void cancel_the_wait_for_a_handle(bool threaded)
{
	const struct vb_rdma_request receive = {
		.operation = VB_RDMA_RECEIVE, .into = address, .length_bytes = sizeof(address)};
	struct vb_rdma_request request = receive;
	struct vb_rdma_result result;
	struct sender sender = {.side = 1};
	pthread_t thread;

	open_agents(threaded);
	request.rdma = rdma[0];
	waited = start(&request);
	cancel_in(wait_handle);
	OK(pthread_create(&thread, NULL, send_one, &sender));
	OK(vb_rdma_wait(waited, 10 * S, &result));
	TEST_ASSERT_EQUAL_UINT64(5, result.message.length_bytes);
	pthread_join(thread, NULL);
	OK(sender.err);
	close_agents();
}

void test_the_wait_for_a_handle(void)
{
	cancel_the_wait_for_a_handle(true);
	cancel_the_wait_for_a_handle(false);
}

void test_progress(void)
{
	open_agents(false);
	cancel_in(wait_progress);
	expect_messages();
	close_agents();
}

/* --- the virtual clock --- */

static void *registered_wait(void *wait)
{
	vb_sim_thread_enter(NULL);
	pthread_cleanup_push((void (*)(void *))vb_sim_thread_leave, NULL);
	run_wait(wait);
	pthread_cleanup_pop(true);
	return NULL;
}

/* The main thread is registered and does not wait, so the other thread sleeps for it. */
void test_waits_on_the_virtual_clock(void)
{
	static void (*const waits[])(void) = {wait_receive, wait_progress, wait_receive_local};
	struct ends ends;
	pthread_t thread;
	void *end;

	alarm(HANG_SECONDS);
	ends_open(&ends, NULL, NULL);
	rdma[0] = ends.rdma[0];
	agent[0] = ends.agent[0];
	vb_sim_thread_enter(NULL);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		OK(pthread_create(&thread, NULL, registered_wait, (void *)waits[i]));
		sem_wait(&started);
		OK(pthread_cancel(thread));
		pthread_join(thread, &end);
		TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
	}
	vb_sim_thread_leave(NULL);
	OK(vb_rdma_send(rdma[0], "fine", 5, S));
	ends_close(&ends);
	alarm(0);
}
