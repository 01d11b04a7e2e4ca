/* SPDX-License-Identifier: MIT */
/*
 * What ends the sleep of an agent and of the threads that wait for its thread.
 */
#include "src/connect/rdma/agent.h"

#include "src/connect/deadline.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int agent_make_waiting(struct vb_rdma_agent *agent)
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

void agent_watch(struct vb_rdma_agent *agent, int fd, bool writable, bool changes)
{
	struct epoll_event event = {.events = writable ? EPOLLOUT : EPOLLIN, .data.fd = fd};

	if (fd >= 0)
		epoll_ctl(agent->epoll_fd, changes ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

void agent_wake(struct vb_rdma_agent *agent)
{
	const uint64_t one = 1;

	if (write(agent->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the agent is awake */
}

void agent_relock(void *agent)
{
	agent_lock(agent);
}

void agent_leave(void *agent)
{
	agent_unlock(agent);
}

void agent_sleep(struct vb_rdma_agent *agent, uint64_t left_ns)
{
	struct timespec limit = timespec_of(left_ns);
	struct epoll_event event;
	uint64_t wakes;

	agent_unlock(agent);
	pthread_cleanup_push(agent_relock, agent);
	epoll_pwait2(agent->epoll_fd, &event, 1, left_ns > INT64_MAX ? NULL : &limit, NULL);
	pthread_cleanup_pop(true);
	if (read(agent->wake_fd, &wakes, sizeof(wakes)) < 0)
		wakes = 0;
	cq_drain(agent->cq);
}

void agent_notify(struct vb_rdma_agent *agent)
{
	if (agent->threaded)
		pthread_cond_broadcast(&agent->ended);
}

int agent_wait_for_thread(struct vb_rdma_agent *agent, uint64_t deadline_ns)
{
	struct timespec limit = timespec_of(deadline_ns);
	int state = agent->cancel_state;
	int err;

	if (state >= 0)
		pthread_setcancelstate(state, NULL);
	if (deadline_ns == VB_FOREVER)
		err = pthread_cond_wait(&agent->ended, &agent->lock);
	else
		err = pthread_cond_timedwait(&agent->ended, &agent->lock, &limit);
	if (state >= 0)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	/* Other threads have had the lock meanwhile. */
	agent->cancel_state = state;
	return err ? ETIMEDOUT : 0;
}
