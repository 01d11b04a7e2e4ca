/* SPDX-License-Identifier: MIT */
/*
 * pthread_cancel(3) and the world's lock: a thread is cancelled in the waits of verbs and nowhere
 * else in them, and leaves the world usable. If the lock is kept, the test hangs; alarm(2) ends it.
 */
#include "backends/sim/world/world.h"
#include "test/unit/event_waits.h"
#include "unity.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/sim.h>

#define B	     vb_backend_sim
#define HANG_SECONDS 20
#define MANY_BYTES   (1u << 20) /* more pages than are touched: reg_mr reads /proc/self/maps */
#define RUN_NS	     1000

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp;
static sem_t started;

static void modify(int mask, const struct ibv_qp_attr *attr)
{
	struct ibv_qp_attr copy = *attr;

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &copy, IBV_QP_STATE | mask));
}

/* A QP that is connected to itself. */
static void connect_to_self(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	union ibv_gid gid;

	TEST_ASSERT_EQUAL_INT(0, B.query_gid(context, 1, 1, &gid));
	modify(IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, &attr);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1}},
	};
	modify(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	       &attr);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
	modify(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	       &attr);
}

static void start(enum vb_sim_clock clock)
{
	const struct vb_sim_config config = {.clock = clock};
	struct ibv_cq_init_attr_ex extended = {.cqe = 16};
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = B.get_device_list(NULL);
	context = B.open_device(list[0]);
	B.free_device_list(list);
	pd = B.alloc_pd(context);
	channel = B.create_comp_channel(context);
	cq = B.create_cq(context, 16, NULL, channel, 0);
	cq_ex = B.create_cq_ex(context, &extended);
	init.send_cq = init.recv_cq = cq;
	qp = B.create_qp(pd, &init);
	TEST_ASSERT_NOT_NULL(cq_ex);
	TEST_ASSERT_NOT_NULL(qp);
	connect_to_self();
}

void setUp(void)
{
	alarm(HANG_SECONDS);
	sem_init(&started, 0, 0);
}

void tearDown(void)
{
	B.close_device(context);
	sem_destroy(&started);
	alarm(0);
}

/* Posts a work that completes at once in error, or when the QP runs. */
static int post_empty(void)
{
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 2};
	struct ibv_send_wr *bad_send, send = {.wr_id = 1, .opcode = IBV_WR_SEND};

	return ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad_send);
}

/* --- waits --- */

static void wait_poll(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
}

static void wait_start_poll(void)
{
	struct ibv_poll_cq_attr attr = {0};

	while (ibv_start_poll(cq_ex, &attr) == ENOENT)
		;
}

static void wait_for_completion(void)
{
	struct ibv_wc wc;

	vb_sim_wait_cq(cq, 1, &wc, VB_SIM_NEVER);
}

static void wait_for_time(void)
{
	vb_sim_run(NULL, RUN_NS);
}

static void wait_query(void)
{
	struct ibv_port_attr attr;

	for (;;)
		B.query_port(context, 1, &attr, sizeof(attr));
}

static void wait_acknowledgement(void)
{
	B.destroy_cq(cq);
}

static void leave(void *arg)
{
	(void)arg;
	vb_sim_thread_leave(NULL);
}

static void *registered(void *wait)
{
	vb_sim_thread_enter(NULL);
	pthread_cleanup_push(leave, NULL);
	sem_post(&started);
	((void (*)(void))wait)();
	pthread_cleanup_pop(true);
	return NULL;
}

static void *unregistered(void *wait)
{
	sem_post(&started);
	((void (*)(void))wait)();
	return NULL;
}

/* The wait may begin before or after the cancellation: both must leave the lock. */
static void cancel_in(void *(*body)(void *), void (*wait)(void))
{
	pthread_t thread;
	void *end;

	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, body, (void *)wait));
	sem_wait(&started);
	TEST_ASSERT_EQUAL_INT(0, pthread_cancel(thread));
	pthread_join(thread, &end);
	TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
}

/* The world still works: a message arrives. */
static void expect_message(void)
{
	struct ibv_wc wc[2];

	TEST_ASSERT_EQUAL_INT(0, post_empty());
	for (int done = 0; done < 2; done += ibv_poll_cq(cq, 2 - done, wc + done))
		;
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc[0].status);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc[1].status);
}

