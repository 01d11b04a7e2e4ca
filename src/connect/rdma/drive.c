/* SPDX-License-Identifier: MIT */
/*
 * Driving an agent: completions, lines, leases and callbacks, and the wait for them.
 */
#include "src/connect/rdma/agent.h"

#include "src/connect/deadline.h"

#define TAKEN_MAX 16

/* The time between two looks at a line with a descriptor on the virtual clock, and at a line
 * without one on the real clock. */
#define LOOK_VIRTUAL_NS 10000
#define LOOK_REAL_NS	1000000

/* A busy agent looks for new lines once in this many drives. */
#define GREET_EVERY 64

/* Ends the leases that are over. */
static void look_at_clock(struct vb_rdma_agent *agent)
{
	uint64_t now_ns = agent_now_ns(agent);

	if (now_ns < agent->soonest_ns)
		return;
	agent->soonest_ns = VB_FOREVER;
	for (uint32_t i = 0; i < agent->connections.count; i++) {
		struct vb_rdma *rdma = handle_object(&agent->connections, i);

		if (!rdma)
			continue;
		grants_expire(rdma, now_ns);
		if (rdma->line)
			agent_remind(agent, rdma->line_ends_ns);
	}
}

static int handle(struct vb_rdma_agent *agent, const struct ibv_wc *wc, int taken)
{
	for (int i = 0; i < taken; i++)
		connection_completion(agent, &wc[i]);
	return taken;
}

/* Calls a wait for completions without the lock, so that the thread can be cancelled in it. */
static int wait_unlocked(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns,
			 int (*wait)(struct vb_rdma_agent *agent, struct ibv_wc *wc,
				     uint64_t left_ns))
{
	int taken;

	if (__libc_single_threaded)
		return wait(agent, wc, left_ns);
	agent_unlock(agent);
	pthread_cleanup_push(agent_relock, agent);
	taken = wait(agent, wc, left_ns);
	pthread_cleanup_pop(true);
	return taken;
}

static int poll_cq(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns)
{
	return ibv_poll_cq(agent->cq->cq, TAKEN_MAX, wc);
}

/* Polls the CQ once. On a virtual clock a poll that finds nothing advances time, or waits for other
 * threads. Returns the number of completions, or a negative number. */
static int look(struct vb_rdma_agent *agent)
{
	struct ibv_wc wc[TAKEN_MAX];

	return handle(agent, wc,
		      agent->virtual_clock ? wait_unlocked(agent, wc, 0, poll_cq)
					   : poll_cq(agent, wc, 0));
}

/* Returns true while an operation waits for a line or a connection. */
static bool needs_lines(const struct vb_rdma_agent *agent)
{
	const struct vb_rdma_listener *listener = agent->listeners;

	while (listener && !listener->accepts.first)
		listener = listener->next;
	return agent->shaking || listener;
}

/* Returns true if lines are to be looked at: while traffic flows, only now and then. */
static bool is_time_to_greet(struct vb_rdma_agent *agent, bool is_idle)
{
	if (needs_lines(agent))
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

/* Returns true if lines cannot wake the agent, since they have no descriptors. */
static bool has_no_descriptors(const struct vb_rdma_agent *agent)
{
	const struct vb_rdma_listener *first = agent->listeners;

	if (agent->shaking)
		return agent->shaking->line_fd < 0;
	return first && agent->options.exchange->listener_descriptor(first->listener) < 0;
}

static int wait_told(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns)
{
	int taken = vb_sim_wait_cq_told(agent->cq->cq, TAKEN_MAX, wc, left_ns, agent->told);

	if (taken < 0)
		return -errno;
	return taken ? taken : -ETIMEDOUT;
}

static int wait_cq(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns)
{
	return vb_cq_wait(agent->cq, wc, TAKEN_MAX, left_ns);
}

/* Waits for completions and for vb_sim_tell(). Lines with descriptors may move without a call of
 * vb_sim_tell(), from outside of the world: these waits are short, and never end in EDEADLK. */
static int wait_for_lines(struct vb_rdma_agent *agent, struct ibv_wc *wc, uint64_t left_ns)
{
	agent->told = vb_sim_told(agent->virtual_clock);
	greet_step(agent);
	if (!has_no_descriptors(agent))
		left_ns = sooner(left_ns, LOOK_VIRTUAL_NS);
	return wait_unlocked(agent, wc, left_ns, wait_told);
}

static int wait_virtual(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	uint64_t left_ns = cq_left_ns(agent->cq, sooner(deadline_ns, agent->soonest_ns));
	struct ibv_wc wc[TAKEN_MAX];
	int taken;

	if (needs_lines(agent)) {
		taken = wait_for_lines(agent, wc, left_ns);
	} else {
		/* A plain poll is cheapest; it may advance time, so it needs a wait without
		 * limit. */
		if (left_ns == VB_FOREVER && look(agent) > 0)
			return 0;
		taken = wait_unlocked(agent, wc, left_ns, wait_cq);
	}
	if (taken < 0 && taken != -ETIMEDOUT)
		return -taken;
	handle(agent, wc, taken);
	return taken < 0 ? ETIMEDOUT : 0;
}

static int look_again(void *arg)
{
	int taken = look(arg);

	return taken < 0 ? -fail(EIO, "agent: its CQ has overrun") : taken;
}

static void sleep_for(void *arg, uint64_t left_ns)
{
	agent_sleep(arg, left_ns);
}

static int wait_real(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	uint64_t left_ns = cq_left_ns(agent->cq, sooner(deadline_ns, agent->soonest_ns));
	const struct cq_waiter waiter = {look_again, sleep_for, agent};
	int taken;

	if (has_no_descriptors(agent))
		left_ns = sooner(left_ns, LOOK_REAL_NS);
	taken = cq_look_or_sleep(agent->cq, &waiter, left_ns);
	return taken < 0 ? -taken : taken ? 0 : ETIMEDOUT;
}

int agent_drive(struct vb_rdma_agent *agent, uint64_t deadline_ns)
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

int agent_wait(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	return agent->threaded ? agent_wait_for_thread(agent, deadline_ns)
			       : agent_drive(agent, deadline_ns);
}

int vb_rdma_progress(struct vb_rdma_agent *agent, uint64_t timeout_ns)
{
	int err;

	if (agent->threaded)
		return 0;
	agent_lock(agent);
	pthread_cleanup_push(agent_leave, agent);
	err = agent_drive(agent, timeout_ns ? cq_deadline_ns(agent->cq, timeout_ns) : 0);
	pthread_cleanup_pop(true);
	return err == ETIMEDOUT && !timeout_ns ? 0 : err;
}

int vb_rdma_descriptor(const struct vb_rdma_agent *agent)
{
	return agent->epoll_fd;
}

int vb_rdma_arm(struct vb_rdma_agent *agent)
{
	int err;

	if (agent->threaded || agent->virtual_clock)
		return fail(ENOTSUP, "agent: it has %s",
			    agent->threaded ? "a thread of its own" : "a virtual clock");
	agent_lock(agent);
	cq_drain(agent->cq);
	err = vb_req_notify_cq(agent->cq->cq, 0);
	if (!err) {
		/* A completion that came before the CQ was armed gives no notification. */
		if (look(agent))
			agent_wake(agent);
		look_around(agent, true);
	}
	agent_unlock(agent);
	return err ? fail(EIO, "agent: the CQ cannot be armed") : 0;
}
