/* SPDX-License-Identifier: MIT */
#include "src/expect/record.h"

#include "src/base/fork.h"
#include "src/layer/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_mutex_t mutex;
	bool on;
	struct record *records;
	size_t count, capacity, lost;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

HOLD_DURING_FORK(state.mutex);

/* The caller holds the mutex. Returns NULL if there is no memory. */
static struct record *add(void)
{
	size_t capacity = state.capacity ? 2 * state.capacity : 256;
	struct record *records;

	if (state.count == state.capacity) {
		records = realloc(state.records, capacity * sizeof(*records));
		if (!records)
			return NULL;
		state.records = records;
		state.capacity = capacity;
	}
	return &state.records[state.count++];
}

static void see(void *arg, const struct vb_event *event)
{
	struct record *record;

	(void)arg;
	if (event->kind != VB_EVENT_PACKET || !event->packet)
		return;
	pthread_mutex_lock(&state.mutex);
	record = add();
	if (record) {
		*record = (struct record){.time_ns = event->time_ns, .packet = *event->packet};
		snprintf(record->device, sizeof(record->device), "%s",
			 event->device ? event->device : "");
		/* If no mark of the frame says that it is lost, the event does. */
		record->packet.lost = event->packet->lost || event->values[0];
	} else {
		state.lost++;
	}
	pthread_mutex_unlock(&state.mutex);
}

int record_begin(void)
{
	int err = state.on ? 0 : layer_watch(see, NULL);

	if (!err)
		state.on = true;
	record_clear();
	return err;
}

void record_end(void)
{
	if (!state.on)
		return;
	layer_unwatch(see, NULL);
	state.on = false;
	record_clear();
	free(state.records);
	state.records = NULL;
	state.capacity = 0;
}

bool record_is_on(void)
{
	return state.on;
}

void record_clear(void)
{
	pthread_mutex_lock(&state.mutex);
	state.count = state.lost = 0;
	pthread_mutex_unlock(&state.mutex);
}

const struct record *record_packets(size_t *count, size_t *lost)
{
	pthread_mutex_lock(&state.mutex);
	*count = state.count;
	*lost = state.lost;
	pthread_mutex_unlock(&state.mutex);
	return state.records;
}

void record_drop(size_t count)
{
	pthread_mutex_lock(&state.mutex);
	state.count -= count;
	memmove(state.records, state.records + count, state.count * sizeof(*state.records));
	pthread_mutex_unlock(&state.mutex);
}
