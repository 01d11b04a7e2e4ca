/* SPDX-License-Identifier: MIT */
#include "src/connect/cq.h"

#include "src/connect/deadline.h"
#include "src/connect/object.h"
#include "src/verbs/inline.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <verbena/sim.h>

/* A wait polls for this time before it sleeps in the operating system. */
#define SPIN_NS 20000

struct cq {
	struct vb_cq public;
	struct vb_sim *virtual_clock; /* the world of the clock; NULL on the real clock */
};

static struct cq *private_of(const struct vb_cq *cq)
{
	return (struct cq *)cq;
}

struct vb_sim *virtual_clock_of(const struct vb_device *device)
{
	struct vb_sim *sim = vb_sim_of(device->context);

	return sim && vb_sim_clock_of(sim) == VB_SIM_CLOCK_VIRTUAL ? sim : NULL;
}

static int make(struct vb_device *device, int cqe, struct vb_cq *cq)
{
	int flags, err;

	if (cqe < 1 || cqe > device->attr.max_cqe)
		return fail(EINVAL, "cq: %d entries; the device allows 1 to %d", cqe,
			    device->attr.max_cqe);
	cq->channel = vb_create_comp_channel(device->context);
	if (!cq->channel)
		return fail_because(errno, "cq");
	/* Another thread may have taken the notification: get_cq_event must not block. */
	flags = fcntl(cq->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cq->channel->fd, F_SETFL, flags | O_NONBLOCK))
		err = fail(errno, "cq: its channel cannot be made non-blocking: %s",
			   strerrordesc_np(errno));
	else if (!(cq->cq = vb_create_cq(device->context, cqe, cq->id, cq->channel, 0)))
		err = fail_because(errno, "cq: %d entries", cqe);
	else
		return 0;
	vb_destroy_comp_channel(cq->channel);
	return err;
}

struct vb_cq *vb_cq_open(struct vb_device *device, int cqe, void *id)
{
	struct cq *cq = object_new(sizeof(*cq), "cq");
	int err;

	if (!cq)
		return NULL;
	cq->public.id = id;
	cq->virtual_clock = virtual_clock_of(device);
	err = make(device, cqe, &cq->public);
	return err ? object_drop(cq, err) : &cq->public;
}

int vb_cq_close(struct vb_cq *cq)
{
	int err;

	if (!cq)
		return 0;
	err = vb_destroy_cq(cq->cq);
	if (err)
		return fail_because(err, "cq: ending it");
	err = vb_destroy_comp_channel(cq->channel);
	free(private_of(cq));
	return err ? fail_because(err, "cq: ending its channel") : 0;
}

int vb_cq_poll(struct vb_cq *cq, struct ibv_wc *wc, int count)
{
	int taken = vb_poll_cq(cq->cq, count, wc);

	if (taken >= 0)
		return taken;
	return -fail_inline(EIO, cq->cq->context, "cq: polling it");
}

/* --- waiting --- */

uint64_t cq_now_ns(const struct vb_cq *cq)
{
	struct vb_sim *sim = private_of(cq)->virtual_clock;

	return sim ? vb_sim_now_ns(sim) : monotonic_ns();
}

uint64_t cq_deadline_ns(const struct vb_cq *cq, uint64_t timeout_ns)
{
	return timeout_ns == VB_FOREVER ? VB_FOREVER : deadline_after(cq_now_ns(cq), timeout_ns);
}

uint64_t cq_left_ns(const struct vb_cq *cq, uint64_t deadline_ns)
{
	return deadline_ns == VB_FOREVER ? VB_FOREVER : left_until(cq_now_ns(cq), deadline_ns);
}

void cq_drain(struct vb_cq *cq)
{
	struct ibv_cq *notified;
	void *id;

	while (!vb_get_cq_event(cq->channel, &notified, &id))
		vb_ack_cq_events(notified, 1);
}

static int timed_out(uint64_t timeout_ns)
{
	return -fail(ETIMEDOUT, "cq: no completion within %llu ns", (unsigned long long)timeout_ns);
}

static int wait_virtual(struct vb_cq *cq, struct ibv_wc *wc, int count, uint64_t timeout_ns)
{
	int taken = vb_sim_wait_cq(cq->cq, count, wc, timeout_ns);

	if (taken > 0)
		return taken;
	if (taken < 0)
		return -fail_inline(errno, cq->cq->context, "cq: waiting");
	return timed_out(timeout_ns);
}

int cq_look_or_sleep(struct vb_cq *cq, const struct cq_waiter *waiter, uint64_t left_ns)
{
	int taken = waiter->look(waiter->arg);
	uint64_t began_ns, passed_ns = 0;

	if (taken)
		return taken;
	for (began_ns = monotonic_ns(); passed_ns < SPIN_NS && passed_ns < left_ns;
	     passed_ns = monotonic_ns() - began_ns) {
		taken = waiter->look(waiter->arg);
		if (taken)
			return taken;
	}
	if (passed_ns >= left_ns)
		return 0;
	if (vb_req_notify_cq(cq->cq, 0))
		return -fail_inline(EIO, cq->cq->context, "cq: asking for a notification");
	/* A completion that came before the CQ was armed gives no notification. */
	taken = waiter->look(waiter->arg);
	if (taken)
		return taken;
	waiter->sleep(waiter->arg, left_ns - passed_ns);
	return waiter->look(waiter->arg);
}

struct poll_wait {
	struct vb_cq *cq;
	struct ibv_wc *wc;
	int count;
};

static int look(void *arg)
{
	const struct poll_wait *wait = arg;

	return vb_cq_poll(wait->cq, wait->wc, wait->count);
}

static void sleep_for(void *arg, uint64_t left_ns)
{
	const struct poll_wait *wait = arg;
	struct pollfd readable = {.fd = wait->cq->channel->fd, .events = POLLIN};
	struct timespec limit = timespec_of(left_ns);

	if (ppoll(&readable, 1, left_ns > INT64_MAX ? NULL : &limit, NULL) > 0)
		cq_drain(wait->cq);
}

int vb_cq_wait(struct vb_cq *cq, struct ibv_wc *wc, int count, uint64_t timeout_ns)
{
	struct poll_wait wait = {cq, wc, count};
	const struct cq_waiter waiter = {look, sleep_for, &wait};
	uint64_t deadline_ns;
	int taken;

	if (private_of(cq)->virtual_clock)
		return wait_virtual(cq, wc, count, timeout_ns);
	taken = vb_cq_poll(cq, wc, count);
	if (taken)
		return taken;
	for (deadline_ns = cq_deadline_ns(cq, timeout_ns); !taken && timeout_ns;
	     timeout_ns = cq_left_ns(cq, deadline_ns))
		taken = cq_look_or_sleep(cq, &waiter, timeout_ns);
	return taken ? taken : timed_out(timeout_ns);
}