/* The main thread is registered and does not wait, so the other thread sleeps for it. */
void test_each_wait_on_the_virtual_clock(void)
{
	static void (*const waits[])(void) = {wait_cq_event,	  wait_async_event, wait_poll,
					      wait_start_poll,	  wait_query,	    wait_for_time,
					      wait_for_completion};
	struct ibv_poll_cq_attr attr = {0};

	start(VB_SIM_CLOCK_VIRTUAL);
	vb_sim_thread_enter(NULL);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		cancel_in(registered, waits[i]);
		expect_message();
	}
	/* Neither the lock of the extended CQ nor the cancelled thread's time is kept. */
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(cq_ex, &attr));
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 3 * RUN_NS));
	TEST_ASSERT_EQUAL_UINT64(3 * RUN_NS, vb_sim_now_ns(NULL));
	vb_sim_thread_leave(NULL);
}

void test_each_wait_on_the_real_clock(void)
{
	struct ibv_cq *which;
	void *arg;

	start(VB_SIM_CLOCK_REAL);
	cancel_in(unregistered, wait_cq_event);
	expect_message();
	cancel_in(unregistered, wait_async_event);
	expect_message();
	/* An event that was read and not acknowledged: destroy_cq waits. */
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(cq, 0));
	expect_message();
	TEST_ASSERT_EQUAL_INT(0, B.get_cq_event(channel, &which, &arg));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	cancel_in(unregistered, wait_acknowledgement);
	B.ack_cq_events(cq, 1);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
}

/* --- what is no wait --- */

static char trace_path[] = "/tmp/verbena-cancel-XXXXXX";

/* Verbs that call cancellation points of pthreads(7): write, read, close, stdio. */
static void *act(void *reached)
{
	void *many =
		mmap(NULL, MANY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct ibv_cq *which;
	void *arg;

	pthread_cancel(pthread_self());
	mr = B.reg_mr(pd, many, MANY_BYTES, IBV_ACCESS_LOCAL_WRITE);
	vb_sim_trace_open(NULL, trace_path);
	ibv_req_notify_cq(cq, 0);
	expect_message();
	B.dereg_mr(mr);
	B.destroy_comp_channel(B.create_comp_channel(context));
	vb_sim_trace_close(NULL);
	/* An event is queued, so this is no wait, but read(2) would be a cancellation point. */
	if (!B.get_cq_event(channel, &which, &arg))
		B.ack_cq_events(which, 1);
	*(bool *)reached = true;
	pthread_testcancel();
	return NULL;
}

static void cancel_outside_of_waits(enum vb_sim_clock clock)
{
	bool reached = false;
	pthread_t thread;
	void *end;

	start(clock);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, act, &reached));
	pthread_join(thread, &end);
	TEST_ASSERT_TRUE(reached);
	TEST_ASSERT_TRUE(end == PTHREAD_CANCELED);
	expect_message();
}

static bool is_asleep(struct vb_sim *world)
{
	bool asleep;

	pthread_mutex_lock(&world->driver.mutex);
	asleep = world->driver.asleep;
	pthread_mutex_unlock(&world->driver.mutex);
	return asleep;
}

/* Opening starts the progress thread and waits for it; a reset waits for the threads that sleep. */
static void *open_and_reset(void *reached)
{
	const struct vb_sim_config config = {.clock = VB_SIM_CLOCK_REAL};
	struct ibv_device **list;

	pthread_cancel(pthread_self());
	vb_sim_reset();
	vb_sim_configure(&config);
	list = B.get_device_list(NULL);
	context = B.open_device(list[0]);
	B.free_device_list(list);
	*(bool *)reached = true;
	pthread_testcancel();
	return NULL;
}

void test_the_short_waits_of_a_reset_and_of_opening(void)
{
	pthread_t waiter, thread;
	bool reached = false;

	start(VB_SIM_CLOCK_REAL);
	TEST_ASSERT_EQUAL_INT(0,
			      pthread_create(&waiter, NULL, unregistered, (void *)wait_cq_event));
	while (!is_asleep(vb_sim_of(context)))
		sched_yield();
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, open_and_reset, &reached));
	pthread_join(thread, NULL);
	pthread_join(waiter, NULL);
	TEST_ASSERT_TRUE(reached);
	TEST_ASSERT_NOT_NULL(context);
}

void test_verbs_that_do_not_wait_are_not_cancelled(void)
{
	int fd = mkstemp(trace_path);

	close(fd);
	cancel_outside_of_waits(VB_SIM_CLOCK_VIRTUAL);
	B.close_device(context);
	cancel_outside_of_waits(VB_SIM_CLOCK_REAL);
	unlink(trace_path);
}
