/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/event_queue.h"

#include "backends/sim/base/cancel.h"
#include "backends/sim/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST_CAPACITY 16

int event_queue_init(struct event_queue *queue, void *owner)
{
	struct queued_event *ring = malloc(FIRST_CAPACITY * sizeof(*ring));
	int fd, err;

	*queue = (struct event_queue){.fd = -1};
	if (!ring)
		return ENOMEM;
	fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	err = fd < 0 ? errno : owner ? descriptor_enter(fd, owner) : 0;
	if (err) {
		if (fd >= 0)
			close(fd);
		free(ring);
		return err;
	}
	queue->fd = fd;
	queue->ring = ring;
	queue->capacity = FIRST_CAPACITY;
	return 0;
}

void event_queue_end(struct event_queue *queue)
{
	int state = cancel_off();

	descriptor_leave(queue->fd);
	close(queue->fd);
	cancel_restore(state);
	free(queue->ring);
	*queue = (struct event_queue){.fd = -1};
}

void event_queue_push(struct event_queue *queue, const struct queued_event *event)
{
	static const uint64_t one = 1;
	int state;

	if (queue->count == queue->capacity) {
		uint32_t capacity = queue->capacity * 2;
		struct queued_event *ring = malloc(capacity * sizeof(*ring));

		if (!ring)
			return;
		for (uint32_t i = 0; i < queue->count; i++)
			ring[i] = queue->ring[(queue->head + i) % queue->capacity];
		free(queue->ring);
		queue->ring = ring;
		queue->capacity = capacity;
		queue->head = 0;
	}
	queue->ring[(queue->head + queue->count++) % queue->capacity] = *event;
	/* The write fails only with 2^64 events in the counter. */
	state = cancel_off();
	(void)!write(queue->fd, &one, sizeof(one));
	cancel_restore(state);
}

struct queued_event event_queue_pop(struct event_queue *queue)
{
	struct queued_event event = queue->ring[queue->head];

	queue->head = (queue->head + 1) % queue->capacity;
	queue->count--;
	return event;
}

/* The caller holds the world: poll(2) itself could be a wait that moves time (src/wait/wait.h). */
static bool is_readable(const struct event_queue *queue)
{
	struct pollfd readable = {.fd = queue->fd, .events = POLLIN};
	struct timespec now = {0};

	return syscall(SYS_ppoll, &readable, 1, &now, NULL, 0) == 1;
}

void event_queue_take_count(const struct event_queue *queue)
{
	int state = cancel_off();
	uint64_t one;

	if (is_readable(queue))
		(void)!read(queue->fd, &one, sizeof(one));
	cancel_restore(state);
}

void *event_queue_find(const struct event_queue *queue,
		       bool (*matches)(const void *object, const void *arg), const void *arg)
{
	for (uint32_t i = 0; i < queue->count; i++) {
		void *object = queue->ring[(queue->head + i) % queue->capacity].object;

		if (matches(object, arg))
			return object;
	}
	return NULL;
}

void event_queue_forget(struct event_queue *queue, const void *object)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < queue->count; i++) {
		struct queued_event event = queue->ring[(queue->head + i) % queue->capacity];

		if (event.object == object)
			event_queue_take_count(queue);
		else
			queue->ring[(queue->head + kept++) % queue->capacity] = event;
	}
	queue->count = kept;
}

void event_queue_wake(const struct event_queue *queue)
{
	static const uint64_t count = UINT32_MAX;

	(void)!write(queue->fd, &count, sizeof(count));
}

bool event_queue_is_nonblocking(const struct event_queue *queue)
{
	return fcntl(queue->fd, F_GETFL) & O_NONBLOCK;
}
