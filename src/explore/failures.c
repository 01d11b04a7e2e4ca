/* SPDX-License-Identifier: MIT */
#include "src/explore/failures.h"

#include <string.h>
#include <verbena/fault.h>

/* The rules of one kind: those that fail, and one behind them that counts. */
struct failures {
	unsigned int ids[VB_SCHEDULE_MAX + 1];
	unsigned int count;
};

static struct failures all[COUNTED];

static const enum vb_fail_action actions[] = {
	[COUNTED_CALLS] = VB_FAIL_CALL,
	[COUNTED_ALLOCATIONS] = VB_FAIL_ALLOCATION,
};

static void add(struct failures *failures, enum counted counted, uint64_t skip)
{
	const struct vb_fail_rule rule = {.action = actions[counted], .skip = skip, .count = 1};

	if (!vb_fail_add(&rule, &failures->ids[failures->count]))
		failures->count++;
}

/* A rule does not see the calls that rules before it make fail. */
static void add_all(const struct vb_schedule *schedule, enum counted counted)
{
	struct failures *failures = &all[counted];

	for (unsigned int i = 0; i < schedule->count; i++)
		if (schedule_counted(schedule->decisions[i].kind) == counted)
			add(failures, counted, schedule->decisions[i].n - 1 - failures->count);
	add(failures, counted, UINT64_MAX);
}

static bool is_counted(const struct vb_schedule *schedule, unsigned int kinds, enum counted counted)
{
	for (unsigned int kind = 0; kind < VB_DECISION_KINDS; kind++)
		if (kinds & 1u << kind && schedule_counted(kind) == counted)
			return true;
	for (unsigned int i = 0; i < schedule->count; i++)
		if (schedule_counted(schedule->decisions[i].kind) == counted)
			return true;
	return false;
}

void failures_begin(const struct vb_schedule *schedule, unsigned int kinds)
{
	memset(all, 0, sizeof(all));
	for (enum counted i = COUNTED_CALLS; i < COUNTED; i++)
		if (is_counted(schedule, kinds, i))
			add_all(schedule, i);
}

void failures_end(uint64_t seen[COUNTED])
{
	for (enum counted counted = COUNTED_CALLS; counted < COUNTED; counted++) {
		const struct failures *failures = &all[counted];

		/* The last rule has seen all calls but those that have failed. */
		for (unsigned int i = 0; i < failures->count; i++)
			seen[counted] += i + 1 < failures->count ? vb_fail_hits(failures->ids[i])
								 : vb_fail_seen(failures->ids[i]);
	}
	vb_fail_clear();
}
