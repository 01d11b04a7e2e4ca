/* SPDX-License-Identifier: MIT */
/* The events of the simulated devices, as a test records them. */
#ifndef TEST_UNIT_EVENT_LOG_H
#define TEST_UNIT_EVENT_LOG_H

#include "test/unit/sim_pair.h"

#include <string.h>
#include <verbena/event.h>

#define EVENTS_MAX 4096

/* An event with copies of what it points to. */
struct noted {
	struct vb_event event;
	struct vb_packet packet;
	char device[32];
	char texts[VB_EVENT_TEXTS][64];
};

struct event_log {
	struct noted noted[EVENTS_MAX];
	unsigned int count;
};

static struct event_log events;

static inline void note_event(void *arg, const struct vb_event *event)
{
	struct event_log *into = arg;
	struct noted *noted = &into->noted[into->count];

	if (into->count == EVENTS_MAX)
		abort();
	into->count++;
	*noted = (struct noted){.event = *event};
	strncpy(noted->device, event->device ? event->device : "", sizeof(noted->device) - 1);
	for (unsigned int i = 0; i < VB_EVENT_TEXTS; i++)
		if (event->texts[i])
			strncpy(noted->texts[i], event->texts[i], sizeof(noted->texts[i]) - 1);
	if (event->packet)
		noted->packet = *event->packet;
}

/* Empties the record, and records the events from now on. */
static inline void watch_events(void)
{
	events.count = 0;
	B.watch(note_event, &events);
}

static inline void unwatch_events(void)
{
	B.watch(NULL, NULL);
}

/* Returns event number `index`, from 0, of a kind; NULL if there are fewer. */
static inline const struct noted *find_event(enum vb_event_kind kind, unsigned int index)
{
	for (unsigned int i = 0; i < events.count; i++)
		if (events.noted[i].event.kind == kind && index-- == 0)
			return &events.noted[i];
	return NULL;
}

static inline unsigned int count_events(enum vb_event_kind kind)
{
	unsigned int count = 0;

	while (find_event(kind, count))
		count++;
	return count;
}

/* Returns the only event of a kind. */
static inline const struct noted *only_event(enum vb_event_kind kind)
{
	TEST_ASSERT_EQUAL_UINT(1, count_events(kind));
	return find_event(kind, 0);
}

#endif
