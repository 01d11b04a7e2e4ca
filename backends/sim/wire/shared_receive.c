/* SPDX-License-Identifier: MIT */
/* The rings from other processes. */
#include "backends/sim/wire/shared_private.h"

#include "sim/cm/cm.h"

#include <stdlib.h>
#include <string.h>

/* The most rings from other processes: those of living processes, and of dead ones whose packets this
 * process has not taken yet. More rings than this come from a process that writes nonsense. */
#define INWARD_MAX (2 * SHARED_PROCESSES_MAX)

/*
 * receive() takes at most this many frames from a ring before it looks at the other rings. If the last look
 * found the ring empty, it takes one frame: the producer is probably writing the next frame now, such as the
 * ACK behind an answer, and reading that frame's cache line would delay the frame that has arrived.
 */
#define BATCH 64

static struct inward *find_in(const struct shared *shared, uint32_t index)
{
	struct inward *in = shared->in;

	while (in && in->area.index != index)
		in = in->next;
	return in;
}

/* Returns false if the ring cannot be mapped now. */
static bool open_in(struct shared *shared, uint32_t index)
{
	struct inward *in;

	if (shared->in_count == INWARD_MAX)
		return true;
	in = calloc(1, sizeof(*in));
	if (!in || !areas_map(&shared->segment, index, &in->area)) {
		free(in);
		return false;
	}
	in->ring = (struct ring_in){.memory = in->area.memory, .capacity = in->area.capacity};
	in->id = areas_producer(&shared->segment, index);
	in->next = shared->in;
	shared->in = in;
	shared->in_count++;
	return true;
}

/* Closes a ring whose other end is gone. Returns false if the ring must stay for now: receive() tries again. */
static bool close_in(struct shared *shared, struct inward **link)
{
	struct inward *in = *link;

	if (!areas_release(&shared->segment, &in->area, AREA_CONSUMER, 0))
		return false;
	*link = in->next;
	shared->in_count--;
	free(in);
	return true;
}

/* Maps the rings that have come. Returns false if one could not be mapped. */
static bool open_new(struct shared *shared)
{
	uint32_t cursor = 0, index;
	bool done = true;

	while (areas_next(&shared->segment, AREA_CONSUMER, &cursor, &index))
		if (!find_in(shared, index))
			done &= open_in(shared, index);
	return done;
}

/* Finds the rings whose other end is gone. */
static void find_gone(struct shared *shared)
{
	for (struct inward *in = shared->in; in; in = in->next)
		in->gone = !areas_whole(&shared->segment, in->area.index);
	for (uint32_t i = 0; i < SHARED_PROCESSES_MAX; i++)
		if (shared->out[i].id && !areas_whole(&shared->segment, shared->out[i].area.index))
			shared_out_close(shared, &shared->out[i]);
}

static uint32_t news_of(const struct shared *shared)
{
	return atomic_load_explicit(
		&segment_place_at(&shared->segment, shared->segment.place)->news,
		memory_order_acquire);
}

/* Reads `news` before it looks at the rings: a later change is seen at the next look. */
static void read_news(struct shared *shared)
{
	const uint32_t news = news_of(shared);
	bool done;

	if (news == shared->news)
		return;
	if (shared->news_retry_ns && segment_now_ns() < shared->news_retry_ns)
		return;
	done = open_new(shared);
	/* The producer of a new ring may have ended already. */
	find_gone(shared);
	if (done) {
		shared->news = news;
		shared->news_retry_ns = 0;
	} else {
		shared->news_retry_ns = segment_now_ns() + SHARED_RETRY_NS;
	}
}

static void take_call(struct shared *shared, segment_id from, const struct ring_slot *slot)
{
	uint8_t bytes[SHARED_CALL_BYTES];

	if (!shared->called || slot->frame_bytes > sizeof(bytes))
		return;
	/* Copies the frame first: the sender may change the bytes in shared memory at any time. */
	memcpy(bytes, slot->frame, slot->frame_bytes);
	shared->called(shared->called_arg, from, bytes, slot->frame_bytes);
}

/* Keeps the route of a frame. If the route cannot be read, its number is unknown from then on. */
static void learn_received(struct inward *in, const struct sim_port *port,
			   const struct ring_slot *slot)
{
	struct inlets *inlets = &in->inlets;
	struct sim_inlet *inlet = &inlets->inlets[slot->route];

	inlets->known &= ~(1u << slot->route);
	*inlet = (struct sim_inlet){.process = in->id};
	if (sim_route_read(slot->frame, slot->frame_bytes, sim_port_is_infiniband(port),
			   &inlet->route) == SIM_DECODE_OK)
		inlets->known |= 1u << slot->route;
}

