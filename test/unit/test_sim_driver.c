/* SPDX-License-Identifier: MIT */
/* What moves time in the backend sim, completion channels, asynchronous events, several threads. */
#include "backends/sim/backend.h"
#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/private.h"
#include "backends/sim/world/world.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <verbena/sim.h>

#define B vb_backend_sim

#define TIMEOUT_CODE 14
#define TIMEOUT_NS   (UINT64_C(4096) << TIMEOUT_CODE) /* ibv_modify_qp(3): 4.096 us * 2^timeout */

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	uint8_t buffer[256];
};

static struct end a, b;

static void open_end(struct end *end, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	end->context = B.open_device(device);
	end->pd = B.alloc_pd(end->context);
	end->channel = B.create_comp_channel(end->context);
	end->cq = B.create_cq(end->context, 16, end, end->channel, 0);
	end->mr = B.reg_mr(end->pd, end->buffer, sizeof(end->buffer), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = B.create_qp(end->pd, &init);
	TEST_ASSERT_NOT_NULL(end->qp);
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(end->context, 1, 1, &end->gid));
}

static void connect_qp(struct ibv_qp *qp, const struct end *peer, uint32_t qpn, uint8_t rnr_timer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.min_rnr_timer = rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						     IBV_QP_MAX_DEST_RD_ATOMIC |
						     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT_CODE, .retry_cnt = 3, .rnr_retry = 7};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void connect_end(struct end *end, const struct end *peer)
{
	connect_qp(end->qp, peer, peer->qp->qp_num, 12);
}

static void start(enum vb_sim_clock clock, uint64_t delay_ns)
{
	struct vb_sim_config config = {
		.clock = clock,
		.link_count = delay_ns ? 1 : 0,
		.links = {{.a = "sim0", .b = "sim1", .delay_ns = delay_ns}},
	};
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	B.free_device_list(list);
	connect_end(&a, &b);
	connect_end(&b, &a);
}

void setUp(void)
{
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
}

void tearDown(void)
{
	if (a.context)
		B.close_device(a.context);
	if (b.context)
		B.close_device(b.context);
}

static void post_send(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, 64, end->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	wr.opcode = IBV_WR_SEND;
	TEST_ASSERT_EQUAL_INT(0, ibv_post_send(end->qp, &wr, &bad));
}

static void post_recv(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, 64, end->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(end->qp, &wr, &bad));
}

static int get_event(struct end *end)
{
	struct ibv_cq *cq = NULL;
	void *user = NULL;
	int answer = B.get_cq_event(end->channel, &cq, &user);

	if (answer == 0) {
		TEST_ASSERT_EQUAL_PTR(end->cq, cq);
		TEST_ASSERT_EQUAL_PTR(end, user);
	}
	return answer;
}

static bool readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, 0) == 1;
}

/* --- the virtual clock --- */

void test_an_empty_poll_runs_the_instant_then_moves_to_the_next_event(void)
{
	struct ibv_wc wc;

	start(VB_SIM_CLOCK_VIRTUAL, 1000);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(b.cq, 1, &wc)); /* the packet comes at 1000 */
	TEST_ASSERT_EQUAL_UINT64(1000, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq, 1, &wc)); /* its ack at 2000 */
	TEST_ASSERT_EQUAL_UINT64(2000, vb_sim_now_ns(NULL));
	while (vb_sim_next_ns(NULL) != VB_SIM_NEVER)
		TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 0, &wc));
	TEST_ASSERT_TRUE(ibv_poll_cq(a.cq, -1, &wc) < 0);
}

static unsigned int stuck;

static void count_stuck(enum driver_stuck how, uint64_t now_ns)
{
	(void)now_ns;
	TEST_ASSERT_EQUAL_INT(DRIVER_POLLING, how);
	stuck++;
}

