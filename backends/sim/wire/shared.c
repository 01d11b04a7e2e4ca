/* SPDX-License-Identifier: MIT */
/* The wire `shared`: packets to other processes of a world, and from them. */
#include "backends/sim/wire/shared.h"

#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/shared_areas.h"
#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_domains.h"
#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_services.h"
#include "backends/sim/wire/shared_watch.h"

#include "sim/cm/cm.h"
#include "sim/object/device.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MULTICAST_QPN 0xffffffu

/* The receiver of a message that goes to all other processes. */
#define EVERYBODY UINT64_MAX

/* If a living process takes no frame for this time, packets for its full ring are lost from then on, as
 * behind a switch that gives up on a paused port. */
#define LAG_NS UINT64_C(2000000000)

/* While a ring is full, its sender checks at this interval if the consumer lives. */
#define LIFE_NS UINT64_C(100000000)

/* A ring that could not be made, or mapped, is tried again after this time. */
#define RETRY_NS UINT64_C(200000000)

/* How long this process waits for the lock before it puts off the burial of another process. */
#define BURIAL_PATIENCE_NS UINT64_C(1000000)

/* The most rings from other processes: those of living processes, and of dead ones whose packets this
 * process has not taken yet. More rings than this come from a process that writes nonsense. */
#define INWARD_MAX (2 * SHARED_PROCESSES_MAX)

/*
 * receive() takes at most this many frames from a ring before it looks at the other rings. If the last look
 * found the ring empty, it takes one frame: the producer is probably writing the next frame now, such as the
 * ACK behind an answer, and reading that frame's cache line would delay the frame that has arrived.
 */
#define BATCH 64

/*
 * The routes of the last frames with network headers in a ring. Both ends keep the same routes. A packet
 * whose route is known travels without these headers, and takes fewer cache lines.
 */
struct routes {
	uint32_t known; /* a bit for each number */
	struct sim_route routes[RING_ROUTES];
	/* Outward: for each route number, the lane whose packets have that route, and the lane's epoch;
	 * NULL: no lane. */
	const struct sim_lane *lanes[RING_ROUTES];
	uint64_t epochs[RING_ROUTES];
};

/* This process remembers the owners of this many blocks of QPNs to which it has sent. */
#define OWNERS_KNOWN 16u

/* The owner of a block of QPNs, as its entry in the table said. */
struct known_owner {
	const _Atomic uint64_t *entry; /* NULL: nothing is known */
	uint64_t value;		       /* of the entry */
	segment_id id;
	uint32_t device, block;
};

/* A ring to another process. Indexed by the place of that process. */
struct outward {
	segment_id id; /* of the consumer; 0: no ring */
	struct area area;
	struct ring_out ring;
	struct routes *routes;
	bool touched; /* has frames since the last flush */
	bool waiting; /* packets wait for room */
	bool stalled; /* the consumer is dead, or has taken nothing for LAG_NS */
	uint32_t
		stuck_head; /* while packets wait: the head, and the time since when the head has not moved */
	uint64_t stuck_since_ns;
	uint64_t life_ns; /* the time of the next check if the consumer lives */
	uint32_t
		lag_head; /* at the last ack timeout: the head, and the time since when it has not moved */
	uint64_t lag_since_ns;
	uint64_t retry_ns; /* if no ring could be made: the time of the next attempt */
};

/* A ring from another process. */
struct inward {
	struct inward *next;
	segment_id id; /* of the producer */
	struct area area;
	struct ring_in ring;
	struct routes routes;
	bool touched; /* frames were taken since the last flush */
	bool behind;  /* the last look has found a frame */
	bool broken;  /* the producer, or another process, has written nonsense into the ring */
	bool gone;    /* its producer has let go */
};