static void deliver_train(struct sim_inlet *inlet, struct sim_port *port,
			  const struct ring_slot *slot)
{
	uint32_t count;

	if (slot->frame_bytes < RING_TRAIN_COUNT_BYTES)
		return;
	memcpy(&count, slot->frame, RING_TRAIN_COUNT_BYTES);
	sim_way_out_arrive_train(port, inlet, slot->frame + RING_TRAIN_COUNT_BYTES,
				 slot->frame_bytes - RING_TRAIN_COUNT_BYTES, count);
}

/* Delivers what has no network headers. If the route is unknown, the producer has written nonsense, and the
 * packets are lost. */
static void deliver_bare(struct inlets *inlets, struct sim_port *port, const struct ring_slot *slot)
{
	struct sim_inlet *inlet = &inlets->inlets[slot->route];

	if (!(inlets->known >> slot->route & 1))
		return;
	if (slot->kind == RING_TRAIN)
		deliver_train(inlet, port, slot);
	else
		sim_way_out_arrive_bare(port, inlet, slot->frame, slot->frame_bytes);
}

/* Gives a frame to its port. The engine reads each header of a frame once, in the ring. */
static void deliver(struct shared *shared, struct inward *in, const struct ring_slot *slot)
{
	struct sim_device *device =
		slot->device < SEGMENT_DEVICES ? shared->devices[slot->device] : NULL;
	struct sim_port *port = device ? sim_device_port(device, slot->port) : NULL;

	if (slot->kind == RING_CALL) {
		take_call(shared, in->id, slot);
		return;
	}
	if (!port)
		return;
	switch (slot->kind) {
	case RING_BARE:
	case RING_TRAIN:
		deliver_bare(&in->inlets, port, slot);
		break;
	case RING_RELAY:
		sim_way_out_relayed(port, in->id, slot->frame, slot->frame_bytes);
		break;
	case RING_WHOLE:
		learn_received(in, port, slot);
		sim_way_out_arrive(port, slot->frame, slot->frame_bytes, true, in->id);
		break;
	case RING_SEALED:
		sim_way_out_arrive(port, slot->frame, slot->frame_bytes, false, in->id);
		break;
	default:
		break;
	}
}

bool shared_is_heard(const struct shared *shared, segment_id id)
{
	const struct inward *in = shared->in;

	/* A ring may have come that is not mapped yet. */
	if (news_of(shared) != shared->news && !shared->news_retry_ns)
		return false;
	while (in && (in->id != id || in->broken || ring_is_empty(&in->ring)))
		in = in->next;
	return !in;
}

/* Takes a batch of frames. Returns true if one came. */
static bool drain(struct shared *shared, struct inward *in)
{
	const unsigned int limit = in->behind ? BATCH : 1;
	struct ring_slot slot;
	unsigned int count = 0;
	enum ring_look look = RING_EMPTY;

	while (count < limit && !in->broken && (look = ring_look(&in->ring, &slot)) == RING_FRAME) {
		deliver(shared, in, &slot);
		ring_next(&in->ring, &slot);
		/* A train is about as much as eight frames. */
		count += ring_is_much(&slot) ? 8 : 1;
		if (count % 8 == 0 || ring_is_much(&slot))
			ring_tell(&in->ring);
	}
	in->behind = look == RING_FRAME;
	if (!count) {
		in->broken |= look == RING_BROKEN;
		return false;
	}
	ring_tell(&in->ring);
	in->touched = true;
	shared->taken = true;
	return true;
}

bool shared_arrived(const struct wire *wire)
{
	const struct shared *shared = shared_of(wire);

	if (!shared_is_attached(shared))
		return false;
	if (shared->waiting || shared->relieved || news_of(shared) != shared->news ||
	    atomic_load_explicit(&shared->watch.ended, memory_order_relaxed))
		return true;
	for (const struct inward *in = shared->in; in; in = in->next)
		if (in->broken || in->gone || !ring_is_empty(&in->ring))
			return true;
	return false;
}

bool shared_receive(struct wire *wire)
{
	struct shared *shared = shared_of(wire);
	bool came = false;

	if (!shared_is_attached(shared))
		return false;
	if (shared_watch_take(&shared->watch))
		sim_cm_processes_ended(shared->engine);
	read_news(shared);
	for (struct inward **link = &shared->in, *in; (in = *link);) {
		const bool more = drain(shared, in);

		came |= more;
		if (!(in->broken || (in->gone && !more)) || !close_in(shared, link))
			link = &in->next;
	}
	if ((shared->waiting && shared_look_for_room(shared)) || shared->relieved) {
		shared->relieved = false;
		sim_way_out_ready(shared->engine);
		came = true;
	}
	return came;
}