/* Only polls in a row that find nothing are a program that waits for ever. */
void test_polls_are_counted_from_the_last_that_moved_time(void)
{
	static const bool moved[] = {false, false, true, false, false, true, false, false};
	struct driver *driver;

	start(VB_SIM_CLOCK_VIRTUAL, 1000);
	driver = &vb_sim_of(a.context)->driver;
	driver_watch(driver, &(struct driver_patience){.polls_max = 3, .stuck = count_stuck});
	stuck = 0;
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
		patience_passed(driver, moved[i]);
	TEST_ASSERT_EQUAL_UINT(0, stuck);
	patience_passed(driver, false);
	TEST_ASSERT_EQUAL_UINT(1, stuck);
	driver_watch(driver, &(struct driver_patience){0});
}

void test_polling_goes_through_all_timeouts(void)
{
	struct ibv_wc wc;
	int polls = 0;

	start(VB_SIM_CLOCK_VIRTUAL, 0);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(b.qp));
	post_send(&a);
	while (ibv_poll_cq(a.cq, 1, &wc) == 0)
		TEST_ASSERT_TRUE(++polls < 20);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, wc.status);
	TEST_ASSERT_EQUAL_UINT64(4 * TIMEOUT_NS, vb_sim_now_ns(NULL)); /* the first, 3 retries */
}

void test_a_repeated_query_is_a_wait(void)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int queries = 0;

	start(VB_SIM_CLOCK_VIRTUAL, 0);
	B.destroy_qp(b.qp);
	post_send(&a);
	do {
		TEST_ASSERT_EQUAL_INT(0, B.query_qp(a.qp, &attr, IBV_QP_STATE, &init));
		TEST_ASSERT_TRUE(++queries < 20);
	} while (attr.qp_state == IBV_QPS_RTS);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, attr.qp_state);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, a.qp->state);
	TEST_ASSERT_EQUAL_PTR(a.cq, init.send_cq);
	TEST_ASSERT_EQUAL_INT(1, init.sq_sig_all);
	TEST_ASSERT_TRUE(init.cap.max_send_wr >= 8);
}

void test_run_carries_time(void)
{
	struct ibv_wc wc;

	start(VB_SIM_CLOCK_VIRTUAL, 1000);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 123456));
	TEST_ASSERT_EQUAL_UINT64(123456, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(b.cq, 1, &wc));
	TEST_ASSERT_EQUAL_UINT64(123456, vb_sim_now_ns(NULL));
}

void test_a_blocking_get_waits_as_long_as_it_takes(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	B.destroy_qp(b.qp);
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(a.cq, 0));
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, get_event(&a));
	TEST_ASSERT_EQUAL_UINT64(4 * TIMEOUT_NS, vb_sim_now_ns(NULL));
	B.ack_cq_events(a.cq, 1);
}

void test_a_wait_that_nothing_can_end(void)
{
	struct ibv_async_event event;
	char text[512];

	start(VB_SIM_CLOCK_VIRTUAL, 0);
	TEST_ASSERT_EQUAL_INT(-1, get_event(&a));
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
	TEST_ASSERT_NOT_NULL(strstr(vb_why_text(B.last_why(), text, sizeof(text)),
				    "CQ 0 (not armed, 0 completions in it)"));
	TEST_ASSERT_EQUAL_INT(-1, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
}

/* --- channels --- */

void test_a_channel_does_not_block_when_it_is_told_not_to(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	fcntl(b.channel->fd, F_SETFL, fcntl(b.channel->fd, F_GETFL) | O_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(-1, get_event(&b));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(b.cq, 0));
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, get_event(&b));
	B.ack_cq_events(b.cq, 1);
}

void test_the_descriptor_counts_the_events(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	for (int i = 0; i < 2; i++) {
		ibv_req_notify_cq(b.cq, 0);
		post_recv(&b);
		post_send(&a);
		TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	}
	TEST_ASSERT_TRUE(readable(b.channel->fd));
	TEST_ASSERT_EQUAL_INT(0, get_event(&b));
	TEST_ASSERT_TRUE(readable(b.channel->fd));
	TEST_ASSERT_EQUAL_INT(0, get_event(&b));
	TEST_ASSERT_FALSE(readable(b.channel->fd));
	B.ack_cq_events(b.cq, 2);
	TEST_ASSERT_EQUAL_UINT32(2, b.cq->comp_events_completed);
}