struct shared {
	struct wire wire;
	struct segment segment;
	char *name, *devices_text;
	struct sim_device *devices[SEGMENT_DEVICES];
	struct sim_engine *engine; /* of the devices */
	shared_called_fn *called;
	void *called_arg;
	uint64_t identity, base_ns, wall_base_ns;
	struct bell own_bell;	   /* while not attached */
	struct shared_watch watch; /* starts when the engine asks for it */
	uint32_t news;		   /* the value of `news` when the rings were last looked at */
	uint64_t news_retry_ns;	   /* if a ring could not be mapped: the time of the next attempt */
	bool taken;		   /* an inward ring is touched */
	bool relieved;	  /* a ring with waiting packets has gone: these packets try again */
	uint32_t waiting; /* counts the rings with waiting packets; their places follow */
	uint16_t waited[SHARED_PROCESSES_MAX];
	struct inward *in;
	uint32_t in_count;
	/* The places whose outward rings are touched. */
	uint32_t touched_count;
	uint16_t touched[SHARED_PROCESSES_MAX];
	struct known_owner owners[OWNERS_KNOWN];
	uint64_t
		forgotten; /* counts how often this process has dropped its rings and its mapping of the file */
	struct ring_stage stage; /* of long frames */
	struct outward out[SHARED_PROCESSES_MAX];
};

static struct shared *shared_of(const struct wire *wire)
{
	return (struct shared *)wire;
}

static bool is_attached(const struct shared *shared)
{
	return shared->segment.id;
}

/* --- rings to others --- */

static void stop_waiting(struct shared *shared, struct outward *out)
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

/* Releases a ring. Without the lock, the area stays taken until another process buries this one. */
static void close_out(struct shared *shared, struct outward *out)
{
	shared->relieved |= out->waiting;
	stop_waiting(shared, out);
	if (!areas_release(&shared->segment, &out->area, AREA_PRODUCER, SEGMENT_SEND_PATIENCE_NS))
		areas_unmap(&out->area);
	free(out->routes);
	*out = (struct outward){.touched = out->touched};
}

static bool open_out(struct shared *shared, struct outward *out, segment_id id)
{
	struct routes *routes;

	if (out->retry_ns && segment_now_ns() < out->retry_ns)
		return false;
	routes = calloc(1, sizeof(*routes));
	if (!routes || !areas_take(&shared->segment, id, &out->area)) {
		free(routes);
		out->retry_ns = segment_now_ns() + RETRY_NS;
		return false;
	}
	*out = (struct outward){
		.id = id,
		.routes = routes,
		.touched = out->touched,
		.area = out->area,
		.ring = {.memory = out->area.memory, .capacity = out->area.capacity}};
	return true;
}

/* Returns the ring to a process, and makes it if need be; NULL if it cannot be made. */
static struct outward *out_to(struct shared *shared, segment_id id)
{
	struct outward *out = &shared->out[segment_id_place(id) % SHARED_PROCESSES_MAX];

	if (out->id == id)
		return out;
	if (out->id)
		close_out(shared, out);
	return open_out(shared, out, id) ? out : NULL;
}

static segment_id look_up_owner(struct shared *shared, struct known_owner *known, uint32_t device,
				uint32_t block)
{
	const segment_id id = blocks_owner_at(&shared->segment, device, SIM_NUMBERS_QP, block,
					      &known->entry, &known->value);

	known->id = id;
	known->device = device;
	known->block = block;
	return id == shared->segment.id ? 0 : id;
}

static uint32_t block_of(const struct sim_device *device, uint32_t qpn)
{
	return sim_table_place(&device->qps, qpn) / SIM_BLOCK_PLACES;
}

/* Returns the process that has a QPN; 0: no other process. A remembered owner of a block is valid while the
 * block's entry is the same and the owner has not been buried. */
static segment_id owner_of(struct shared *shared, const struct sim_device *device, uint32_t qpn)
{
	const uint32_t block = block_of(device, qpn);
	struct known_owner *known = &shared->owners[block % OWNERS_KNOWN];

	if (known->id && known->block == block && known->device == device->index &&
	    atomic_load_explicit(known->entry, memory_order_acquire) == known->value &&
	    places_id(&shared->segment, segment_id_place(known->id)) == known->id)
		return known->id == shared->segment.id ? 0 : known->id;
	return look_up_owner(shared, known, device->index, block);
}

/* --- room --- */

