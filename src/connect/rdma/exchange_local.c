/* SPDX-License-Identifier: MIT */
/*
 * The exchange within a process: lines are two small rings in memory. No socket, no clock.
 */
#include "src/base/failure.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/rdma.h>

#define RING_BYTES 256

struct ring {
	uint8_t bytes[RING_BYTES];
	size_t first, count;
};

struct wire {
	struct vb_rdma_hall *hall;
	struct wire *next;    /* among those that nobody accepted */
	struct ring rings[2]; /* what each end sent: 0 is who opened it */
	bool closed[2];
};

/* An end of a wire. */
struct line {
	struct wire *wire;
	int side;
};

struct door {
	struct vb_rdma_hall *hall;
	struct door *next;
	struct wire *waiting;
	char address[];
};

struct vb_rdma_hall {
	pthread_mutex_t lock;
	struct door *doors;
};

struct vb_rdma_hall *vb_rdma_hall_open(void)
{
	struct vb_rdma_hall *hall = calloc(1, sizeof(*hall));

	if (hall)
		pthread_mutex_init(&hall->lock, NULL);
	else
		fail(ENOMEM, "hall: no memory");
	return hall;
}

void vb_rdma_hall_close(struct vb_rdma_hall *hall)
{
	if (!hall)
		return;
	pthread_mutex_destroy(&hall->lock);
	free(hall);
}

static struct door *door_of(struct vb_rdma_hall *hall, const char *address)
{
	for (struct door *door = hall->doors; door; door = door->next)
		if (strcmp(door->address, address) == 0)
			return door;
	return NULL;
}

static int local_listen(void *arg, const char *address, void **listener)
{
	struct vb_rdma_hall *hall = arg;
	size_t bytes = strlen(address) + 1;
	struct door *door = calloc(1, sizeof(*door) + bytes);
	bool taken;

	if (!door)
		return ENOMEM;
	door->hall = hall;
	memcpy(door->address, address, bytes);
	pthread_mutex_lock(&hall->lock);
	taken = door_of(hall, address);
	if (!taken) {
		door->next = hall->doors;
		hall->doors = door;
	}
	pthread_mutex_unlock(&hall->lock);
	*listener = door;
	if (taken)
		free(door);
	return taken ? EADDRINUSE : 0;
}

static int local_accept(void *listener, void **made)
{
	struct door *door = listener;
	struct line *line = calloc(1, sizeof(*line));
	struct wire *wire;

	if (!line)
		return ENOMEM;
	pthread_mutex_lock(&door->hall->lock);
	wire = door->waiting;
	if (wire)
		door->waiting = wire->next;
	pthread_mutex_unlock(&door->hall->lock);
	if (!wire) {
		free(line);
		return EAGAIN;
	}
	*line = (struct line){wire, 1};
	*made = line;
	return 0;
}

static int local_connect(void *arg, const char *address, void **made)
{
	struct vb_rdma_hall *hall = arg;
	struct line *line = calloc(1, sizeof(*line));
	struct wire *wire = calloc(1, sizeof(*wire)), **link;
	struct door *door;

	if (!line || !wire) {
		free(line);
		free(wire);
		return ENOMEM;
	}
	wire->hall = hall;
	*line = (struct line){wire, 0};
	pthread_mutex_lock(&hall->lock);
	door = door_of(hall, address);
	if (door) {
		for (link = &door->waiting; *link; link = &(*link)->next)
			;
		*link = wire;
	}
	pthread_mutex_unlock(&hall->lock);
	*made = line;
	if (door)
		return 0;
	free(line);
	free(wire);
	return ECONNREFUSED;
}

static int local_send(void *end, const void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	struct line *line = end;
	struct ring *ring = &line->wire->rings[line->side];
	const uint8_t *from = bytes;
	size_t moved = 0;
	bool closed;

	pthread_mutex_lock(&line->wire->hall->lock);
	closed = line->wire->closed[!line->side];
	while (!closed && moved < length_bytes && ring->count < RING_BYTES)
		ring->bytes[(ring->first + ring->count++) % RING_BYTES] = from[moved++];
	pthread_mutex_unlock(&line->wire->hall->lock);
	*moved_bytes = moved;
	if (closed)
		return ECONNRESET;
	return moved ? 0 : EAGAIN;
}

static int local_receive(void *end, void *bytes, size_t length_bytes, size_t *moved_bytes)
{
	struct line *line = end;
	struct ring *ring = &line->wire->rings[!line->side];
	uint8_t *into = bytes;
	size_t moved = 0;
	bool closed;

	pthread_mutex_lock(&line->wire->hall->lock);
	closed = line->wire->closed[!line->side];
	while (moved < length_bytes && ring->count) {
		into[moved++] = ring->bytes[ring->first];
		ring->first = (ring->first + 1) % RING_BYTES;
		ring->count--;
	}
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

static int local_name(void *listener, char *text, size_t text_bytes)
{
	const struct door *door = listener;

	return (size_t)snprintf(text, text_bytes, "%s", door->address) < text_bytes ? 0 : ERANGE;
}

/* One end is closed; the wire goes with the second. */
static void close_side(struct wire *wire, int side)
{
	struct vb_rdma_hall *hall = wire->hall;
	bool last;

	pthread_mutex_lock(&hall->lock);
	wire->closed[side] = true;
	last = wire->closed[!side];
	pthread_mutex_unlock(&hall->lock);
	if (last)
		free(wire);
}

static void local_close_line(void *end)
{
	struct line *line = end;

	close_side(line->wire, line->side);
	free(line);
}

static void local_close_listener(void *listener)
{
	struct door *door = listener, **link;
	struct vb_rdma_hall *hall = door->hall;
	struct wire *wire;

	pthread_mutex_lock(&hall->lock);
	for (link = &hall->doors; *link != door; link = &(*link)->next)
		;
	*link = door->next;
	pthread_mutex_unlock(&hall->lock);
	while ((wire = door->waiting)) {
		door->waiting = wire->next;
		close_side(wire, 1);
	}
	free(door);
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
