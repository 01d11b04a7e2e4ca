/* SPDX-License-Identifier: MIT */
/* What the files of exploration know of schedules, beside <verbena/explore.h>. */
#ifndef SRC_EXPLORE_SCHEDULE_H
#define SRC_EXPLORE_SCHEDULE_H

#include <verbena/explore.h>

/* What the numbers of decisions count. */
enum counted {
	COUNTED_PACKETS,
	COUNTED_CALLS,
	COUNTED_ALLOCATIONS,
	COUNTED,
};

enum counted schedule_counted(enum vb_decision_kind kind);

/* Sorts the decisions; returns false if two of them are of one packet, call or allocation. */
bool schedule_sort(struct vb_schedule *schedule);

/* Adds a decision behind the others, unless there is one of its packet, call or allocation. */
void schedule_add(struct vb_schedule *schedule, struct vb_decision decision);

#endif /* SRC_EXPLORE_SCHEDULE_H */
