/* SPDX-License-Identifier: MIT */
/*
 * The agent: a device with one CQ for all of its connections, and what drives it.
 */
#include "src/connect/rdma/agent.h"

#include "src/base/failure.h"
#include "src/connect/cq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <verbena/sim.h>

#define COUNT(array)	 (sizeof(array) / sizeof((array)[0]))
#define NS_PER_S	 1000000000ull
#define NS_PER_MS	 1000000ull
#define TAKEN_MAX	 16
#define CACHE_LINE_BYTES 64u

/* How often a line without a descriptor is looked at on the real clock, and one with a descriptor on
 * the virtual one. */
#define LOOK_VIRTUAL_NS 10000
#define LOOK_REAL_NS	1000000

/* How often an agent that always finds something to do looks for strangers. */
#define GREET_EVERY 64

/* So long a wait polls before it sleeps in the operating system. */
#define SPIN_NS 20000

/* --- options --- */

void vb_rdma_options_init(struct vb_rdma_options *options)
{
	*options = (struct vb_rdma_options){
		.gid_index = VB_GID_INDEX_ANY,
		.message_bytes = 4096,
		.longest_bytes = 1ull << 30,
		.slots = 32,
		.connections = 16,
		.operations = 256,
		.pool_bytes = 1ull << 22,
		.peer_access = VB_MR_ALL,
		.peer_bytes = 1ull << 26,
		.peer_lease_ns = VB_FOREVER,
		.handshake_ns = 5 * NS_PER_S,
		.ack_timeout = 14,
		.retry_cnt = 7,
		.exchange = vb_rdma_exchange_tcp(),
	};
}

static int check_options(const struct vb_rdma_options *options)
{
	const struct {
		const char *name;
		uint64_t value, min, max;
	} ranges[] = {
		{"message_bytes", options->message_bytes, MESSAGE_MIN_BYTES, MESSAGE_MAX_BYTES},
		{"longest_bytes", options->longest_bytes, 0, UINT64_MAX / 2},
		{"slots", options->slots, 2, SLOTS_MAX},
		{"connections", options->connections, 1, 65536},
		{"operations", options->operations, 1, 1u << 20},
		{"pool_bytes", options->pool_bytes, 4096, SIZE_MAX / 4},
		{"peer_access", options->peer_access, 0, VB_MR_ALL},
	};

	for (size_t i = 0; i < COUNT(ranges); i++)
		if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max)
			return fail(ERANGE, "agent: %s %llu is not in %llu to %llu", ranges[i].name,
				    (unsigned long long)ranges[i].value,
				    (unsigned long long)ranges[i].min,
				    (unsigned long long)ranges[i].max);
	if (!options->exchange)
		return fail(EINVAL, "agent: no exchange");
	return 0;
}

/* --- making --- */

static struct vb_device *open_device(const struct vb_rdma_options *options)
{
	const struct vb_device_info *first;
	struct vb_device *device = NULL;
	struct vb_devices *devices;

	if (options->device)
		return vb_device_open_named(options->backend, options->device, options->port_num,
					    options->gid_index);
	devices = vb_devices_get(options->backend);
	if (!devices)
		return NULL;
	first = vb_devices_at(devices, 0);
	if (first)
		device = vb_device_open(first->device, options->port_num, options->gid_index);
	vb_devices_put(devices);
	return device;
}

static int make_verbs(struct vb_rdma_agent *agent)
{
	uint64_t each = agent->options.slots + CONTROL_RECEIVES + SENDS + FLIGHTS;
	uint64_t cqe = each * agent->options.connections;
	struct vb_sim *sim;

	agent->device = open_device(&agent->options);
	if (!agent->device)
		return errno;
	sim = vb_sim_of(agent->device->context);
	if (sim && vb_sim_clock_of(sim) == VB_SIM_CLOCK_VIRTUAL)
		agent->virtual_clock = sim;
	if (agent->virtual_clock && agent->options.thread)
		return fail(ENOTSUP, "agent: no thread of its own on a virtual clock");
	if (cqe > (uint64_t)agent->device->attr.max_cqe)
		return fail(EINVAL, "agent: %u connections of %llu entries; the CQ holds %d",
			    agent->options.connections, (unsigned long long)each,
			    agent->device->attr.max_cqe);
	agent->pd = vb_alloc_pd(agent->device->context);
	if (!agent->pd)
		return fail_because(errno, "agent");
	agent->cq = vb_cq_open(agent->device, (int)cqe, NULL);
	return agent->cq ? 0 : errno;
}

