/* SPDX-License-Identifier: MIT */
/* Lanes: packets of connected QPs, whose ring is known. */
#include "backends/sim/wire/shared_private.h"

#include "sim/base/core.h"

#include <string.h>

/*
 * A lane knows the process that has the QPN. As what is known of an owner, it holds while the entry of the QPN's
 * block is the same and the process has not been buried. place: the entry, in the mapped file.
 */

enum lane_value {
	LANE_ENTRY, /* the value of the entry */
	LANE_OWNER, /* the process */
	/* shared->forgotten when the lane was made: while it is the same, the file is mapped at the same address */
	LANE_FORGOTTEN,
};

/* Returns the ring of a lane; NULL if the ring was released. */
static struct outward *lane_ring(const struct sim_lane *lane)
{
	struct shared *shared = lane->wire;
	const segment_id id = lane->values[LANE_OWNER];
	struct outward *out = &shared->out[segment_id_place(id) % SHARED_PROCESSES_MAX];

	return lane->values[LANE_FORGOTTEN] == shared->forgotten && out->id == id ? out : NULL;
}

/* Returns true if the lane's ring still leads to the QPN. */
static bool lane_holds(const struct sim_lane *lane)
{
	const struct shared *shared = lane->wire;
	const segment_id id = lane->values[LANE_OWNER];
	const _Atomic uint64_t *entry = lane->place;
	const _Atomic uint32_t *generation =
		&shared->segment.header->generations[segment_id_place(id)];

	return atomic_load_explicit(entry, memory_order_acquire) == lane->values[LANE_ENTRY] &&
	       atomic_load_explicit(generation, memory_order_acquire) == segment_id_generation(id);
}

/* Returns the room of a lane. The owner of the QPN is checked when a packet is sent, and shared_room()
 * handles full and stalled rings. */
static unsigned int lane_room(const struct sim_lane *lane)
{
	struct outward *out = lane_ring(lane);

	if (!out || out->stalled)
		return 0;
	ring_prepare(&out->ring);
	return ring_room(&out->ring);
}

/* Returns true if the consumer knows the route of the lane's packets. The route is the same as long as the
 * lane's epoch is. */
static bool is_lanes(const struct routes *routes, unsigned int number, const struct sim_lane *lane)
{
	return routes->lanes[number] == lane && routes->epochs[number] == lane->epoch;
}

/* Hands bytes to the consumer, which knows the route of the lane's packets. */
static void publish(struct shared *shared, struct outward *out, const struct sim_path *path,
		    enum ring_kind kind, size_t length)
{
	ring_publish(&out->ring, &(struct ring_slot){.frame_bytes = (uint32_t)length,
						     .device = (uint8_t)path->dest->device->index,
						     .port = path->dest->number,
						     .kind = (uint8_t)kind,
						     .route = shared_route_number(&path->route)});
	shared_touch(shared, out);
}

/* Sends a packet with the route of the lane's last packet. Returns false if the packet cannot be read. */
static bool put_bare(struct shared *shared, struct outward *out, uint8_t *bytes,
		     const struct sim_path *path, const struct sim_packet *packet)
{
	bool readable;
	const size_t length =
		sim_packet_write_bare(packet, shared->engine->host.memory.copy, bytes, &readable);

	if (!readable) {
		path->source->device->counters.guarded_faults++;
		return false;
	}
	publish(shared, out, path, RING_BARE, length);
	return true;
}

/* Sends a packet with any route. */
static bool put_whole(struct shared *shared, struct outward *out, uint8_t *frame,
		      const struct sim_path *path, const struct sim_packet *packet)
{
	const struct sim_departure departure = {
		.source = path->source,
		.dest = path->dest,
		.route = &path->route,
		.packet = packet,
		.copy = shared->engine->host.memory.copy,
	};

	return shared_put_at(shared, out, frame, &departure);
}

static bool lane_send(const struct sim_lane *lane, const struct sim_path *path,
		      const struct sim_packet *packet)
{
	const unsigned int number = shared_route_number(&path->route);
	struct shared *shared = lane->wire;
	struct outward *out = lane_ring(lane);
	uint8_t *frame = out && lane_holds(lane) ? ring_reserve(&out->ring) : NULL;
	bool sent;

	if (!frame)
		return false;
	if (is_lanes(out->routes, number, lane)) {
		sent = put_bare(shared, out, frame, path, packet);
	} else {
		sent = put_whole(shared, out, frame, path, packet);
		out->routes->lanes[number] = sent ? lane : NULL;
		out->routes->epochs[number] = lane->epoch;
	}
	if (!sent)
		path->source->device->counters.lost_packets++;
	return true;
}

static uint32_t lane_train_bytes(const struct sim_lane *lane, const struct sim_path *path)
{
	struct outward *out = lane_ring(lane);
	uint32_t bytes;

	if (!out || !is_lanes(out->routes, shared_route_number(&path->route), lane))
		return 0;
	bytes = ring_longest(&out->ring);
	if (bytes < RING_TRAIN_HEAD_BYTES)
		return 0;
	bytes -= RING_TRAIN_HEAD_BYTES;
	return bytes < SIM_TRAIN_BYTES_MAX ? bytes : SIM_TRAIN_BYTES_MAX;
}

/* If a byte cannot be read, the packet that has the byte will be lost, and the others will not. */
static bool lane_send_train(const struct sim_lane *lane, const struct sim_path *path,
			    const struct sim_packet *train, unsigned int count)
{
	struct shared *shared = lane->wire;
	struct outward *out = lane_ring(lane);
	uint8_t *frame = out && lane_holds(lane) ? ring_reserve(&out->ring) : NULL;
	const uint32_t packets = count;
	bool readable;
	size_t length;

	if (!frame)
		return false;
	memcpy(frame, &packets, RING_TRAIN_COUNT_BYTES);
	length = sim_packet_write_bare(train, shared->engine->host.memory.copy,
				       frame + RING_TRAIN_COUNT_BYTES, &readable);
	if (readable)
		publish(shared, out, path, RING_TRAIN, RING_TRAIN_COUNT_BYTES + length);
	return readable;
}

static const struct sim_lane_ops lane_ops = {.room = lane_room,
					     .send = lane_send,
					     .train_bytes = lane_train_bytes,
					     .send_train = lane_send_train};

bool shared_lane(void *arg, const struct sim_path *path, uint32_t dest_qpn, struct sim_lane *lane)
{
	struct shared *shared = arg;
	const struct sim_device *device = path->dest->device;
	const struct known_owner *known;
	segment_id id;

	if (!shared_is_attached(shared))
		return false;
	id = shared_qpn_owner(shared, device, dest_qpn);
	if (!id || !shared_out_to(shared, id))
		return false;
	known = shared_known_owner(shared, device, dest_qpn);
	*lane = (struct sim_lane){
		.ops = &lane_ops,
		.wire = shared,
		.place = known->entry,
		.values = {[LANE_ENTRY] = known->value,
			   [LANE_OWNER] = id,
			   [LANE_FORGOTTEN] = shared->forgotten},
	};
	return true;
}
