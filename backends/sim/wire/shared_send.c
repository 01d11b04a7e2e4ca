/* SPDX-License-Identifier: MIT */
/* Packets to other processes, and bytes that are no packets. */
#include "backends/sim/wire/shared_private.h"

#include <string.h>

/* Returns true if the consumer knows the route of a packet. */
static bool is_known(const struct routes *routes, const struct sim_route *route)
{
	const unsigned int number = shared_route_number(route);
	const void *kept = &routes->routes[number], *own = route;

	/* Routes that differ only in padding bytes count as different. Their packets then have headers,
	 * which does no harm. */
	return routes->known >> number & 1 && memcmp(kept, own, sizeof(*route)) == 0;
}

static void learn_sent(struct routes *routes, const struct sim_route *route)
{
	const unsigned int number = shared_route_number(route);

	routes->known |= 1u << number;
	routes->lanes[number] = NULL;
	memcpy(&routes->routes[number], route, sizeof(*route));
}

static enum ring_kind kind_of(const struct outward *out, const struct sim_departure *departure)
{
	if (departure->frame_bytes)
		return RING_SEALED;
	return is_known(out->routes, departure->route) ? RING_BARE : RING_WHOLE;
}

/* Returns the length of the frame; 0: it cannot be read. */
static size_t write_frame(const struct sim_departure *departure, enum ring_kind kind,
			  uint8_t *frame)
{
	return kind == RING_BARE ? sim_departure_write_bare(departure, frame)
				 : sim_departure_write(departure, false, frame);
}

bool shared_put_at(struct shared *shared, struct outward *out, uint8_t *frame,
		   const struct sim_departure *departure)
{
	const enum ring_kind kind = kind_of(out, departure);
	struct ring_slot slot = {.device = (uint8_t)departure->dest->device->index,
				 .port = departure->dest->number,
				 .kind = (uint8_t)kind};

	slot.frame_bytes = (uint32_t)write_frame(departure, kind, frame);
	if (!slot.frame_bytes)
		return false;
	if (kind == RING_WHOLE)
		learn_sent(out->routes, departure->route);
	if (kind != RING_SEALED)
		slot.route = shared_route_number(departure->route);
	ring_publish(&out->ring, &slot);
	shared_touch(shared, out);
	return true;
}

/* Puts a packet into the ring to a process. The packet is lost if the ring has no room. */
static bool put(struct shared *shared, segment_id id, const struct sim_departure *departure)
{
	struct outward *out = shared_out_to(shared, id);
	uint8_t *frame = out ? ring_reserve(&out->ring) : NULL;

	return frame && shared_put_at(shared, out, frame, departure);
}

/* Sends bytes that are no frame, as `slot` says. */
static bool put_bytes(struct shared *shared, uint64_t process, const struct ring_slot *slot,
		      const void *bytes)
{
	struct outward *out;
	uint8_t *frame;

	if (!shared_is_attached(shared) ||
	    places_id(&shared->segment, segment_id_place(process)) != process)
		return false;
	out = shared_out_to(shared, process);
	frame = out ? ring_reserve(&out->ring) : NULL;
	if (!frame)
		return false;
	memcpy(frame, bytes, slot->frame_bytes);
	ring_publish(&out->ring, slot);
	ring_flush(&out->ring);
	shared_touch(shared, out);
	return true;
}

bool shared_relay(void *arg, const struct sim_port *port, uint64_t process, const uint8_t *bytes,
		  size_t length)
{
	const struct ring_slot slot = {.frame_bytes = (uint32_t)length,
				       .device = (uint8_t)port->device->index,
				       .port = port->number,
				       .kind = RING_RELAY};

	return put_bytes(arg, process, &slot, bytes);
}

bool shared_call(struct wire *wire, uint64_t process, const void *bytes, size_t length)
{
	const struct ring_slot slot = {.frame_bytes = (uint32_t)length, .kind = RING_CALL};

	return put_bytes(shared_of(wire), process, &slot, bytes);
}

segment_id shared_member_at(const struct shared *shared, uint32_t place,
			    const struct sim_device *device)
{
	const segment_id id = places_id(&shared->segment, place);

	if (!id || id == shared->segment.id || device->index >= SEGMENT_DEVICES)
		return 0;
	return atomic_load_explicit(
		       &segment_place_at(&shared->segment, place)->memberships[device->index],
		       memory_order_relaxed)
		       ? id
		       : 0;
}

/* Sends a packet to all other processes. */
static bool put_to_all(struct shared *shared, const struct sim_departure *departure)
{
	const uint32_t used = places_used(&shared->segment);
	bool sent = false;

	for (uint32_t i = 0; i < used; i++) {
		const segment_id id = places_id(&shared->segment, i);

		if (id && id != shared->segment.id)
			sent |= put(shared, id, departure);
	}
	return sent;
}

static bool put_to_members(struct shared *shared, const struct sim_departure *departure)
{
	const uint32_t used = places_used(&shared->segment);
	bool sent = false;

	for (uint32_t i = 0; i < used; i++) {
		const segment_id id = shared_member_at(shared, i, departure->dest->device);

		if (id)
			sent |= put(shared, id, departure);
	}
	return sent;
}

bool shared_send(void *arg, const struct sim_departure *departure)
{
	struct shared *shared = arg;
	segment_id id;

	if (!shared_is_attached(shared) || !departure->dest)
		return false;
	if (departure->dest_qpn == SIM_MULTICAST_QPN)
		return put_to_members(shared, departure);
	if (departure->process == SHARED_EVERYBODY)
		return put_to_all(shared, departure);
	if (departure->process)
		return put(shared, departure->process, departure);
	id = shared_qpn_owner(shared, departure->dest->device, departure->dest_qpn);
	return id && put(shared, id, departure);
}
