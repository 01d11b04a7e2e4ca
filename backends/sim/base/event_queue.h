/* SPDX-License-Identifier: MIT */
/*
 * A queue of events behind a descriptor: an eventfd counts the events, so that poll(2), epoll(7)
 * and O_NONBLOCK work on it.
 */
#ifndef BACKENDS_SIM_BASE_EVENT_QUEUE_H
#define BACKENDS_SIM_BASE_EVENT_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct queued_event {
	void *object;		  /* a CQ, QP or SRQ; NULL for an event of a port or device */
	enum ibv_event_type type; /* unused on a completion channel */
	int port_num;
};

struct event_queue {
	int fd;
	uint32_t head;
	uint32_t count;
	uint32_t capacity;
	struct queued_event *ring;
};

/*
 * Opens the descriptor, and makes room for some events. @owner is the world, if waits for the descriptor move
 * its time (descriptor.h), or NULL. 0 or errno.
 */
int event_queue_init(struct event_queue *queue, void *owner);
void event_queue_end(struct event_queue *queue);

/* Adds an event. If there is no memory for one more, the event is lost, as the kernel loses it. */
void event_queue_push(struct event_queue *queue, const struct queued_event *event);

/* Takes the oldest event, without its count: see event_queue_take_count(). */
struct queued_event event_queue_pop(struct event_queue *queue);

/* Takes one from the descriptor's count; does nothing if the program has read the count itself. */
void event_queue_take_count(const struct event_queue *queue);

/* Returns the object of the oldest event for which matches() returns true; NULL if no event matches. */
void *event_queue_find(const struct event_queue *queue,
		       bool (*matches)(const void *object, const void *arg), const void *arg);

/* Removes all events of an object. */
void event_queue_forget(struct event_queue *queue, const void *object);

/* Ends all reads of the descriptor: each takes one of a count that is more than there can be threads. */
void event_queue_wake(const struct event_queue *queue);

/* Returns true if the program has set O_NONBLOCK on the descriptor. */
bool event_queue_is_nonblocking(const struct event_queue *queue);

#endif
