/* SPDX-License-Identifier: MIT */
/* Room in the rings to other processes. Packets wait for a full ring, and for the lock to make a ring, or are lost if
 * the consumer takes nothing. */
#include "backends/sim/wire/shared_private.h"
#include "backends/sim/wire/shared_short.h"

#include <limits.h>

/* If a living process takes no frame for this time, packets for its full ring are lost from then on, as
 * behind a switch that gives up on a paused port. */
#define LAG_NS UINT64_C(2000000000)

/* While a ring is full, its sender checks at this interval if the consumer lives. */
#define LIFE_NS UINT64_C(100000000)

void shared_stop_waiting(struct shared *shared, struct outward *out)
{
	const uint16_t place = (uint16_t)(out - shared->out);
	uint32_t i = 0;

	if (!out->waiting)
		return;
	while (shared->waited[i] != place)
		i++;
	shared->waited[i] = shared->waited[--shared->waiting];
	out->waiting = false;
}

/* Returns the process to which packets wait. */
static segment_id consumer_of(const struct shared *shared, const struct outward *out)
{
	return out->id ? out->id : places_id(&shared->segment, (uint32_t)(out - shared->out));
}

/* Returns true if the consumer of a full ring is dead, stopped, or has taken nothing for LAG_NS; or if one
 * process keeps the lock that a ring needs for SEGMENT_PATIENCE_NS. */
static bool is_stalled(struct shared *shared, struct outward *out)
{
	const segment_id id = consumer_of(shared, out);
	const uint64_t now_ns = segment_now_ns();

	if (now_ns < out->life_ns)
		return false;
	out->life_ns = now_ns + LIFE_NS;
	if (places_live(&shared->segment, id))
		return now_ns - out->stuck_since_ns >= (out->id ? LAG_NS : SEGMENT_PATIENCE_NS);
	places_bury(&shared->segment, id, SHARED_BURIAL_PATIENCE_NS);
	return true;
}

/* Notes that packets wait. head: moves while they may still get room. */
static void wait_for_room(struct shared *shared, struct outward *out, uint32_t head)
{
	if (!out->waiting || out->stuck_head != head) {
		out->stuck_head = head;
		out->stuck_since_ns = segment_now_ns();
		out->life_ns = out->stuck_since_ns + LIFE_NS;
	}
	if (!out->waiting)
		shared->waited[shared->waiting++] = (uint16_t)(out - shared->out);
	out->waiting = true;
}

static unsigned int room_in(struct shared *shared, struct outward *out)
{
	const uint32_t room = ring_room(&out->ring);

	if (room)
		out->stalled = false;
	else if (out->stalled)
		return UINT_MAX;
	else
		wait_for_room(shared, out, out->ring.head);
	return room;
}

/* Returns the room of a process to which there is no ring. */
static unsigned int room_without_ring(struct shared *shared, struct outward *out)
{
	if (!out->barred || out->stalled)
		return UINT_MAX;
	wait_for_room(shared, out,
		      atomic_load_explicit(&shared->segment.header->unlocked.rings,
					   memory_order_relaxed));
	return 0;
}

/* A barred ring with waiting packets is made by shared_look_for_room(), with the others. */
static unsigned int room_to(struct shared *shared, segment_id id)
{
	struct outward *out = shared_out_at(shared, id);

	if (out->id != id && !(out->barred && out->waiting))
		shared_out_soon(shared, id);
	return out->id == id ? room_in(shared, out) : room_without_ring(shared, out);
}

unsigned int shared_room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	segment_id id;

	if (!shared_is_attached(shared) || !path->dest || path->multicast)
		return UINT_MAX;
	id = shared_qpn_owner(shared, path->dest->device, dest_qpn);
	return id ? room_to(shared, id) : UINT_MAX;
}

static unsigned int room_at_process(struct shared *shared, segment_id id)
{
	/* After a process has ended, another one may have its numbers and services. */
	return places_id(&shared->segment, segment_id_place(id)) == id ? room_to(shared, id)
								       : UINT_MAX;
}

static unsigned int room_at_all(struct shared *shared)
{
	const uint32_t used = places_used(&shared->segment);
	unsigned int least = UINT_MAX;

	for (uint32_t i = 0; i < used; i++) {
		const segment_id id = places_id(&shared->segment, i);
		const unsigned int room =
			id && id != shared->segment.id ? room_at_process(shared, id) : UINT_MAX;

		least = room < least ? room : least;
	}
	return least;
}

unsigned int shared_room_at(void *arg, const struct sim_path *path, uint64_t process)
{
	struct shared *shared = arg;

	(void)path;
	if (!shared_is_attached(shared))
		return UINT_MAX;
	return process == SHARED_EVERYBODY ? room_at_all(shared) : room_at_process(shared, process);
}

/* A ring in each direction that is not there yet needs room. */
struct vb_why shared_hindrance(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	struct vb_why why = {.reason = VB_WHY_NONE};
	bool has_in = false;
	segment_id id = 0;
	uint64_t end, needed;
	unsigned int rings;

	if (shared_is_attached(shared) && path->dest)
		id = shared_qpn_owner(shared, path->dest->device, dest_qpn);
	if (!id)
		return why;
	for (const struct inward *in = shared->in; in; in = in->next)
		has_in |= in->id == id && !in->gone;
	rings = (shared_out_at(shared, id)->id != id) + !has_in;
	if (!rings)
		return why;
	needed = areas_least(&shared->segment, rings, &end);
	why = segment_lack(&shared->segment, end, needed);
	if (why.reason != VB_WHY_NONE)
		segment_tell(&shared->segment, SEGMENT_NEED_RING, &why);
	return why;
}

/* Returns true if the ring has frames that its living consumer will probably still take: it has not stood
 * still for LAG_NS. */
static bool lags(struct shared *shared, struct outward *out)
{
	const uint64_t now_ns = segment_now_ns();

	if (ring_is_taken(&out->ring) || !places_live(&shared->segment, out->id))
		return false;
	if (!out->lag_since_ns || out->lag_head != out->ring.head) {
		out->lag_head = out->ring.head;
		out->lag_since_ns = now_ns;
	}
	return now_ns - out->lag_since_ns < LAG_NS;
}

bool shared_lags(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	segment_id id;
	struct outward *out;

	if (!shared_is_attached(shared) || !path->dest)
		return false;
	id = shared_qpn_owner(shared, path->dest->device, dest_qpn);
	out = id ? &shared->out[segment_id_place(id) % SHARED_PROCESSES_MAX] : NULL;
	return out && out->id == id && lags(shared, out);
}

/* Returns true if packets to a process should not try again yet. */
static bool is_full(struct shared *shared, struct outward *out)
{
	if (out->id ? room_in(shared, out) : room_without_ring(shared, out))
		return false;
	out->stalled = is_stalled(shared, out);
	return !out->stalled;
}

static bool any_barred(const struct shared *shared)
{
	for (uint32_t i = 0; i < shared->waiting; i++)
		if (shared->out[shared->waited[i]].barred)
			return true;
	return false;
}

bool shared_look_for_room(struct shared *shared)
{
	const bool sleepy = bell_is_listened(shared_bell(&shared->wire));
	bool ready = false;

	if (any_barred(shared))
		shared_out_open_barred(shared);
	/* From the end, because shared_stop_waiting() moves the last place into the gap. */
	for (uint32_t i = shared->waiting; i-- > 0;) {
		struct outward *out = &shared->out[shared->waited[i]];

		if (sleepy && out->id)
			ring_want(&out->ring);
		if (is_full(shared, out))
			continue;
		shared_stop_waiting(shared, out);
		ready = true;
	}
	return ready;
}
