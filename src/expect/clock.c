/* SPDX-License-Identifier: MIT */
#include "src/expect/clock.h"

#include "src/expect/report.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define REST_NS 50000

uint64_t expect_real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void expect_rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

static bool is_virtual(struct ibv_context *context)
{
	struct vb_sim *sim = vb_sim_of(context);

	return sim && vb_sim_clock_of(sim) == VB_SIM_CLOCK_VIRTUAL;
}

static enum expect_end poll_until(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns)
{
	const uint64_t began_ns = expect_real_ns();
	int taken;

	while (!(taken = vb_poll_cq(cq, 1, wc))) {
		if (expect_real_ns() - began_ns >= timeout_ns)
			return EXPECT_TIME_UP;
		expect_rest();
	}
	return taken < 0 ? EXPECT_BROKEN : EXPECT_CAME;
}

/* Waits through events only: time does not pass the last one. */
static enum expect_end wait_virtual(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns)
{
	struct vb_sim *sim = vb_sim_of(cq->context);
	const uint64_t until_ns = vb_sim_now_ns(sim) + timeout_ns;
	uint64_t next_ns = vb_sim_now_ns(sim), now_ns;
	int taken;

	do {
		now_ns = vb_sim_now_ns(sim);
		if (next_ns > until_ns && next_ns != VB_SIM_NEVER)
			next_ns = until_ns;
		taken = vb_sim_wait_cq(cq, 1, wc,
				       next_ns == VB_SIM_NEVER ? VB_SIM_NEVER : next_ns - now_ns);
		next_ns = vb_sim_next_ns(sim);
	} while (!taken && vb_sim_now_ns(sim) < until_ns);
	if (taken >= 0)
		return taken ? EXPECT_CAME : EXPECT_TIME_UP;
	return errno == EDEADLK ? EXPECT_NOTHING_CAN_COME : EXPECT_BROKEN;
}

enum expect_end expect_wait_cq(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t timeout_ns)
{
	return is_virtual(cq->context) ? wait_virtual(cq, wc, timeout_ns)
				       : poll_until(cq, wc, timeout_ns);
}

enum expect_end expect_wait_cq_whole(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t duration_ns)
{
	int taken;

	if (!is_virtual(cq->context))
		return poll_until(cq, wc, duration_ns);
	taken = vb_sim_wait_cq(cq, 1, wc, duration_ns);
	return taken < 0 ? EXPECT_BROKEN : taken ? EXPECT_CAME : EXPECT_TIME_UP;
}

static bool is_readable(void *arg)
{
	return poll(arg, 1, 0) > 0;
}

/* The time is in milliseconds, rounded up. */
static enum expect_end poll_fd(struct pollfd *fd, uint64_t timeout_ns)
{
	const uint64_t ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);

	return poll(fd, 1, ms > INT32_MAX ? -1 : (int)ms) > 0 ? EXPECT_CAME : EXPECT_TIME_UP;
}

enum expect_end expect_wait_fd(int fd, uint64_t timeout_ns)
{
	struct pollfd wanted = {fd, POLLIN, 0};
	uint64_t left_ns;
	int err;

	if (!vb_sim_has_fd(fd))
		return poll_fd(&wanted, timeout_ns);
	err = vb_sim_wait_fd_events(fd, is_readable, &wanted, timeout_ns, &left_ns);
	if (!err)
		return EXPECT_CAME;
	if (err != EAGAIN)
		return EXPECT_BROKEN;
	/* Something is due, but later than the limit; or nothing at all, but other threads may act. */
	err = vb_sim_wait_fd(fd, is_readable, &wanted,
			     vb_sim_next_ns(NULL) == VB_SIM_NEVER ? VB_SIM_NEVER : left_ns);
	return !err		  ? EXPECT_CAME
	       : err == EDEADLK	  ? EXPECT_NOTHING_CAN_COME
	       : err == ETIMEDOUT ? EXPECT_TIME_UP
				  : EXPECT_BROKEN;
}

enum expect_end expect_wait_fd_whole(int fd, uint64_t duration_ns)
{
	struct pollfd wanted = {fd, POLLIN, 0};
	int err;

	if (!vb_sim_has_fd(fd))
		return poll_fd(&wanted, duration_ns);
	err = vb_sim_wait_fd(fd, is_readable, &wanted, duration_ns);
	return !err ? EXPECT_CAME : err == ETIMEDOUT ? EXPECT_TIME_UP : EXPECT_BROKEN;
}

/* --- what is in flight --- */

struct listing {
	unsigned int count;
};

static void list(void *arg, const struct vb_sim_finding *finding)
{
	struct listing *listing = arg;
	char text[256];

	if (finding->kind != VB_SIM_LEFT_SENDS && finding->kind != VB_SIM_LEFT_RECEIVES &&
	    finding->kind != VB_SIM_LEFT_COMPLETIONS && finding->kind != VB_SIM_DROPS)
		return;
	expect_say("%s%s: %s", listing->count++ ? "; " : "\n  in flight: ", finding->device,
		   vb_sim_finding_text(finding, text, sizeof(text)));
}

void expect_say_nothing(enum expect_end end, uint64_t timeout_ns, struct ibv_context *context)
{
	struct vb_sim *sim = context ? vb_sim_of(context) : NULL;
	struct listing listing = {0};

	if (end == EXPECT_BROKEN) {
		expect_say("; %s", vb_last_error());
		return;
	}
	if (end == EXPECT_NOTHING_CAN_COME) {
		expect_say(", and nothing can come: no packet is under way and no timer runs");
	} else {
		expect_say(" within ");
		expect_say_time(timeout_ns);
	}
	if (context && !sim)
		return;
	vb_sim_report(sim, list, &listing);
	if (!listing.count)
		expect_say("\n  in flight: nothing; no work request is posted");
}
