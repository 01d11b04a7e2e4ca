/* SPDX-License-Identifier: MIT */
/*
 * The quirk completions_come_late: an entry of a CQ can be polled some time after it was added. Hidden entries
 * stand in the ring behind the head, in their order. While an entry is added, the head is behind them.
 */
#include "sim/object/cq.h"

#include "sim/base/core.h"
#include "sim/object/device.h"

#include <stddef.h>

/* The time from the first hidden entry on, after which all can be polled. */
#define LATE_NS 30000u

static void late_over(struct sim_timer *timer)
{
	sim_cq_reveal((struct sim_cq *)((char *)timer - offsetof(struct sim_cq, late.timer)));
}

int sim_cq_make_late(struct sim_cq *cq)
{
	cq->armed |= SIM_CQ_LATE;
	cq->room = 0;
	sim_timer_init(&cq->late.timer, late_over);
	return sim_clock_reserve(&cq->device->engine->clock);
}

void sim_cq_end_late(struct sim_cq *cq)
{
	if (!(cq->armed & SIM_CQ_LATE))
		return;
	cq->head += cq->late.hidden;
	cq->late.hidden = 0;
	sim_clock_release(&cq->device->engine->clock, &cq->late.timer);
}

bool sim_cq_open_late(struct sim_cq *cq)
{
	if (sim_cq_count(cq) + cq->late.hidden >= cq->size) {
		sim_cq_reveal(cq);
		return false;
	}
	cq->head += cq->late.hidden;
	return true;
}

void sim_cq_hide(struct sim_cq *cq)
{
	struct sim_clock *clock = &cq->device->engine->clock;

	if (!cq->late.hidden++)
		sim_timer_arm(clock, &cq->late.timer, sim_clock_now_ns(clock) + LATE_NS);
	cq->head -= cq->late.hidden;
}
