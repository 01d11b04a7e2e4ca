/* SPDX-License-Identifier: MIT */
#include "sim/fabric.h"

#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A packet under way on a link with delay; it owns its bytes. */
struct sim_flight {
	struct sim_timer timer;
	struct sim_flight *next_made;
	struct sim_flight *next_spare;
	struct sim_world *world;
	struct sim_port *dest;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	uint8_t payload[SIM_PATH_MTU_MAX];
};

void sim_fabric_init(struct sim_world *world)
{
	world->fabric.meshed = true;
}

void sim_fabric_destroy(struct sim_world *world)
{
	struct sim_fabric *fabric = &world->fabric;

	while (fabric->flights) {
		struct sim_flight *flight = fabric->flights;

		fabric->flights = flight->next_made;
		free(flight);
	}
	while (fabric->links) {
		struct sim_link *link = fabric->links;

		fabric->links = link->next;
		free(link);
	}
}

int sim_fabric_join(struct sim_world *world, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second)
{
	struct sim_fabric *fabric = &world->fabric;
	struct sim_link *link;

	if (!fabric->meshed && sim_fabric_link(world, &a->ports[0], &b->ports[0]))
		return EEXIST;
	link = malloc(sizeof(*link));
	if (!link)
		return ENOMEM;
	*link = (struct sim_link){
		.next = fabric->links,
		.a = &a->ports[0],
		.b = &b->ports[0],
		.delay_ns = delay_ns,
		.bits_per_second = bits_per_second,
	};
	fabric->links = link;
	fabric->meshed = false;
	sim_world_changed(world);
	return 0;
}

void sim_fabric_observe(struct sim_world *world)
{
	struct sim_fabric *fabric = &world->fabric;

	fabric->observed = fabric->faults.count || fabric->sinks[0].frame || fabric->sinks[1].frame;
}

void sim_fabric_sink(struct sim_world *world, unsigned int which, const struct sim_trace_sink *sink)
{
	world->fabric.sinks[which] = sink ? *sink : (struct sim_trace_sink){0};
	sim_fabric_observe(world);
}

struct sim_link *sim_fabric_link(struct sim_world *world, struct sim_port *a, struct sim_port *b)
{
	struct sim_fabric *fabric = &world->fabric;

	if (fabric->meshed || a->device == b->device)
		return &fabric->direct;
	for (struct sim_link *link = fabric->links; link; link = link->next)
		if ((link->a == a && link->b == b) || (link->a == b && link->b == a))
			return link;
	return NULL;
}

static bool has_gid(const struct sim_port *port, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < port->gid_count; i++)
		if (memcmp(&port->gids[i], gid, sizeof(*gid)) == 0)
			return true;
	return false;
}

struct sim_port *sim_fabric_find(struct sim_world *world, const union ibv_gid *gid)
{
	for (struct sim_device *device = world->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->port_count; i++)
			if (has_gid(&device->ports[i], gid))
				return &device->ports[i];
	return NULL;
}

/* Same partition, and not both of them limited members. */
static bool pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000);
}

static bool takes_requests(const struct sim_qp *qp)
{
	return qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQE;
}

static bool takes_responses(const struct sim_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

/* Whether a connected QP's packet is from the other end of its connection. */
static bool from_peer(const struct sim_qp *qp, const struct sim_packet *packet,
		      const struct sim_route *route)
{
	return packet->source_qpn == qp->dest_qpn &&
	       memcmp(route->source_gid, qp->path.route.dest_gid, sizeof(route->source_gid)) == 0;
}

/* Whether the QP is there and admits the packet. */
static bool admits(const struct sim_port *port, const struct sim_qp *qp,
		   const struct sim_packet *packet, const struct sim_route *route,
		   const struct sim_opcode_info *info)
{
	if (!qp || (packet->opcode & 0xe0) != qp->transport || qp->port_num != port->number ||
	    !pkeys_match(packet->pkey, port->pkeys[qp->pkey_index]))
		return false;
	if (info->flags & SIM_OP_REQUEST ? !takes_requests(qp) : !takes_responses(qp))
		return false;
	return qp->type == IBV_QPT_UD || from_peer(qp, packet, route);
}

/* A packet whose ICRC is right has come to a port. */
static void arrive(struct sim_port *port, const struct sim_packet *packet,
		   const struct sim_route *route)
{
	struct sim_device *device = port->device;
	const struct sim_opcode_info *info = &sim_opcodes[packet->opcode];
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);

	device->counters.received_packets++;
	if (!admits(port, qp, packet, route, info))
		device->counters.dropped_packets++;
	else if (qp->type == IBV_QPT_UD)
		sim_datagram_receive(qp, packet, route);
	else if (info->flags & SIM_OP_REQUEST)
		sim_responder_receive(qp, packet);
	else
		sim_completer_receive(qp, packet);
}