void agent_watch(struct vb_rdma_agent *agent, int fd, bool writable, bool known)
{
	struct epoll_event event = {.events = writable ? EPOLLOUT : EPOLLIN, .data.fd = fd};

	if (fd >= 0)
		epoll_ctl(agent->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

static int make_waiting(struct vb_rdma_agent *agent)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&agent->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&agent->ended, &attr);
	pthread_condattr_destroy(&attr);
	agent->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	agent->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->wake_fd < 0 || agent->epoll_fd < 0)
		return fail(errno, "agent: a descriptor: %s", strerrordesc_np(errno));
	agent_watch(agent, agent->wake_fd, false, false);
	agent_watch(agent, agent->cq->channel->fd, false, false);
	return 0;
}

static int make_tables(struct vb_rdma_agent *agent)
{
	uint32_t count = agent->options.connections;

	agent->connections = calloc(count, sizeof(struct vb_rdma *));
	agent->generations = calloc(count, sizeof(*agent->generations));
	if (!agent->connections || !agent->generations)
		return fail(ENOMEM, "agent: no memory for %u connections", count);
	return ops_make(agent);
}

static void agent_free(struct vb_rdma_agent *agent)
{
	pool_close(&agent->pool);
	vb_cq_close(agent->cq);
	if (agent->pd)
		vb_dealloc_pd(agent->pd);
	if (agent->device)
		vb_device_close(agent->device);
	if (agent->epoll_fd >= 0)
		close(agent->epoll_fd);
	if (agent->wake_fd >= 0)
		close(agent->wake_fd);
	pthread_cond_destroy(&agent->ended);
	pthread_mutex_destroy(&agent->lock);
	free(agent->connections);
	free(agent->generations);
	free(agent->ops);
	free(agent);
}

/* --- driving --- */

uint64_t agent_now_ns(const struct vb_rdma_agent *agent)
{
	return cq_now_ns(agent->cq);
}

void agent_remind(struct vb_rdma_agent *agent, uint64_t at_ns)
{
	if (at_ns < agent->soonest_ns)
		agent->soonest_ns = at_ns;
}

/* The lease or handshake that ends soonest may have ended. */
static void look_at_clock(struct vb_rdma_agent *agent)
{
	uint64_t now_ns = agent_now_ns(agent);

	if (now_ns < agent->soonest_ns)
		return;
	agent->soonest_ns = VB_FOREVER;
	for (uint32_t i = 0; i < agent->options.connections; i++)
		if (agent->connections[i])
			memory_expire(agent->connections[i], now_ns);
}

static int handle(struct vb_rdma_agent *agent, const struct ibv_wc *wc, int taken)
{
	for (int i = 0; i < taken; i++)
		connection_completion(agent, &wc[i]);
	return taken;
}

/* What is there, once. On a virtual clock an empty poll moves time. Returns completions. */
static int look(struct vb_rdma_agent *agent)
{
	struct ibv_wc wc[TAKEN_MAX];

	return handle(agent, wc, ibv_poll_cq(agent->cq->cq, TAKEN_MAX, wc));
}

/* Strangers wait while there is traffic, but not for ever. */
static bool is_time_to_greet(struct vb_rdma_agent *agent, bool is_idle)
{
	if (agent->shaking || agent->accepts)
		return true;
	return agent->listeners && (is_idle || agent->drives++ % GREET_EVERY == 0);
}

