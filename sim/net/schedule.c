/* SPDX-License-Identifier: MIT */
#include "sim/net/schedule.h"

const struct sim_fault_rule *sim_schedule_offer(struct sim_schedule *schedule)
{
	const struct sim_schedule_step *step = &schedule->steps[schedule->next];

	schedule->packets++;
	if (schedule->seen && *schedule->seen < schedule->packets)
		*schedule->seen = schedule->packets;
	if (schedule->next == schedule->count || step->packet != schedule->packets)
		return NULL;
	schedule->next++;
	return &step->slot.rule;
}