static void land(struct sim_timer *timer)
{
	struct sim_flight *flight = (struct sim_flight *)timer;
	struct sim_fabric *fabric = &flight->world->fabric;

	arrive(flight->dest, &flight->packet, &flight->route);
	flight->next_spare = fabric->spare;
	fabric->spare = flight;
}

/* Buffers are made as the number under way reaches a new height, and kept. */
static struct sim_flight *take_flight(struct sim_world *world)
{
	struct sim_fabric *fabric = &world->fabric;
	struct sim_flight *flight = fabric->spare;

	if (flight) {
		fabric->spare = flight->next_spare;
		return flight;
	}
	flight = malloc(sizeof(*flight));
	if (!flight || sim_clock_reserve(&world->clock)) {
		free(flight);
		return NULL;
	}
	sim_timer_init(&flight->timer, land);
	flight->world = world;
	flight->next_made = fabric->flights;
	fabric->flights = flight;
	return flight;
}

/* False where there is no memory for it: the packet is lost, as in a full switch. */
static bool take_off(struct sim_world *world, const struct sim_path *path,
		     const struct sim_packet *packet, uint64_t arrival_ns)
{
	struct sim_flight *flight = take_flight(world);

	if (!flight)
		return false;
	flight->dest = path->dest;
	flight->route = path->route;
	flight->packet = *packet;
	flight->span = (struct sim_span){flight->payload, packet->payload_bytes};
	flight->packet.spans = &flight->span;
	flight->packet.span_count = packet->payload_bytes ? 1 : 0;
	if (packet->payload_bytes)
		sim_copy_spans(path->source->device, packet->spans, packet->span_count,
			       &flight->span, 1);
	sim_timer_arm(&world->clock, &flight->timer, arrival_ns);
	return true;
}

/* Header bytes below the BTH, and the ICRC, of a RoCEv2 frame. */
static uint64_t wire_bytes(const struct sim_path *path, const struct sim_packet *packet)
{
	unsigned int ip = sim_gid_is_ipv4(path->route.dest_gid) ? 20 : 40;

	return 14 + ip + 8 + sim_opcodes[packet->opcode].header_bytes + packet->payload_bytes +
	       sim_pad_bytes(packet->payload_bytes) + 4;
}

/* When a packet that is sent now comes out at the other end. */
static uint64_t arrival(struct sim_world *world, const struct sim_path *path,
			const struct sim_packet *packet)
{
	struct sim_link *link = path->link;
	uint64_t start_ns = world->clock.now_ns;

	if (link->bits_per_second) {
		uint64_t *busy_ns = &link->busy_until_ns[path->source == link->b];
		uint64_t bits = wire_bytes(path, packet) * 8;

		if (*busy_ns > start_ns)
			start_ns = *busy_ns;
		start_ns += bits * UINT64_C(1000000000) / link->bits_per_second;
		*busy_ns = start_ns;
	}
	return start_ns + link->delay_ns;
}

static bool deliver(struct sim_world *world, const struct sim_path *path,
		    const struct sim_packet *packet, uint64_t extra_ns)
{
	uint64_t arrival_ns = arrival(world, path, packet) + extra_ns;

	if (arrival_ns > world->clock.now_ns)
		return take_off(world, path, packet, arrival_ns);
	arrive(path->dest, packet, &path->route);
	return true;
}