static void look_around(struct vb_rdma_agent *agent, bool is_idle)
{
	if (agent->soonest_ns != VB_FOREVER)
		look_at_clock(agent);
	if (is_time_to_greet(agent, is_idle))
		greet_step(agent);
	if (agent->callbacks.first)
		ops_deliver(agent);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Lines and listeners without a descriptor must be looked at. */
static bool has_no_descriptors(const struct vb_rdma_agent *agent)
{
	const struct vb_rdma_listener *first = agent->listeners;

	if (agent->shaking)
		return agent->shaking->line_fd < 0;
	return first && agent->options.exchange->listener_descriptor(first->listener) < 0;
}

void agent_tell(const struct vb_rdma_agent *agent)
{
	if (agent->virtual_clock)
		vb_sim_tell(agent->virtual_clock);
}

/* For completions, and for what agents tell of lines. What has descriptors may move without a word
 * and from outside of the world, where no time can be known to bring nothing. */
static int wait_for_lines(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns)
{
	uint64_t told = vb_sim_told(agent->virtual_clock);
	int taken;

	greet_step(agent);
	if (!has_no_descriptors(agent))
		left_ns = sooner(left_ns, LOOK_VIRTUAL_NS);
	taken = vb_sim_wait_cq_told(agent->cq->cq, TAKEN_MAX, wc, left_ns, told);
	if (taken < 0)
		return -errno;
	return taken ? taken : -ETIMEDOUT;
}

static int wait_virtual(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	uint64_t left_ns = cq_left_ns(agent->cq, sooner(deadline_ns, agent->soonest_ns));
	struct ibv_wc wc[TAKEN_MAX];
	int taken;

	if (agent->shaking || agent->accepts) {
		taken = wait_for_lines(agent, wc, left_ns);
	} else {
		/* A plain poll costs least, and may move time where there is no limit. */
		if (left_ns == VB_FOREVER && look(agent) > 0)
			return 0;
		taken = vb_cq_wait(agent->cq, wc, TAKEN_MAX, left_ns);
	}
	if (taken < 0 && taken != -ETIMEDOUT)
		return -taken;
	handle(agent, wc, taken);
	return taken < 0 ? ETIMEDOUT : 0;
}

static void sleep_for(struct vb_rdma_agent *agent, uint64_t left_ns)
{
	struct timespec limit = {.tv_sec = (time_t)(left_ns / NS_PER_S),
				 .tv_nsec = (long)(left_ns % NS_PER_S)};
	struct epoll_event event;
	struct ibv_cq *told;
	uint64_t wakes;
	void *id;

	agent_unlock(agent);
	epoll_pwait2(agent->epoll_fd, &event, 1, left_ns > INT64_MAX ? NULL : &limit, NULL);
	agent_lock(agent);
	if (read(agent->wake_fd, &wakes, sizeof(wakes)) < 0)
		wakes = 0;
	while (!vb_get_cq_event(agent->cq->channel, &told, &id))
		vb_ack_cq_events(told, 1);
}

static int wait_real(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	uint64_t began_ns, left_ns;

	if (look(agent))
		return 0;
	for (began_ns = agent_now_ns(agent); agent_now_ns(agent) - began_ns < SPIN_NS;)
		if (look(agent))
			return 0;
	if (vb_req_notify_cq(agent->cq->cq, 0))
		return fail(EIO, "agent: the CQ cannot be armed");
	if (look(agent))
		return 0;
	left_ns = cq_left_ns(agent->cq, sooner(deadline_ns, agent->soonest_ns));
	if (has_no_descriptors(agent))
		left_ns = sooner(left_ns, LOOK_REAL_NS);
	if (left_ns)
		sleep_for(agent, left_ns);
	return look(agent) ? 0 : ETIMEDOUT;
}

/* ETIMEDOUT only where time is over. A deadline of 0 looks once. */
int agent_wait(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	int err = 0;

	if (!deadline_ns)
		err = look(agent) > 0 ? 0 : ETIMEDOUT;
	else if (agent->virtual_clock)
		err = wait_virtual(agent, deadline_ns);
	else
		err = wait_real(agent, deadline_ns);
	look_around(agent, err);
	if (!deadline_ns)
		return ETIMEDOUT;
	return err == ETIMEDOUT && cq_left_ns(agent->cq, deadline_ns) ? 0 : err;
}

void agent_wake(struct vb_rdma_agent *agent)
{
	const uint64_t one = 1;

	if (write(agent->wake_fd, &one, sizeof(one)) < 0)
		return; /* it is awake: the counter is full */
}

static void *agent_thread(void *arg)
{
	struct vb_rdma_agent *agent = arg;

	agent_lock(agent);
	while (!agent->stopping)
		agent_wait(agent, VB_FOREVER);
	agent_unlock(agent);
	return NULL;
}

/* --- the public functions --- */

static int agent_make(struct vb_rdma_agent *agent)
{
	int err = check_options(&agent->options);

	if (!err)
		err = make_verbs(agent);
	if (!err)
		err = make_waiting(agent);
	if (!err)
		err = make_tables(agent);
	if (err || !agent->options.thread)
		return err;
	agent->threaded = true;
	err = pthread_create(&agent->thread, NULL, agent_thread, agent);
	return err ? fail(err, "agent: its thread: %s", strerrordesc_np(err)) : 0;
}

struct vb_rdma_agent *vb_rdma_agent_open(const struct vb_rdma_options *options)
{
	struct vb_rdma_agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent) {
		fail(ENOMEM, "agent: no memory");
		return NULL;
	}
	agent->options = *options;
	/* What follows the messages is aligned for atomics. */
	agent->options.message_bytes &= ~7u;
	/* An odd number of cache lines: buffers of a power of two would begin in the same few. */
	agent->stride_bytes =
		(agent->options.message_bytes / CACHE_LINE_BYTES | 1) * CACHE_LINE_BYTES;
	if (agent->stride_bytes < agent->options.message_bytes)
		agent->stride_bytes += 2 * CACHE_LINE_BYTES;
	agent->epoll_fd = agent->wake_fd = -1;
	agent->soonest_ns = VB_FOREVER;
	agent->pool.piece_bytes = options->pool_bytes;
	err = agent_make(agent);
	if (!err)
		return agent;
	agent_free(agent);
	errno = err;
	return NULL;
}