/* Returns true if the consumer of a full ring is dead, stopped, or has taken nothing for LAG_NS. */
static bool is_stalled(struct shared *shared, struct outward *out)
{
	const uint64_t now_ns = segment_now_ns();

	if (now_ns < out->life_ns)
		return false;
	out->life_ns = now_ns + LIFE_NS;
	if (places_live(&shared->segment, out->id))
		return now_ns - out->stuck_since_ns >= LAG_NS;
	places_bury(&shared->segment, out->id, BURIAL_PATIENCE_NS);
	return true;
}

/* Notes that packets wait for room in the ring. */
static void wait_for_room(struct shared *shared, struct outward *out)
{
	if (!out->waiting || out->stuck_head != out->ring.head) {
		out->stuck_head = out->ring.head;
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
		wait_for_room(shared, out);
	return room;
}

static unsigned int shared_room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	struct outward *out;
	segment_id id;

	if (!is_attached(shared) || !path->dest || path->multicast)
		return UINT_MAX;
	id = owner_of(shared, path->dest->device, dest_qpn);
	out = id ? out_to(shared, id) : NULL;
	return out ? room_in(shared, out) : UINT_MAX;
}

static unsigned int room_at_process(struct shared *shared, segment_id id)
{
	struct outward *out = NULL;

	/* After a process has ended, another one may have its numbers and services. */
	if (places_id(&shared->segment, segment_id_place(id)) == id)
		out = out_to(shared, id);
	return out ? room_in(shared, out) : UINT_MAX;
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

static unsigned int shared_room_at(void *arg, const struct sim_path *path, uint64_t process)
{
	struct shared *shared = arg;

	(void)path;
	if (!is_attached(shared))
		return UINT_MAX;
	return process == EVERYBODY ? room_at_all(shared) : room_at_process(shared, process);
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

static bool shared_lags(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	segment_id id;
	struct outward *out;

	if (!is_attached(shared) || !path->dest)
		return false;
	id = owner_of(shared, path->dest->device, dest_qpn);
	out = id ? &shared->out[segment_id_place(id) % SHARED_PROCESSES_MAX] : NULL;
	return out && out->id == id && lags(shared, out);
}

/*
 * Looks at the rings with waiting packets. Returns true if these packets should try again. A process that is
 * about to sleep asks the consumers to ring its bell: it calls this after it has begun to listen, as its
 * last look for work.
 */
static bool look_for_room(struct shared *shared)
{
	const bool sleepy = bell_is_listened(shared_bell(&shared->wire));
	bool ready = false;

	/* From the end, because stop_waiting() moves the last place into the gap. */
	for (uint32_t i = shared->waiting; i-- > 0;) {
		struct outward *out = &shared->out[shared->waited[i]];

		if (sleepy)
			ring_want(&out->ring);
		if (!room_in(shared, out)) {
			out->stalled = is_stalled(shared, out);
			if (!out->stalled)
				continue;
		}
		stop_waiting(shared, out);
		ready = true;
	}
	return ready;
}

/* --- sending --- */

/* Returns the number of a route. The routes of different connections between two processes have different
 * UDP source ports. */
static unsigned int route_number(const struct sim_route *route)
{
	return (unsigned int)(route->udp_source_port ^ route->dlid) % RING_ROUTES;
}

/* Returns true if the consumer knows the route of a packet. */
static bool is_known(const struct routes *routes, const struct sim_route *route)
{
	const unsigned int number = route_number(route);
	const void *kept = &routes->routes[number], *own = route;

	/* Routes that differ only in padding bytes count as different. Their packets then have headers,
	 * which does no harm. */
	return routes->known >> number & 1 && memcmp(kept, own, sizeof(*route)) == 0;
}

static void learn_sent(struct routes *routes, const struct sim_route *route)
{
	const unsigned int number = route_number(route);

	routes->known |= 1u << number;
	routes->lanes[number] = NULL;
	memcpy(&routes->routes[number], route, sizeof(*route));
}

/* The flags and the route's number of a packet. */
static uint8_t flags_of(const struct outward *out, const struct sim_departure *departure)
{
	unsigned int flags;

	if (departure->frame_bytes)
		return RING_SEALED;
	flags = is_known(out->routes, departure->route) ? RING_BARE : 0;
	return (uint8_t)(flags | route_number(departure->route) << RING_ROUTE_SHIFT);
}

/* Returns the length of the frame; 0: it cannot be read. */
static size_t write_frame(const struct sim_departure *departure, uint8_t flags, uint8_t *frame)
{
	return flags & RING_BARE ? sim_departure_write_bare(departure, frame)
				 : sim_departure_write(departure, false, frame);
}

/* Returns true if the frame should be written to the stage, and copied from there. */
static bool is_long(const struct sim_departure *departure)
{
	return (departure->frame_bytes ? departure->frame_bytes
				       : departure->packet->payload_bytes) >= RING_LONG_BYTES;
}

static void touch(struct shared *shared, struct outward *out)
{
	if (!out->touched)
		shared->touched[shared->touched_count++] = (uint16_t)(out - shared->out);
	out->touched = true;
}

/* Writes a packet's frame to the place that ring_reserve() has returned. Returns false if the packet cannot
 * be read. */
static bool put_at(struct shared *shared, struct outward *out, uint8_t *frame,
		   const struct sim_departure *departure)
{
	const uint8_t device = (uint8_t)departure->dest->device->index;
	const uint8_t port = departure->dest->number;
	const bool staged = is_long(departure);
	const uint8_t flags = flags_of(out, departure);
	const size_t frame_bytes =
		write_frame(departure, flags, staged ? shared->stage.frame : frame);

	if (!frame_bytes)
		return false;
	if (!(flags & (RING_BARE | RING_SEALED)))
		learn_sent(out->routes, departure->route);
	if (staged)
		ring_publish_long(&out->ring, &shared->stage, (uint32_t)frame_bytes, device, port,
				  flags);
	else
		ring_publish(&out->ring, (uint32_t)frame_bytes, device, port, flags);
	touch(shared, out);
	return true;
}

/* Puts a packet into the ring to a process. The packet is lost if the ring has no room. */
static bool put(struct shared *shared, segment_id id, const struct sim_departure *departure)
{
	struct outward *out = out_to(shared, id);
	uint8_t *frame = out ? ring_reserve(&out->ring) : NULL;

	return frame && put_at(shared, out, frame, departure);
}

/* Sends bytes that are no frame, with the flags of @slot. */
static bool put_bytes(struct shared *shared, uint64_t process, const struct ring_slot *slot,
		      const void *bytes)
{
	struct outward *out;
	uint8_t *frame;

	if (!is_attached(shared) ||
	    places_id(&shared->segment, segment_id_place(process)) != process)
		return false;
	out = out_to(shared, process);
	frame = out ? ring_reserve(&out->ring) : NULL;
	if (!frame)
		return false;
	memcpy(frame, bytes, slot->frame_bytes);
	ring_publish(&out->ring, slot->frame_bytes, slot->device, slot->port, slot->flags);
	touch(shared, out);
	return true;
}

static bool shared_relay(void *arg, const struct sim_port *port, uint64_t process,
			 const uint8_t *bytes, size_t length)
{
	const struct ring_slot slot = {.frame_bytes = (uint32_t)length,
				       .device = (uint8_t)port->device->index,
				       .port = port->number,
				       .flags = RING_RELAY};

	return put_bytes(arg, process, &slot, bytes);
}

bool shared_call(struct wire *wire, uint64_t process, const void *bytes, size_t length)
{
	const struct ring_slot slot = {.frame_bytes = (uint32_t)length, .flags = RING_CALL};

	return put_bytes(shared_of(wire), process, &slot, bytes);
}

/* Returns the process at a place, if it is another process that has members of groups at the device; else 0. */
static segment_id member_at(const struct shared *shared, uint32_t place,
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
		const segment_id id = member_at(shared, i, departure->dest->device);

		if (id)
			sent |= put(shared, id, departure);
	}
	return sent;
}

static bool shared_send(void *arg, const struct sim_departure *departure)
{
	struct shared *shared = arg;
	segment_id id;

	if (!is_attached(shared) || !departure->dest)
		return false;
	if (departure->dest_qpn == MULTICAST_QPN)
		return put_to_members(shared, departure);
	if (departure->process == EVERYBODY)
		return put_to_all(shared, departure);
	if (departure->process)
		return put(shared, departure->process, departure);
	id = owner_of(shared, departure->dest->device, departure->dest_qpn);
	return id && put(shared, id, departure);
}

/* --- lanes ---
 *
 * A lane knows the process that has the QPN. As what is known of an owner, it holds while the entry of the QPN's
 * block is the same and the process has not been buried. place: the entry, in the mapped file.
 */

enum lane_value {
	LANE_ENTRY,	/* the value of the entry */
	LANE_OWNER,	/* the process */
	LANE_FORGOTTEN, /* shared->forgotten when the lane was made: while it is the same, the file is mapped at the same address */
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

/* Sends a short packet with the route of the lane's last packet. Returns false if the packet cannot be read. */
static bool put_bare(struct shared *shared, struct outward *out, uint8_t *bytes,
		     const struct sim_path *path, const struct sim_packet *packet)
{
	const unsigned int number = route_number(&path->route);
	bool readable;
	const size_t length =
		sim_packet_write_bare(packet, shared->engine->host.memory.copy, bytes, &readable);

	if (!readable) {
		path->source->device->counters.guarded_faults++;
		return false;
	}
	ring_publish(&out->ring, (uint32_t)length, (uint8_t)path->dest->device->index,
		     path->dest->number, (uint8_t)(RING_BARE | number << RING_ROUTE_SHIFT));
	touch(shared, out);
	return true;
}

/* Sends a packet of any length and any route. */
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

	return put_at(shared, out, frame, &departure);
}

static bool lane_send(const struct sim_lane *lane, const struct sim_path *path,
		      const struct sim_packet *packet)
{
	const unsigned int number = route_number(&path->route);
	struct shared *shared = lane->wire;
	struct outward *out = lane_ring(lane);
	uint8_t *frame = out && lane_holds(lane) ? ring_reserve(&out->ring) : NULL;
	bool sent;

	if (!frame)
		return false;
	if (is_lanes(out->routes, number, lane) && packet->payload_bytes < RING_LONG_BYTES) {
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

static const struct sim_lane_ops lane_ops = {.room = lane_room, .send = lane_send};

static bool shared_lane(void *arg, const struct sim_path *path, uint32_t dest_qpn,
			struct sim_lane *lane)
{
	struct shared *shared = arg;
	const struct sim_device *device = path->dest->device;
	const struct known_owner *known;
	segment_id id;

	if (!is_attached(shared))
		return false;
	id = owner_of(shared, device, dest_qpn);
	if (!id || !out_to(shared, id))
		return false;
	known = &shared->owners[block_of(device, dest_qpn) % OWNERS_KNOWN];
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

/* --- what the engine asks --- */

/* Each process of the world has all its devices: a port that the engine does not know is in no process. */
static bool shared_reaches(void *arg, struct sim_path *path)
{
	(void)arg;
	(void)path;
	return false;
}

static bool shared_has_members(void *arg, const struct sim_port *port)
{
	const struct shared *shared = arg;
	uint32_t used;

	if (!is_attached(shared))
		return false;
	used = places_used(&shared->segment);
	for (uint32_t i = 0; i < used; i++)
		if (member_at(shared, i, port->device))
			return true;
	return false;
}

static void shared_joined(void *arg, const struct sim_device *device, uint32_t memberships)
{
	struct shared *shared = arg;

	if (is_attached(shared) && device->index < SEGMENT_DEVICES)
		atomic_store_explicit(&segment_place_at(&shared->segment, shared->segment.place)
					       ->memberships[device->index],
				      memberships, memory_order_relaxed);
}

static enum sim_presence shared_find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct shared *shared = arg;
	segment_id id;

	if (!path->dest)
		return SIM_PRESENCE_UNKNOWN;
	id = is_attached(shared) ? owner_of(shared, path->dest->device, dest_qpn) : 0;
	if (!id)
		return SIM_PRESENCE_NOBODY;
	if (places_live(&shared->segment, id))
		return SIM_PRESENCE_OTHER;
	places_bury(&shared->segment, id, BURIAL_PATIENCE_NS);
	return SIM_PRESENCE_NOBODY;
}

static uint64_t shared_holder(void *arg, const struct sim_device *device, unsigned int numbers,
			      uint32_t number)
{
	const struct shared *shared = arg;
	const segment_id id = shared_owner(&shared->wire, device, numbers, number);

	return id == shared->segment.id ? 0 : id;
}

/* --- services --- */

static uint64_t shared_server(void *arg, const struct sim_device *device,
			      const struct sim_gsi_target *target)
{
	struct shared *shared = arg;

	(void)device;
	if (!is_attached(shared))
		return 0;
	return target->kind == SIM_GSI_EVERYBODY ? EVERYBODY
						 : services_owner(&shared->segment, target);
}

static bool shared_lives(void *arg, uint64_t process)
{
	struct shared *shared = arg;

	if (!is_attached(shared) || places_live(&shared->segment, process))
		return true;
	places_bury(&shared->segment, process, BURIAL_PATIENCE_NS);
	return false;
}

/* Starts the thread that watches, unless it runs. Returns true if it runs. It stays when nothing is watched any
 * more: processes that had connections mostly make new ones. */
static bool shared_watches(void *arg)
{
	struct shared *shared = arg;

	return is_attached(shared) &&
	       (shared->watch.runs ||
		shared_watch_start(&shared->watch, shared->segment.fd, shared_bell(&shared->wire)));
}

static int shared_reserve(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags)
{
	struct shared *shared = arg;

	return is_attached(shared) ? services_reserve(&shared->segment, service_id, address, flags)
				   : ENOMEM;
}

static void shared_unreserve(void *arg, uint64_t service_id, const uint8_t address[16])
{
	struct shared *shared = arg;

	if (is_attached(shared))
		services_unreserve(&shared->segment, service_id, address);
}

static int shared_listen_on(void *arg, uint64_t service_id, const uint8_t address[16], bool on)
{
	struct shared *shared = arg;

	return is_attached(shared) ? services_listen(&shared->segment, service_id, address, on)
				   : ENOMEM;
}

/* --- rings from others --- */

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
			close_out(shared, &shared->out[i]);
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
		shared->news_retry_ns = segment_now_ns() + RETRY_NS;
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
static void learn_received(struct routes *routes, const struct sim_port *port,
			   const struct ring_slot *slot)
{
	const unsigned int number = slot->flags >> RING_ROUTE_SHIFT;

	routes->known &= ~(1u << number);
	if (sim_route_read(slot->frame, slot->frame_bytes, sim_port_is_infiniband(port),
			   &routes->routes[number]) == SIM_DECODE_OK)
		routes->known |= 1u << number;
}

/* Delivers a frame without network headers. If its route is unknown, the producer has written nonsense, and
 * the packet is lost. */
static void deliver_bare(const struct routes *routes, struct sim_port *port,
			 const struct ring_slot *slot)
{
	const unsigned int number = slot->flags >> RING_ROUTE_SHIFT;

	if (routes->known >> number & 1)
		sim_way_out_arrive_bare(port, &routes->routes[number], slot->frame,
					slot->frame_bytes);
}

/* Gives a frame to its port. The engine reads each header of a frame once, in the ring. */
static void deliver(struct shared *shared, struct inward *in, const struct ring_slot *slot)
{
	struct sim_device *device =
		slot->device < SEGMENT_DEVICES ? shared->devices[slot->device] : NULL;
	struct sim_port *port = device ? sim_device_port(device, slot->port) : NULL;

	if (slot->flags & RING_CALL) {
		take_call(shared, in->id, slot);
		return;
	}
	if (!port)
		return;
	if (slot->flags & RING_BARE) {
		deliver_bare(&in->routes, port, slot);
	} else if (slot->flags & RING_RELAY) {
		sim_way_out_relayed(port, in->id, slot->frame, slot->frame_bytes);
	} else {
		if (!(slot->flags & RING_SEALED))
			learn_received(&in->routes, port, slot);
		sim_way_out_arrive(port, slot->frame, slot->frame_bytes,
				   !(slot->flags & RING_SEALED));
	}
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
		if (++count % 8 == 0)
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

static bool shared_arrived(const struct wire *wire)
{
	const struct shared *shared = shared_of(wire);

	if (!is_attached(shared))
		return false;
	if (shared->waiting || shared->relieved || news_of(shared) != shared->news ||
	    atomic_load_explicit(&shared->watch.ended, memory_order_relaxed))
		return true;
	for (const struct inward *in = shared->in; in; in = in->next)
		if (in->broken || in->gone || !ring_is_empty(&in->ring))
			return true;
	return false;
}

static bool shared_receive(struct wire *wire)
{
	struct shared *shared = shared_of(wire);
	bool came = false;

	if (!is_attached(shared))
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
	if ((shared->waiting && look_for_room(shared)) || shared->relieved) {
		shared->relieved = false;
		sim_way_out_ready(shared->engine);
		came = true;
	}
	return came;
}

/* --- wakes --- */

static void ring_bell_of(const struct shared *shared, segment_id id)
{
	struct bell *bell;

	if (!id || places_id(&shared->segment, segment_id_place(id)) != id)
		return;
	bell = &segment_place_at(&shared->segment, segment_id_place(id))->bell;
	if (bell_is_listened(bell))
		bell_ring(bell);
}

static void flush_rings(struct shared *shared)
{
	for (uint32_t i = 0; i < shared->touched_count; i++)
		ring_flush(&shared->out[shared->touched[i]].ring);
}

/* One barrier serves all rings: it stands between the stores of frames and heads, and the reads of who
 * listens. */
static void shared_flush(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	if (!shared->touched_count && !shared->taken)
		return;
	flush_rings(shared);
	bell_barrier();
	while (shared->touched_count) {
		struct outward *out = &shared->out[shared->touched[--shared->touched_count]];

		out->touched = false;
		ring_bell_of(shared, out->id);
	}
	for (struct inward *in = shared->taken ? shared->in : NULL; in; in = in->next) {
		if (in->touched && ring_is_wanted(&in->ring))
			ring_bell_of(shared, in->id);
		in->touched = false;
	}
	shared->taken = false;
}

/* --- attach, fork and leave --- */

/* Forgets all rings without telling the other processes. */
static void forget(struct shared *shared)
{
	while (shared->in) {
		struct inward *in = shared->in;

		shared->in = in->next;
		areas_unmap(&in->area);
		free(in);
	}
	shared->in_count = 0;
	for (uint32_t i = 0; i < SHARED_PROCESSES_MAX; i++) {
		if (shared->out[i].id)
			areas_unmap(&shared->out[i].area);
		free(shared->out[i].routes);
	}
	memset(shared->out, 0, sizeof(shared->out));
	memset(shared->owners, 0, sizeof(shared->owners));
	shared->forgotten++;
	shared->waiting = 0;
	shared->relieved = false;
	shared->touched_count = 0;
	shared->taken = false;
	shared->news = 0;
	shared->news_retry_ns = 0;
}

static int attach(struct shared *shared)
{
	const struct segment_world world = {shared->name, shared->devices_text, shared->identity,
					    shared->base_ns, shared->wall_base_ns};
	int err = segment_open(&shared->segment, &world);

	if (err)
		return err;
	err = places_attach(&shared->segment);
	if (err) {
		segment_drop(&shared->segment);
		return err;
	}
	shared->identity = shared->segment.header->identity;
	shared->base_ns = shared->segment.header->base_ns;
	shared->wall_base_ns = shared->segment.header->wall_base_ns;
	segment_unlock(&shared->segment);
	return 0;
}

static bool shared_has(const struct wire *wire, const struct sim_device *device)
{
	return device->index < SEGMENT_DEVICES && shared_of(wire)->devices[device->index] == device;
}

/* Nothing to switch: the world listens to the bell that other processes ring. */
static void shared_listen(struct wire *wire, bool on)
{
	(void)wire;
	(void)on;
}

static void shared_forked(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	shared_watch_forget(&shared->watch);
	forget(shared);
	segment_drop(&shared->segment);
}

static int shared_resume(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	return is_attached(shared) ? 0 : attach(shared);
}

static void shared_free(struct shared *shared)
{
	free(shared->name);
	free(shared->devices_text);
	free(shared);
}

static void shared_close(struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	shared_watch_stop(&shared->watch);
	forget(shared);
	places_leave(&shared->segment);
	shared_free(shared);
}

/* As calloc(), but aligned for the stage. */
static struct shared *shared_make(void)
{
	struct shared *shared = aligned_alloc(alignof(struct shared), sizeof(*shared));

	return shared ? memset(shared, 0, sizeof(*shared)) : NULL;
}

int shared_open(const struct shared_config *config, struct wire **wire)
{
	struct shared *shared = shared_make();
	int err;

	if (!shared)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	shared->wire = (struct wire){
		.name = "shared",
		.shares_ports = true,
		.way = {.arg = shared,
			.reaches = shared_reaches,
			.room = shared_room,
			.lags = shared_lags,
			.send = shared_send,
			.lane = shared_lane,
			.has_members = shared_has_members,
			.joined = shared_joined,
			.find = shared_find,
			.holder = shared_holder,
			.relay = shared_relay,
			.server = shared_server,
			.room_at = shared_room_at,
			.lives = shared_lives,
			.watches = shared_watches,
			.reserve = shared_reserve,
			.unreserve = shared_unreserve,
			.listen = shared_listen_on},
		.has = shared_has,
		.arrived = shared_arrived,
		.receive = shared_receive,
		.flush = shared_flush,
		.listen = shared_listen,
		.forked = shared_forked,
		.resume = shared_resume,
		.close = shared_close,
	};
	shared->segment.fd = -1;
	shared->name = strdup(config->world ? config->world : "");
	shared->devices_text = strdup(config->devices ? config->devices : "");
	err = shared->name && shared->devices_text ? attach(shared)
						   : refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (err)
		shared_free(shared);
	else
		*wire = &shared->wire;
	return err;
}

void shared_join(struct wire *wire, struct sim_device *device)
{
	struct shared *shared = shared_of(wire);

	if (device->index < SEGMENT_DEVICES)
		shared->devices[device->index] = device;
	shared->engine = device->engine;
}

/* --- what the world asks --- */

void shared_take_calls(struct wire *wire, shared_called_fn *called, void *arg)
{
	shared_of(wire)->called = called;
	shared_of(wire)->called_arg = arg;
}

uint64_t shared_identity(const struct wire *wire)
{
	return shared_of(wire)->identity;
}

void shared_base_ns(const struct wire *wire, uint64_t *monotonic_ns, uint64_t *wall_ns)
{
	*monotonic_ns = shared_of(wire)->base_ns;
	*wall_ns = shared_of(wire)->wall_base_ns;
}

struct bell *shared_bell(const struct wire *wire)
{
	struct shared *shared = shared_of(wire);

	return is_attached(shared)
		       ? &segment_place_at(&shared->segment, shared->segment.place)->bell
		       : &shared->own_bell;
}

uint64_t shared_process(const struct wire *wire)
{
	return shared_of(wire)->segment.id;
}

bool shared_process_lives(const struct wire *wire, uint64_t process)
{
	const struct shared *shared = shared_of(wire);

	return is_attached(shared) && places_live(&shared->segment, process);
}

uint64_t shared_owner(const struct wire *wire, const struct sim_device *device,
		      enum sim_numbers numbers, uint32_t number)
{
	const struct shared *shared = shared_of(wire);
	const struct sim_table *const tables[SIM_NUMBERS] = {
		[SIM_NUMBERS_QP] = &device->qps,
		[SIM_NUMBERS_SRQ] = &device->srqs,
		[SIM_NUMBERS_KEY] = &device->regions,
	};
	const uint32_t block = sim_table_place(tables[numbers], number) / SIM_BLOCK_PLACES;

	return is_attached(shared) ? blocks_owner(&shared->segment, device->index, numbers, block)
				   : 0;
}

enum shared_domain shared_open_domain(struct wire *wire, const struct sim_device *device,
				      const struct stat *inode, int oflags, uint32_t *entry)
{
	struct shared *shared = shared_of(wire);
	const struct domain_key key = {device->index, inode->st_dev, inode->st_ino};

	return is_attached(shared) ? domains_open(&shared->segment, &key, oflags, entry)
				   : SHARED_DOMAIN_FULL;
}

void shared_close_domain(struct wire *wire, uint32_t entry)
{
	domains_close(&shared_of(wire)->segment, entry);
}

bool shared_claim(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
		  uint16_t *generation)
{
	struct shared *shared = arg;

	return is_attached(shared) &&
	       blocks_claim(&shared->segment, device_index, numbers, block, generation);
}
