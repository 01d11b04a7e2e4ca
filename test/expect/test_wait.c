/* SPDX-License-Identifier: MIT */
/* Waits for descriptors on the virtual clock: poll(2), select(2), epoll_wait(2) and vb_sim_wait_fd(). */
#include "test/connect/connect.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <verbena/cm.h>

#define DELAY_NS (1 * MS)

struct end {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_region *region;
	struct ibv_qp *qp;
};

static struct end a, b;

/* Two devices on a link of 1 ms. */
static void delayed_world(void)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));

	config->device_count = 2;
	strcpy(config->devices[0].name, "sim0");
	strcpy(config->devices[1].name, "sim1");
	config->link_count = 1;
	strcpy(config->links[0].a, "sim0");
	strcpy(config->links[0].b, "sim1");
	config->links[0].delay_ns = DELAY_NS;
	OK(vb_sim_configure(config));
	free(config);
}

static struct vb_prepared_qp *open_end(struct end *end, const char *name)
{
	struct vb_prepared_qp *prepared;
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.timeout = 14;
	*end = (struct end){.device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY)};
	HAVE(end->device);
	end->pd = vb_alloc_pd(end->device->context);
	end->cq = vb_cq_open(end->device, 16, end);
	end->region = vb_region_alloc(end->device, end->pd, 4096, VB_ACCESS_DEFAULT);
	prepared = vb_qp_prepare(end->device, end->pd, end->cq->cq, end->cq->cq, &config);
	HAVE(prepared);
	return prepared;
}

void setUp(void)
{
	struct vb_prepared_qp *of_a, *of_b;
	struct vb_endpoint first;

	delayed_world();
	of_a = open_end(&a, "sim0");
	of_b = open_end(&b, "sim1");
	first = *vb_prepared_endpoint(of_a);
	a.qp = vb_handshake(of_a, vb_prepared_endpoint(of_b));
	b.qp = vb_handshake(of_b, &first);
	HAVE(a.qp);
	HAVE(b.qp);
}

static void close_end(struct end *end)
{
	if (end->qp)
		OK(vb_destroy_qp(end->qp));
	OK(vb_region_free(end->region));
	OK(vb_cq_close(end->cq));
	OK(vb_dealloc_pd(end->pd));
	OK(vb_device_close(end->device));
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
	vb_sim_reset();
}

static void receive(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->region->addr, 64, end->region->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	OK(ibv_post_recv(end->qp, &wr, &bad));
	OK(ibv_req_notify_cq(end->cq->cq, 0));
}

static void send_from(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->region->addr, 64, end->region->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	OK(ibv_post_send(end->qp, &wr, &bad));
}

static int channel_fd(const struct end *end)
{
	return end->cq->channel->fd;
}

static void take_event(const struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	OK(vb_get_cq_event(end->cq->channel, &cq, &context));
	vb_ack_cq_events(cq, 1);
}

static int epoll_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	int set = epoll_create1(EPOLL_CLOEXEC);

	OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	return set;
}

/* The message arrives a link's delay after the send. */
void test_poll_moves_time_to_the_event(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};

	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, -1));
	TEST_ASSERT_EQUAL_INT(POLLIN, fd.revents);
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS, vb_sim_now_ns(NULL));
	take_event(&b);
}

void test_epoll_moves_time_to_the_event(void)
{
	int set = epoll_of(channel_fd(&b));
	struct epoll_event event;

	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, epoll_wait(set, &event, 1, -1));
	TEST_ASSERT_EQUAL_INT(channel_fd(&b), event.data.fd);
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS, vb_sim_now_ns(NULL));
	close(set);
}

void test_an_epoll_set_in_an_epoll_set(void)
{
	int inner = epoll_of(channel_fd(&b)), outer = epoll_of(inner);
	struct epoll_event event;

	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, epoll_pwait(outer, &event, 1, -1, NULL));
	TEST_ASSERT_EQUAL_INT(inner, event.data.fd);
	close(outer);
	close(inner);
}

void test_select_moves_time_to_the_event(void)
{
	const int fd = channel_fd(&b);
	struct timeval time = {5, 0};
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(fd, &reads);
	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, select(fd + 1, &reads, NULL, NULL, &time));
	TEST_ASSERT_TRUE(FD_ISSET(fd, &reads));
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS, vb_sim_now_ns(NULL));
}