int vb_rdma_agent_close(struct vb_rdma_agent *agent)
{
	uint32_t left;

	if (!agent)
		return 0;
	agent_lock(agent);
	left = agent->connection_count + agent->locals + agent->remotes + !!agent->listeners;
	agent->stopping = !left;
	agent_unlock(agent);
	if (left)
		return fail(EBUSY, "agent: it has %u connections, %u local and %u remote regions%s",
			    agent->connection_count, agent->locals, agent->remotes,
			    agent->listeners ? ", and listeners" : "");
	if (agent->threaded) {
		agent_wake(agent);
		pthread_join(agent->thread, NULL);
	}
	agent_free(agent);
	return 0;
}

struct vb_device *vb_rdma_agent_device(const struct vb_rdma_agent *agent)
{
	return agent->device;
}

int vb_rdma_progress(struct vb_rdma_agent *agent, uint64_t timeout_ns)
{
	int err;

	if (agent->threaded)
		return 0;
	err = agent_wait(agent, timeout_ns ? cq_deadline_ns(agent->cq, timeout_ns) : 0);
	return err == ETIMEDOUT && !timeout_ns ? 0 : err;
}

int vb_rdma_descriptor(const struct vb_rdma_agent *agent)
{
	return agent->epoll_fd;
}

int vb_rdma_arm(struct vb_rdma_agent *agent)
{
	struct ibv_cq *told;
	void *id;

	if (agent->threaded || agent->virtual_clock)
		return fail(ENOTSUP, "agent: it has %s",
			    agent->threaded ? "a thread of its own" : "a virtual clock");
	while (!vb_get_cq_event(agent->cq->channel, &told, &id))
		vb_ack_cq_events(told, 1);
	if (vb_req_notify_cq(agent->cq->cq, 0))
		return fail(EIO, "agent: the CQ cannot be armed");
	/* What came before it was armed gives no event. */
	if (look(agent))
		agent_wake(agent);
	look_around(agent, true);
	return 0;
}

struct vb_local_mr *vb_alloc_local_mr(struct vb_rdma_agent *agent, size_t length_bytes,
				      size_t align_bytes)
{
	struct vb_local_mr *mr;

	agent_lock(agent);
	mr = pool_alloc(agent, length_bytes, align_bytes);
	agent_unlock(agent);
	return mr;
}

void *vb_local_mr_addr(const struct vb_local_mr *mr)
{
	return mr->addr;
}

size_t vb_local_mr_bytes(const struct vb_local_mr *mr)
{
	return mr->length_bytes;
}

struct vb_local_mr *vb_local_mr_get(struct vb_local_mr *mr)
{
	agent_lock(mr->agent);
	mr->references++;
	agent_unlock(mr->agent);
	return mr;
}

void vb_local_mr_put(struct vb_local_mr *mr)
{
	struct vb_rdma_agent *agent;

	if (!mr)
		return;
	agent = mr->agent;
	agent_lock(agent);
	local_put(mr);
	agent_unlock(agent);
}
