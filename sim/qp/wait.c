/* SPDX-License-Identifier: MIT */
/*
 * Waiting: when the timers of a QP run out, and what an ack timeout does.
 */
#include "sim/profile/waits.h"
#include "sim/qp/private.h"
#include "sim/wire/timing.h"

#define US UINT64_C(1000)

/* The kernel's timer wheel has levels of 64 buckets; a bucket of a level is 8 times as long as one of
 * the level before. A timer fires at the end of the bucket in which it would have to fire: Linux
 * kernel/time/timer.c, calc_index. */
#define WHEEL_LEVEL_TICKS 63u
#define WHEEL_LEVEL_SHIFT 3u

static uint64_t tick_after(uint64_t now_ns, uint64_t ticks)
{
	uint64_t expires = now_ns / sim_tick_ns + (ticks ? ticks : 1);
	unsigned int shift = 0;

	for (uint64_t end = WHEEL_LEVEL_TICKS; ticks >= end; end <<= WHEEL_LEVEL_SHIFT)
		shift += WHEEL_LEVEL_SHIFT;
	return (((expires >> shift) + 1) << shift) * sim_tick_ns;
}

void sim_qp_note_timer(struct sim_qp *qp, const char *timer, const char *what, uint64_t wait_ns,
		       unsigned int retries_left)
{
	enum { PSN, WAIT, RETRIES };
	struct vb_event event = {
		.kind = VB_EVENT_TIMER,
		.values = {[PSN] = qp->comp.psn, [WAIT] = wait_ns, [RETRIES] = retries_left},
		.absent = wait_ns ? 0 : 1u << WAIT,
		.texts = {timer, what},
	};

	sim_qp_note(qp, &event);
}

/* Linux drivers/infiniband/sw/rxe/rxe_comp.c, rnrnak_jiffies: usecs_to_jiffies rounds up. */
uint64_t sim_wait_rnr_deadline(const struct sim_qp *qp, unsigned int timer_code)
{
	const uint64_t now_ns = sim_clock_now_ns(&qp->engine->clock);
	const uint64_t ns = sim_rnr_timer_ns(timer_code);

	if (!qp->device->quirks.timers_tick)
		return now_ns + ns;
	return tick_after(now_ns, (ns + sim_tick_ns - 1) / sim_tick_ns);
}

/* The timeout that a QP with ack_timeout_floor has. */
static uint64_t floored_ns(const struct sim_qp *qp)
{
	return sim_ack_timeout_ns(qp->timeout < sim_ack_floor.lowest ? sim_ack_floor.lowest
								     : qp->timeout);
}

/* Returns how many early waits the adapter takes. */
static unsigned int early_waits(const struct sim_qp *qp)
{
	const uint64_t longest_ns = floored_ns(qp) + sim_ack_floor.tolerance_us * US;
	unsigned int count = 0;

	while (count < sim_ack_floor.early_count &&
	       sim_ack_floor.early_us[count] * US <= longest_ns)
		count++;
	return count;
}

static uint64_t floor_wait_ns(const struct sim_qp *qp)
{
	const uint64_t regular_ns = sim_ack_floor.timeouts * floored_ns(qp);
	const unsigned int early = early_waits(qp);
	const unsigned int at = qp->comp.timeouts;
	uint64_t next_ns;

	if (at > early || at >= sim_ack_floor.early_count)
		return regular_ns;
	/* The first regular wait ends with the next early one, if that is shorter. */
	next_ns = sim_ack_floor.early_us[at] * US;
	return at == early && next_ns > regular_ns ? regular_ns : next_ns;
}

static uint64_t ack_wait_ns(const struct sim_qp *qp)
{
	const struct sim_quirks *quirks = &qp->device->quirks;
	const uint64_t timeout_ns = sim_ack_timeout_ns(qp->timeout);

	if (quirks->ack_timeout_floor)
		return floor_wait_ns(qp);
	if (quirks->first_timeout_repeats_nothing && qp->comp.timeouts == 0)
		return timeout_ns * sim_first_wait_percent[qp->timeout] / 100;
	return timeout_ns;
}

/* Linux drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_from_attr: nsecs_to_jiffies rounds down. */
uint64_t sim_wait_ack_deadline(const struct sim_qp *qp)
{
	const uint64_t now_ns = sim_clock_now_ns(&qp->engine->clock);
	const uint64_t ns = ack_wait_ns(qp);

	return qp->device->quirks.timers_tick ? tick_after(now_ns, ns / sim_tick_ns) : now_ns + ns;
}

enum sim_timeout sim_wait_over(const struct sim_qp *qp)
{
	const struct sim_quirks *quirks = &qp->device->quirks;

	if (quirks->ack_timeout_floor) {
		if (qp->comp.timeouts + 1u < early_waits(qp))
			return SIM_TIMEOUT_REPEATS;
		return SIM_TIMEOUT_KEEPS_ONE;
	}
	if (quirks->first_timeout_repeats_nothing && qp->comp.timeouts == 0)
		return SIM_TIMEOUT_WAITS;
	return SIM_TIMEOUT_RETRIES;
}

uint8_t sim_wait_retries(const struct sim_qp *qp)
{
	return !qp->retry_cnt && qp->device->quirks.ack_timeout_floor ? sim_ack_floor.retries_for_0
								      : qp->retry_cnt;
}