void test_destroying_a_cq_discards_its_unread_events(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	ibv_req_notify_cq(b.cq, 0);
	post_recv(&b);
	post_send(&a);
	vb_sim_run(NULL, 0);
	TEST_ASSERT_TRUE(readable(b.channel->fd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(b.qp));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(b.cq));
	TEST_ASSERT_FALSE(readable(b.channel->fd));
	TEST_ASSERT_EQUAL_INT(-1, get_event(&b));
}

void test_destroying_a_cq_asks_for_acknowledgement(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	ibv_req_notify_cq(b.cq, 0);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, get_event(&b));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(b.qp));
	TEST_ASSERT_EQUAL_INT(EDEADLK, B.destroy_cq(b.cq));
	TEST_ASSERT_EQUAL_INT(0, ibv_req_notify_cq(b.cq, 0)); /* it is still there */
	B.ack_cq_events(b.cq, 1);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(b.cq));
}

/* --- asynchronous events --- */

void test_an_asynchronous_event_names_its_qp(void)
{
	struct ibv_async_event event;

	/* B stays in RTR: its first packet is IBV_EVENT_COMM_EST (ibv_get_async_event(3)). */
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	B.modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE);
	{
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

		B.modify_qp(b.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
		attr = (struct ibv_qp_attr){
			.qp_state = IBV_QPS_RTR,
			.path_mtu = IBV_MTU_1024,
			.dest_qp_num = a.qp->qp_num,
			.ah_attr = {.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = a.gid, .sgid_index = 1}},
		};
		TEST_ASSERT_EQUAL_INT(0, B.modify_qp(b.qp, &attr,
						     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
							     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
							     IBV_QP_MAX_DEST_RD_ATOMIC |
							     IBV_QP_MIN_RNR_TIMER));
	}
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, B.get_async_event(b.context, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_COMM_EST, event.event_type);
	TEST_ASSERT_EQUAL_PTR(b.qp, event.element.qp);
	TEST_ASSERT_EQUAL_INT(EDEADLK, B.destroy_qp(b.qp));
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(b.qp));
}

/* --- several threads on a virtual clock --- */

static pthread_barrier_t all_registered;

/* Waits for a message and answers it. Time must not pass while the other thread works. */
static void *ping(void *arg)
{
	struct end *end = arg;
	struct ibv_wc wc;
	int left = 200;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&all_registered);
	if (end == &a)
		post_send(end);
	while (left) {
		int got = ibv_poll_cq(end->cq, 1, &wc);

		if (got < 0 || (got && wc.status != IBV_WC_SUCCESS))
			break;
		if (!got || !(wc.opcode & IBV_WC_RECV))
			continue;
		post_recv(end);
		if (--left || end == &b)
			post_send(end);
	}
	/* The last answer has to leave the port. */
	if (end == &b && !left)
		while (ibv_poll_cq(end->cq, 1, &wc) == 0)
			;
	vb_sim_thread_leave(NULL);
	return left ? NULL : end;
}

static void run_two(void *(*act)(void *))
{
	pthread_t one, two;
	void *one_end, *two_end;

	pthread_barrier_init(&all_registered, NULL, 2);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&one, NULL, act, &a));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&two, NULL, act, &b));
	pthread_join(one, &one_end);
	pthread_join(two, &two_end);
	pthread_barrier_destroy(&all_registered);
	TEST_ASSERT_EQUAL_PTR(&a, one_end);
	TEST_ASSERT_EQUAL_PTR(&b, two_end);
}

void test_two_polling_threads_move_time_together(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 500);
	post_recv(&a);
	post_recv(&b);
	run_two(ping);
	/* 400 messages of 500 ns each way; no ack timer (67 ms) has expired. */
	TEST_ASSERT_TRUE(vb_sim_now_ns(NULL) >= 400 * 500);
	TEST_ASSERT_TRUE(vb_sim_now_ns(NULL) < TIMEOUT_NS);
}

