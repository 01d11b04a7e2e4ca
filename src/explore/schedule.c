/* SPDX-License-Identifier: MIT */
/* Schedules as text. */
#include "src/explore/schedule.h"

#include "src/base/count.h"
#include "src/base/failure.h"
#include "src/base/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY "none"

static const char *const names[] = {
	[VB_DECIDE_DROP] = "drop",	  [VB_DECIDE_DUPLICATE] = "duplicate",
	[VB_DECIDE_DELAY] = "delay",	  [VB_DECIDE_LATE] = "late",
	[VB_DECIDE_CORRUPT] = "corrupt",  [VB_DECIDE_CALL] = "call",
	[VB_DECIDE_ALLOCATION] = "alloc",
};

const char *vb_decision_name(unsigned int kind)
{
	return kind < COUNT(names) ? names[kind] : NULL;
}

enum counted schedule_counted(enum vb_decision_kind kind)
{
	if (kind == VB_DECIDE_CALL)
		return COUNTED_CALLS;
	return kind == VB_DECIDE_ALLOCATION ? COUNTED_ALLOCATIONS : COUNTED_PACKETS;
}

static int in_order(const void *a, const void *b)
{
	const struct vb_decision *x = a, *y = b;
	const enum counted of_x = schedule_counted(x->kind), of_y = schedule_counted(y->kind);

	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	return (x->n > y->n) - (x->n < y->n);
}

bool schedule_sort(struct vb_schedule *schedule)
{
	qsort(schedule->decisions, schedule->count, sizeof(*schedule->decisions), in_order);
	for (unsigned int i = 1; i < schedule->count; i++)
		if (!in_order(&schedule->decisions[i - 1], &schedule->decisions[i]))
			return false;
	return true;
}

void schedule_add(struct vb_schedule *schedule, struct vb_decision decision)
{
	for (unsigned int i = 0; i < schedule->count; i++)
		if (!in_order(&schedule->decisions[i], &decision))
			return;
	schedule->decisions[schedule->count++] = decision;
}

/* Reads "drop:3" of length bytes. */
static bool read_decision(const char *text, size_t length, struct vb_decision *decision)
{
	const char *colon = memchr(text, ':', length);
	const size_t word = colon ? (size_t)(colon - text) : 0;

	for (unsigned int kind = 0; colon && kind < COUNT(names); kind++) {
		if (strlen(names[kind]) != word || memcmp(names[kind], text, word) != 0)
			continue;
		decision->kind = kind;
		return vb_number_digits(colon + 1, length - word - 1, 10, &decision->n) &&
		       decision->n;
	}
	return false;
}

int vb_schedule_parse(const char *text, struct vb_schedule *schedule)
{
	const char *at = strcmp(text, EMPTY) == 0 ? "" : text;
	struct vb_schedule read = {.count = 0};

	while (*at) {
		const size_t length = strcspn(at, ",");

		if (read.count == VB_SCHEDULE_MAX)
			return fail(EINVAL, "the schedule '%s' has more than %d decisions", text,
				    VB_SCHEDULE_MAX);
		if (!read_decision(at, length, &read.decisions[read.count++]))
			return fail(
				EINVAL,
				"'%.*s' is no decision of a schedule; write a kind and a number "
				"from 1, such as drop:3 (kinds: drop, duplicate, delay, late, "
				"corrupt, call, alloc)",
				(int)length, at);
		at += length + (at[length] == ',');
	}
	if (!schedule_sort(&read))
		return fail(EINVAL,
			    "the schedule '%s' decides twice on one packet, call or allocation; "
			    "leave one of the two out",
			    text);
	*schedule = read;
	return 0;
}

const char *vb_schedule_print(const struct vb_schedule *schedule, char *text)
{
	size_t used = 0;

	strcpy(text, schedule->count ? "" : EMPTY);
	for (unsigned int i = 0; i < schedule->count; i++)
		used += (size_t)snprintf(text + used, VB_SCHEDULE_TEXT - used, "%s%s:%" PRIu64,
					 i ? "," : "", names[schedule->decisions[i].kind],
					 schedule->decisions[i].n);
	return text;
}