/* The timeout is a time of the virtual clock, and takes no real time. */
void test_a_timeout_passes_on_the_virtual_clock(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};
	const struct timespec hour = {3600, 1};
	struct timeval limit = {10, 5};
	int set = epoll_of(channel_fd(&b));
	struct epoll_event event;
	const time_t began = time(NULL);
	fd_set reads;

	alarm(60); /* a real wait ends the test */
	receive(&b);
	TEST_ASSERT_EQUAL_INT(0, poll(&fd, 1, 3600000));
	TEST_ASSERT_EQUAL_UINT64(3600 * S, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(0, ppoll(&fd, 1, &hour, NULL));
	TEST_ASSERT_EQUAL_UINT64(7200 * S + 1, vb_sim_now_ns(NULL));
	FD_ZERO(&reads);
	FD_SET(fd.fd, &reads);
	TEST_ASSERT_EQUAL_INT(0, select(fd.fd + 1, &reads, NULL, NULL, &limit));
	TEST_ASSERT_FALSE(FD_ISSET(fd.fd, &reads));
	TEST_ASSERT_EQUAL_INT(0, limit.tv_sec + limit.tv_usec);
	TEST_ASSERT_EQUAL_UINT64(7210 * S + 5001, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(0, epoll_wait(set, &event, 1, 3600000));
	TEST_ASSERT_EQUAL_UINT64(10810 * S + 5001, vb_sim_now_ns(NULL));
	alarm(0);
	TEST_ASSERT_TRUE(time(NULL) - began < 60);
	close(set);
}

/* A timeout ends before the message comes; the next wait sees the message at its time. */
void test_a_timeout_before_the_event(void)
{
	const struct timespec half = {0, DELAY_NS / 2};
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};

	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(0, ppoll(&fd, 1, &half, NULL));
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS / 2, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(1, ppoll(&fd, 1, &half, NULL));
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS, vb_sim_now_ns(NULL));
}

/* A program that looks without waiting must not stand still. */
void test_polls_without_a_timeout_move_time(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};
	int polls = 0;

	receive(&b);
	send_from(&a);
	while (!poll(&fd, 1, 0) && polls < 100)
		polls++;
	TEST_ASSERT_TRUE(fd.revents & POLLIN);
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS, vb_sim_now_ns(NULL));
}

/* Other descriptors wait really, after the events that are due. */
void test_a_socket_beside_a_channel(void)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {channel_fd(&b), POLLIN, 0}};
	int ends[2];

	OK(pipe(ends));
	fds[0].fd = ends[0];
	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, poll(fds, 2, -1));
	TEST_ASSERT_EQUAL_INT(0, fds[0].revents);
	take_event(&b);
	TEST_ASSERT_EQUAL_INT(0, poll(fds, 2, 20));
	TEST_ASSERT_EQUAL_UINT64(DELAY_NS + 20 * MS, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(1, write(ends[1], "x", 1));
	TEST_ASSERT_EQUAL_INT(1, poll(fds, 2, -1));
	TEST_ASSERT_EQUAL_INT(POLLIN, fds[0].revents);
	close(ends[0]);
	close(ends[1]);
}

/* A set without a descriptor of Verbena's does not move time. */
void test_a_socket_alone(void)
{
	struct pollfd fd = {.events = POLLIN};
	int ends[2];

	OK(pipe(ends));
	fd.fd = ends[0];
	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(0, poll(&fd, 1, 5));
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	close(ends[0]);
	close(ends[1]);
}

void test_an_asynchronous_event(void)
{
	struct pollfd fd = {a.device->context->async_fd, POLLIN, 0};
	struct ibv_async_event event;

	/* Nobody has posted a receive, and the peer's QP is not there: the send fails. */
	OK(vb_sim_port_state(a.device->context, 1, false));
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, -1));
	OK(vb_get_async_event(a.device->context, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_PORT_ERR, event.event_type);
	vb_ack_async_event(&event);
}

/* A QP's failure comes after all retries, which poll(2) waits for. */
void test_a_completion_in_error(void)
{
	struct pollfd fd = {channel_fd(&a), POLLIN, 0};
	struct ibv_wc wc;

	OK(vb_destroy_qp(b.qp));
	b.qp = NULL;
	OK(ibv_req_notify_cq(a.cq->cq, 0));
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, 3600000));
	take_event(&a);
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(a.cq->cq, 1, &wc));
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, wc.status);
}

void test_an_event_channel_of_the_connection_manager(void)
{
	struct rdma_event_channel *channel = vb_cm_create_event_channel("sim");
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7471)};
	struct pollfd fd = {.events = POLLIN};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	HAVE(channel);
	fd.fd = channel->fd;
	OK(vb_cm_create_id(NULL, channel, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET, "10.0.0.2", &address.sin_addr));
	OK(vb_cm_resolve_addr(id, NULL, (struct sockaddr *)&address, 1000));
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, 10000));
	OK(vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_ADDR_RESOLVED, event->event);
	OK(vb_cm_ack_cm_event(event));
	OK(vb_cm_destroy_id(id));
	vb_cm_destroy_event_channel(channel);
}