static void *ping_events(void *arg)
{
	struct end *end = arg;
	struct ibv_wc wc;
	int left = 100;

	vb_sim_thread_enter(NULL);
	ibv_req_notify_cq(end->cq, 0);
	pthread_barrier_wait(&all_registered);
	if (end == &a)
		post_send(end);
	while (left) {
		if (get_event(end))
			break;
		B.ack_cq_events(end->cq, 1);
		ibv_req_notify_cq(end->cq, 0);
		while (left && ibv_poll_cq(end->cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS || !(wc.opcode & IBV_WC_RECV))
				continue;
			post_recv(end);
			if (--left || end == &b)
				post_send(end);
		}
	}
	vb_sim_thread_leave(NULL);
	return left ? NULL : end;
}

void test_two_sleeping_threads_wake_each_other(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 500);
	post_recv(&a);
	post_recv(&b);
	run_two(ping_events);
}

static void *wait_for_nothing(void *arg)
{
	struct end *end = arg;
	bool deadlock;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&all_registered);
	ibv_req_notify_cq(end->cq, 0);
	deadlock = get_event(end) == -1 && errno == EDEADLK;
	vb_sim_thread_leave(NULL);
	return deadlock ? end : NULL;
}

void test_threads_that_all_wait_for_nothing_are_told(void)
{
	start(VB_SIM_CLOCK_VIRTUAL, 0);
	run_two(wait_for_nothing);
}

static void *acknowledge(void *arg)
{
	struct ibv_wc wc;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&all_registered);
	ibv_poll_cq(a.cq, 1, &wc);
	B.ack_cq_events(arg, 1);
	vb_sim_thread_leave(NULL);
	return NULL;
}

void test_another_thread_may_acknowledge(void)
{
	pthread_t thread;

	start(VB_SIM_CLOCK_VIRTUAL, 0);
	ibv_req_notify_cq(b.cq, 0);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, get_event(&b));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(b.qp));
	pthread_barrier_init(&all_registered, NULL, 2);
	vb_sim_thread_enter(NULL);
	pthread_create(&thread, NULL, acknowledge, b.cq);
	pthread_barrier_wait(&all_registered);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(b.cq));
	vb_sim_thread_leave(NULL);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&all_registered);
}

/* --- the real clock --- */

void test_the_real_clock_refuses_to_be_run(void)
{
	start(VB_SIM_CLOCK_REAL, 0);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_run(NULL, 1));
}

void test_on_the_real_clock_the_descriptor_wakes_a_sleeper(void)
{
	struct pollfd ready;
	struct ibv_wc wc;

	/* The ACK comes 2 ms later, while this thread sleeps in poll(2). */
	start(VB_SIM_CLOCK_REAL, 1000000);
	ready = (struct pollfd){.fd = a.channel->fd, .events = POLLIN};
	ibv_req_notify_cq(a.cq, 0);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(1, poll(&ready, 1, -1));
	TEST_ASSERT_EQUAL_INT(0, get_event(&a));
	B.ack_cq_events(a.cq, 1);
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
	TEST_ASSERT_TRUE(vb_sim_now_ns(NULL) >= 2000000);
}

void test_on_the_real_clock_a_get_blocks_in_the_descriptor(void)
{
	start(VB_SIM_CLOCK_REAL, 1000000);
	ibv_req_notify_cq(a.cq, 0);
	post_recv(&b);
	post_send(&a);
	TEST_ASSERT_EQUAL_INT(0, get_event(&a));
	B.ack_cq_events(a.cq, 1);
	TEST_ASSERT_FALSE(readable(a.channel->fd));
}

