/* SPDX-License-Identifier: MIT */
/* vb_sim_follow(): what happens in the worlds that the process makes. */
#include "backends/sim/world/world.h"

#include <verbena/explore.h>
#include <verbena/fault.h>

static struct vb_sim_course course;
static struct sim_schedule schedule; /* of all worlds together */
static bool given;

static const struct sim_fault_rule rules[] = {
	[VB_DECIDE_DROP] = {.action = SIM_FAULT_DROP},
	[VB_DECIDE_DUPLICATE] = {.action = SIM_FAULT_DUPLICATE},
	[VB_DECIDE_DELAY] = {.action = SIM_FAULT_DELAY, .delay_ns = VB_EXPLORE_DELAY_NS},
	[VB_DECIDE_LATE] = {.action = SIM_FAULT_DELAY, .delay_ns = VB_EXPLORE_LATE_NS},
	[VB_DECIDE_CORRUPT] = {.action = SIM_FAULT_CORRUPT},
};

/* A schedule is sorted: its packets come first, by their numbers. */
static void take_steps(const struct vb_schedule *from)
{
	for (unsigned int i = 0; from && i < from->count && i < SIM_SCHEDULE_MAX; i++) {
		const struct vb_decision *decision = &from->decisions[i];

		if (decision->kind <= VB_DECIDE_CORRUPT)
			schedule.steps[schedule.count++] = (struct sim_schedule_step){
				.packet = decision->n,
				.slot = {.rule = rules[decision->kind]},
			};
	}
}

void vb_sim_follow(const struct vb_sim_course *from)
{
	given = from;
	course = from ? *from : (struct vb_sim_course){.arg = NULL};
	schedule = (struct sim_schedule){.seen = course.packets};
	take_steps(course.schedule);
	course.schedule = NULL;
}

static void tell_stuck(enum driver_stuck how, uint64_t now_ns)
{
	static const enum vb_stuck kinds[] = {
		[DRIVER_BLOCKED] = VB_STUCK_BLOCKED,
		[DRIVER_POLLING] = VB_STUCK_POLLING,
		[DRIVER_LONG] = VB_STUCK_LONG,
	};

	if (course.stuck)
		course.stuck(course.arg, kinds[how], now_ns);
}

void world_follow(struct vb_sim *world, const char **trace)
{
	if (!given || world->driver.real)
		return;
	if (course.begun)
		course.begun(course.arg);
	if (!*trace) {
		*trace = course.trace;
		world->trace_bytes_max = course.trace_bytes_max;
		world->trace_packets_max = course.trace_packets_max;
	}
	sim_fault_follow(world->driver.engine, &schedule);
	driver_watch(&world->driver, &(struct driver_patience){
					     .polls_max = course.idle_polls_max,
					     .time_ns_max = course.time_ns_max,
					     .stuck = tell_stuck,
				     });
}