/* With nothing to come, a wait without a limit sleeps until another thread, or a signal, ends it. */
static void *send_later(void *arg)
{
	struct pollfd fd = {channel_fd(&a), POLLIN, 0};

	OK(ibv_req_notify_cq(a.cq->cq, 0));
	send_from(&a);
	poll(&fd, 1, -1);
	return arg;
}

void test_another_thread_acts(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};
	pthread_t thread;

	receive(&b);
	OK(pthread_create(&thread, NULL, send_later, NULL));
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, -1));
	OK(pthread_join(thread, NULL));
}

static void nothing(int number)
{
	(void)number;
}

void test_a_signal_ends_an_idle_wait(void)
{
	const struct sigaction action = {.sa_handler = nothing};
	/* The timer repeats, because the first signal may come before the wait. */
	const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {0};
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};

	OK(sigaction(SIGALRM, &action, NULL));
	OK(setitimer(ITIMER_REAL, &often, NULL));
	TEST_ASSERT_EQUAL_INT(-1, poll(&fd, 1, -1));
	TEST_ASSERT_EQUAL_INT(EINTR, errno);
	OK(setitimer(ITIMER_REAL, &never, NULL));
}

static bool is_readable(void *arg)
{
	return poll(arg, 1, 0) > 0;
}

void test_vb_sim_wait_fd(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};
	uint64_t left_ns;
	char text[512];

	TEST_ASSERT_TRUE(vb_sim_has_fd(fd.fd));
	TEST_ASSERT_TRUE(vb_sim_has_fd(-1));
	FAILS(EDEADLK, vb_sim_wait_fd(fd.fd, is_readable, &fd, VB_SIM_NEVER));
	TEST_ASSERT_EQUAL_INT(VB_WHY_WAIT_IDLE, vb_last_reason());
	snprintf(text, sizeof(text),
		 "vb_sim_wait_fd: the wait for descriptor %d has no limit, and nothing can come: "
		 "no packet is "
		 "under way, no timer runs, and no other thread can act; post the work that raises "
		 "the event, "
		 "or arm the CQ first",
		 fd.fd);
	TEST_ASSERT_EQUAL_STRING(text, vb_last_error());
	FAILS(ETIMEDOUT, vb_sim_wait_fd(fd.fd, is_readable, &fd, 7));
	TEST_ASSERT_EQUAL_UINT64(7, vb_sim_now_ns(NULL));
	TEST_ASSERT_EQUAL_INT(EAGAIN, vb_sim_wait_fd_events(fd.fd, is_readable, &fd, 7, &left_ns));
	TEST_ASSERT_EQUAL_UINT64(7, left_ns);
	TEST_ASSERT_EQUAL_UINT64(7, vb_sim_now_ns(NULL));
	receive(&b);
	send_from(&a);
	OK(vb_sim_wait_fd(fd.fd, is_readable, &fd, VB_SIM_NEVER));
	TEST_ASSERT_EQUAL_UINT64(7 + DELAY_NS, vb_sim_now_ns(NULL));
	FAILS(EINVAL, vb_sim_wait_fd(0, is_readable, &fd, 7));
	TEST_ASSERT_EQUAL_INT(VB_WHY_WAIT_DESCRIPTOR, vb_last_reason());
	TEST_ASSERT_EQUAL_STRING("vb_sim_wait_fd: descriptor 0 is not of a world on the virtual "
				 "clock; give the descriptor of a "
				 "completion channel, of asynchronous events or of an event "
				 "channel; on the real clock, wait by "
				 "poll(2)",
				 vb_last_error());
}

static void *end_at_once(void *arg)
{
	return arg;
}

/*
 * A program may read the descriptor's count itself. Taking the event then looks at the descriptor with the world
 * locked: the look must not be a wait. A process that had a second thread takes locks.
 */
void test_a_program_reads_the_count_itself(void)
{
	struct pollfd fd = {channel_fd(&b), POLLIN, 0};
	pthread_t thread;
	uint64_t count;

	OK(pthread_create(&thread, NULL, end_at_once, NULL));
	OK(pthread_join(thread, NULL));
	receive(&b);
	send_from(&a);
	TEST_ASSERT_EQUAL_INT(1, poll(&fd, 1, -1));
	TEST_ASSERT_EQUAL_INT(sizeof(count), read(fd.fd, &count, sizeof(count)));
	alarm(20); /* a deadlock ends the test */
	take_event(&b);
	alarm(0);
	TEST_ASSERT_EQUAL_INT(0, poll(&fd, 1, 0));
}

/* A closed channel's number belongs to whoever gets it next. */
void test_a_descriptor_that_is_closed(void)
{
	struct ibv_comp_channel *channel = vb_create_comp_channel(a.device->context);
	const int fd = channel->fd;

	TEST_ASSERT_TRUE(vb_sim_has_fd(fd));
	OK(vb_destroy_comp_channel(channel));
	TEST_ASSERT_FALSE(vb_sim_has_fd(fd));
}