/* A posted WR starts now, not at the time at which the world last ran. */
void test_on_the_real_clock_work_has_the_time_of_its_post(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	const struct timespec pause = {.tv_nsec = 2000000};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_cq_ex *cq;
	uint64_t before_ns;

	start(VB_SIM_CLOCK_REAL, 0);
	cq = B.create_cq_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(cq);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(a.qp));
	a.qp = B.create_qp(a.pd, &init);
	connect_end(&a, &b);
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET},
					     IBV_QP_STATE));
	connect_end(&b, &a);
	post_recv(&b);
	before_ns = vb_sim_now_ns(NULL);
	nanosleep(&pause, NULL);
	post_send(&a);
	while (ibv_start_poll(cq, &poll_attr))
		;
	TEST_ASSERT_TRUE(ibv_wc_read_completion_ts(cq) >= before_ns + 2000000);
	ibv_end_poll(cq);
}

void test_devices_open_and_close_on_the_real_clock(void)
{
	struct ibv_device **list;

	start(VB_SIM_CLOCK_REAL, 0);
	B.close_device(a.context);
	B.close_device(b.context);
	a.context = b.context = NULL;
	list = B.get_device_list(NULL);
	for (int i = 0; i < 20; i++) {
		struct ibv_context *context = B.open_device(list[i % 2]);

		TEST_ASSERT_NOT_NULL(context);
		TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	}
	B.free_device_list(list);
}

/*
 * Each QP retries every 10 us (RNR timer code 1), and the retries of all QPs together take longer
 * than 10 us: the backlog grows while it is worked off. A verb must return all the same.
 */
void test_a_world_that_cannot_keep_up_loses_time(void)
{
	enum { PAIRS = 512 };
	static struct ibv_qp *from[PAIRS], *to[PAIRS];
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 1, .max_recv_wr = 1},
					.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1};
	struct ibv_send_wr *bad_send, send = {.opcode = IBV_WR_SEND};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 2};
	struct ibv_wc wc;

	start(VB_SIM_CLOCK_REAL, 0);
	init.send_cq = init.recv_cq = B.create_cq(a.context, 2 * PAIRS, NULL, NULL, 0);
	for (unsigned int i = 0; i < PAIRS; i++) {
		from[i] = B.create_qp(a.pd, &init);
		to[i] = B.create_qp(a.pd, &init);
		connect_qp(from[i], &a, to[i]->qp_num, 1);
		connect_qp(to[i], &a, from[i]->qp_num, 1);
	}
	for (unsigned int i = 0; i < PAIRS; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_post_send(from[i], &send, &bad_send));
	for (unsigned int i = 0; i < PAIRS; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to[i], &recv, &bad_recv));
	for (unsigned int done = 0; done < 2 * PAIRS;) {
		int count = ibv_poll_cq(init.send_cq, 1, &wc);

		if (count)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		done += (unsigned int)count;
	}
	for (unsigned int i = 0; i < PAIRS; i++) {
		TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(from[i]));
		TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to[i]));
	}
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(init.send_cq));
}

void test_the_clock_counts_whole_seconds_as_10_to_the_9(void)
{
	const uint64_t ns_per_s = 1000000000;
	const uint64_t before_s = (uint64_t)time(NULL);
	const uint64_t now_ns = clock_now_ns(CLOCK_REALTIME);
	const uint64_t after_s = (uint64_t)time(NULL);

	/* time() may lag behind the clock by a tick. */
	TEST_ASSERT_TRUE(now_ns / ns_per_s >= before_s && now_ns / ns_per_s <= after_s + 1);
}

/*
 * A program may fork as soon as a device is open: then no thread is just beginning, which would hold
 * locks of a sanitizer in the child.
 */
void test_open_device_leaves_no_thread_that_begins(void)
{
	for (unsigned int i = 0; i < 50; i++) {
		const struct vb_sim *world;

		start(VB_SIM_CLOCK_REAL, 0);
		world = vb_sim_of(a.context);
		TEST_ASSERT_TRUE(world->driver.started);
		B.close_device(a.context);
		B.close_device(b.context);
	}
	setUp();
}