static void show(struct sim_world *world, size_t frame_bytes)
{
	struct sim_fabric *fabric = &world->fabric;

	for (unsigned int i = 0; i < 2; i++)
		if (fabric->sinks[i].frame)
			fabric->sinks[i].frame(fabric->sinks[i].arg, world->clock.now_ns,
					       fabric->frame, frame_bytes);
}

/* One bit behind the first words of the BTH, where each is covered by the ICRC. */
static void spoil(struct sim_world *world, size_t frame_bytes, size_t bth)
{
	uint64_t bit = sim_world_random(world) % (8 * (frame_bytes - bth - 8));

	world->fabric.frame[bth + 8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* Serialises a packet that somebody looks at, and shows it. */
static void expose(struct sim_world *world, const struct sim_path *path,
		   const struct sim_packet *packet, bool lost, bool spoilt)
{
	struct sim_fabric *fabric = &world->fabric;
	struct sim_route route = path->route;
	size_t bth = 14 + (sim_gid_is_ipv4(route.dest_gid) ? 20 : 40) + 8;
	size_t frame_bytes;

	if (!route.udp_source_port)
		route.udp_source_port = sim_udp_source_port(packet->source_qpn, packet->dest_qpn);
	if (lost)
		memcpy(route.dest_mac, sim_trace_lost_mac, sizeof(route.dest_mac));
	frame_bytes = sim_packet_encode(packet, &route, world->host.memory.copy, fabric->frame);
	if (spoilt)
		spoil(world, frame_bytes, bth);
	show(world, frame_bytes);
}

/* What comes of the bytes of a spoilt frame: nothing, by its ICRC. */
static void arrive_spoilt(struct sim_port *port)
{
	port->device->counters.received_packets++;
	port->device->counters.dropped_packets++;
}

static void send_observed(struct sim_world *world, const struct sim_path *path,
			  const struct sim_packet *packet)
{
	const struct sim_fault_rule *rule = sim_fault_offer(world, path->source->device, packet);
	enum sim_fault_action action = rule ? rule->action : SIM_FAULT_NONE;
	bool lost = action == SIM_FAULT_DROP || !path->dest || !path->link;
	bool spoilt = action == SIM_FAULT_CORRUPT && !lost;

	if (spoilt || world->fabric.sinks[0].frame || world->fabric.sinks[1].frame)
		expose(world, path, packet, lost, spoilt);
	if (spoilt)
		arrive_spoilt(path->dest);
	else if (lost ||
		 !deliver(world, path, packet, action == SIM_FAULT_DELAY ? rule->delay_ns : 0))
		path->source->device->counters.lost_packets++;
	if (action == SIM_FAULT_DUPLICATE && !lost) {
		expose(world, path, packet, false, false);
		deliver(world, path, packet, 0);
	}
}

void sim_fabric_send(struct sim_world *world, const struct sim_path *path,
		     struct sim_packet *packet)
{
	path->source->device->counters.sent_packets++;
	if (world->fabric.observed)
		send_observed(world, path, packet);
	else if (!path->dest || !path->link || !deliver(world, path, packet, 0))
		path->source->device->counters.lost_packets++;
}

/* Whether nothing but the peer's admission stands between a packet and the peer. */
static struct sim_qp *find_peer(struct sim_qp *qp, const struct sim_packet *packet)
{
	const struct sim_path *path = &qp->path;
	struct sim_qp *peer;

	if (!path->dest || !path->link || path->link->delay_ns || path->link->bits_per_second)
		return NULL;
	peer = sim_table_find(&path->dest->device->qps, packet->dest_qpn);
	return admits(path->dest, peer, packet, &path->route, &sim_opcodes[packet->opcode]) ? peer
											    : NULL;
}

bool sim_fabric_reach(struct sim_qp *qp, uint64_t *epoch, const struct sim_packet *packet)
{
	struct sim_world *world = qp->world;
	struct sim_qp *peer;

	if (world->fabric.observed)
		return false;
	peer = find_peer(qp, packet);
	if (!peer)
		return false;
	if (qp->peer.qp != peer)
		qp->peer = (struct sim_peer){.qp = peer};
	*epoch = world->epoch;
	return true;
}
