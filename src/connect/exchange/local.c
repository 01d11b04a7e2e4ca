/* SPDX-License-Identifier: MIT */
/*
 * Lines in the memory of this process: two rings each, and no socket. One lock for each hall
 * protects its listeners and lines.
 */
#include "src/connect/deadline.h"
#include "src/connect/exchange/exchange.h"
#include "src/connect/object.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define RING_BYTES 4096

struct ring {
	size_t first, count;
	uint8_t bytes[RING_BYTES];
};

struct wire;

/* An end of a wire: end 0 belongs to the side that connected. */
struct line {
	struct wire *wire;
	struct ring sent;
	bool closed;
};

struct wire {
	struct vb_rdma_hall *hall;
	struct wire *next; /* in the queue of its listener */
	struct line ends[2];
};

struct listener {
	struct vb_rdma_hall *hall;
	struct listener *next;
	struct wire *waiting; /* connected and not accepted, the oldest first */
	char address[];
};

struct vb_rdma_hall {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t state; /* counts what moved */
	struct listener *listeners;
};

/* --- halls --- */

/* Wakes the threads that wait for a move. The caller holds the lock. */
static void tell(struct vb_rdma_hall *hall)
{
	hall->state++;
	pthread_cond_broadcast(&hall->moved);
}

uint64_t hall_state(struct vb_rdma_hall *hall)
{
	uint64_t state;

	pthread_mutex_lock(&hall->lock);
	state = hall->state;
	pthread_mutex_unlock(&hall->lock);
	return state;
}

static void unlock_hall(void *hall)
{
	pthread_mutex_unlock(&((struct vb_rdma_hall *)hall)->lock);
}

void hall_wait(struct vb_rdma_hall *hall, uint64_t seen, uint64_t deadline_ns)
{
	const struct timespec limit = timespec_of(deadline_ns);
	int err = 0;

	pthread_mutex_lock(&hall->lock);
	pthread_cleanup_push(unlock_hall, hall);
	while (hall->state == seen && !err) {
		if (deadline_ns == VB_FOREVER)
			err = pthread_cond_wait(&hall->moved, &hall->lock);
		else
			err = pthread_cond_timedwait(&hall->moved, &hall->lock, &limit);
	}
	pthread_cleanup_pop(true);
}

struct vb_rdma_hall *vb_rdma_hall_open(void)
{
	struct vb_rdma_hall *hall = object_new(sizeof(*hall), "hall");
	pthread_condattr_t monotonic;

	if (!hall)
		return NULL;
	pthread_mutex_init(&hall->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&hall->moved, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return hall;
}

void vb_rdma_hall_close(struct vb_rdma_hall *hall)
{
	if (!hall)
		return;
	pthread_cond_destroy(&hall->moved);
	pthread_mutex_destroy(&hall->lock);
	free(hall);
}

/* --- listeners --- */

static struct listener *find(struct vb_rdma_hall *hall, const char *address)
{
	struct listener *listener = hall->listeners;

	while (listener && strcmp(listener->address, address) != 0)
		listener = listener->next;
	return listener;
}

static int local_listen(void *arg, const char *address, void **made)
{
	struct vb_rdma_hall *hall = arg;
	size_t bytes = strlen(address) + 1;
	struct listener *listener = calloc(1, sizeof(*listener) + bytes);
	bool taken;

	if (!listener)
		return ENOMEM;
	listener->hall = hall;
	memcpy(listener->address, address, bytes);
	pthread_mutex_lock(&hall->lock);
	taken = find(hall, address);
	if (!taken) {
		listener->next = hall->listeners;
		hall->listeners = listener;
		tell(hall);
	}
	pthread_mutex_unlock(&hall->lock);
	if (taken)
		free(listener);
	else
		*made = listener;
	return taken ? EADDRINUSE : 0;
}

static int local_accept(void *from, void **line)
{
	struct listener *listener = from;
	struct wire *wire;

	pthread_mutex_lock(&listener->hall->lock);
	wire = listener->waiting;
	if (wire)
		listener->waiting = wire->next;
	pthread_mutex_unlock(&listener->hall->lock);
	if (!wire)
		return EAGAIN;
	*line = &wire->ends[1];
	return 0;
}

static int local_connect(void *arg, const char *address, void **line)
{
	struct wire *wire = calloc(1, sizeof(*wire)), **link;
	struct vb_rdma_hall *hall = arg;
	struct listener *listener;

	if (!wire)
		return ENOMEM;
	wire->hall = hall;
	wire->ends[0].wire = wire->ends[1].wire = wire;
	pthread_mutex_lock(&hall->lock);
	listener = find(hall, address);
	if (listener) {
		for (link = &listener->waiting; *link; link = &(*link)->next)
			;
		*link = wire;
		tell(hall);
	}
	pthread_mutex_unlock(&hall->lock);
	if (listener)
		*line = &wire->ends[0];
	else
		free(wire);
	return listener ? 0 : ECONNREFUSED;
}

static int local_name(void *object, char *text, size_t text_bytes)
{
	const struct listener *listener = object;

	return (size_t)snprintf(text, text_bytes, "%s", listener->address) < text_bytes ? 0
											: ERANGE;
}

/* --- lines --- */

static struct line *other_end(struct line *line)
{
	return &line->wire->ends[line == line->wire->ends];
}

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int local_send(void *object, const void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	struct line *line = object;
	struct ring *ring = &line->sent;
	size_t at, moved;
	bool closed;

	pthread_mutex_lock(&line->wire->hall->lock);
	closed = other_end(line)->closed;
	at = (ring->first + ring->count) % RING_BYTES;
	moved = closed ? 0
		       : lesser(length_bytes, lesser(RING_BYTES - ring->count, RING_BYTES - at));
	memcpy(ring->bytes + at, bytes, moved);
	ring->count += moved;
	if (moved)
		tell(line->wire->hall);
	pthread_mutex_unlock(&line->wire->hall->lock);
	*moved_bytes = moved;
	if (closed)
		return ECONNRESET;
	return moved ? 0 : EAGAIN;
}

static int local_receive(void *object, void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	struct line *line = object;
	struct ring *ring = &other_end(line)->sent;
	size_t moved;
	bool closed;

	pthread_mutex_lock(&line->wire->hall->lock);
	closed = other_end(line)->closed;
	moved = lesser(length_bytes, lesser(ring->count, RING_BYTES - ring->first));
	memcpy(bytes, ring->bytes + ring->first, moved);
	ring->first = (ring->first + moved) % RING_BYTES;
	ring->count -= moved;
	if (moved)
		tell(line->wire->hall);
	pthread_mutex_unlock(&line->wire->hall->lock);
	*moved_bytes = moved;
	if (moved)
		return 0;
	return closed ? ECONNRESET : EAGAIN;
}

static int no_descriptor(void *object)
{
	(void)object;
	return -1;
}

/* The wire is freed when both ends are closed. */
static void local_close_line(void *object)
{
	struct line *line = object;
	struct wire *wire = line->wire;
	bool last;

	pthread_mutex_lock(&wire->hall->lock);
	line->closed = true;
	tell(wire->hall);
	last = other_end(line)->closed;
	pthread_mutex_unlock(&wire->hall->lock);
	if (last)
		free(wire);
}

static void local_close_listener(void *object)
{
	struct listener *listener = object, **link;
	struct vb_rdma_hall *hall = listener->hall;
	struct wire *wire;

	pthread_mutex_lock(&hall->lock);
	for (link = &hall->listeners; *link != listener; link = &(*link)->next)
		;
	*link = listener->next;
	tell(hall);
	pthread_mutex_unlock(&hall->lock);
	while ((wire = listener->waiting)) {
		listener->waiting = wire->next;
		local_close_line(&wire->ends[1]);
	}
	free(listener);
}

const struct vb_rdma_exchange *vb_rdma_exchange_local(void)
{
	static const struct vb_rdma_exchange local = {
		.listen = local_listen,
		.accept = local_accept,
		.connect = local_connect,
		.send = local_send,
		.receive = local_receive,
		.listener_descriptor = no_descriptor,
		.line_descriptor = no_descriptor,
		.name = local_name,
		.close_listener = local_close_listener,
		.close_line = local_close_line,
	};

	return &local;
}
