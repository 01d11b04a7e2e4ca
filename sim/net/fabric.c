/* SPDX-License-Identifier: MIT */
#include "sim/net/fabric.h"

#include "sim/engine.h"
#include "sim/wire/bytes.h"
#include "sim/wire/icrc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MULTICAST_QPN 0xffffffu

/* A packet under way on a link with delay; it owns its bytes. */
struct sim_flight {
	struct sim_timer timer;
	struct sim_flight *next_made;
	struct sim_flight *next_spare;
	struct sim_engine *engine;
	struct sim_port *dest;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	uint8_t payload[SIM_PATH_MTU_MAX];
};

void sim_fabric_init(struct sim_engine *engine)
{
	engine->fabric.meshed = true;
}

void sim_fabric_destroy(struct sim_engine *engine)
{
	struct sim_fabric *fabric = &engine->fabric;

	while (fabric->flights) {
		struct sim_flight *flight = fabric->flights;

		fabric->flights = flight->next_made;
		free(flight);
	}
	while (fabric->members) {
		struct sim_member *member = fabric->members;

		fabric->members = member->next;
		free(member);
	}
	while (fabric->links) {
		struct sim_link *link = fabric->links;

		fabric->links = link->next;
		free(link);
	}
}

int sim_fabric_join(struct sim_engine *engine, struct sim_device *a, struct sim_device *b,
		    uint64_t delay_ns, uint64_t bits_per_second)
{
	struct sim_fabric *fabric = &engine->fabric;
	struct sim_link *link;

	if (a->ports[0].link_layer != b->ports[0].link_layer)
		return EINVAL;
	if (!fabric->meshed && sim_fabric_link(engine, &a->ports[0], &b->ports[0]))
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
	sim_engine_changed(engine);
	return 0;
}

void sim_fabric_observe(struct sim_engine *engine)
{
	struct sim_fabric *fabric = &engine->fabric;

	fabric->observed = fabric->faults.count || fabric->sinks[0].frame || fabric->sinks[1].frame;
	/* sim_hand_over() does not ask: nothing is handed over that was reached before. */
	sim_engine_changed(engine);
}

void sim_fabric_sink(struct sim_engine *engine, unsigned int which,
		     const struct sim_trace_sink *sink)
{
	engine->fabric.sinks[which] = sink ? *sink : (struct sim_trace_sink){0};
	sim_fabric_observe(engine);
}

struct sim_link *sim_fabric_link(struct sim_engine *engine, struct sim_port *a, struct sim_port *b)
{
	struct sim_fabric *fabric = &engine->fabric;

	if (a->link_layer != b->link_layer)
		return NULL;
	if (fabric->meshed || a->device == b->device)
		return &fabric->direct;
	for (struct sim_link *link = fabric->links; link; link = link->next)
		if ((link->a == a && link->b == b) || (link->a == b && link->b == a))
			return link;
	return NULL;
}

struct sim_port *sim_fabric_find(struct sim_engine *engine, const union ibv_gid *gid,
				 enum ibv_gid_type type)
{
	for (struct sim_device *device = engine->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->port_count; i++)
			if (!sim_port_is_infiniband(&device->ports[i]) &&
			    sim_port_find_gid(&device->ports[i], gid, type) >= 0)
				return &device->ports[i];
	return NULL;
}

struct sim_port *sim_fabric_find_lid(struct sim_engine *engine, uint16_t lid)
{
	for (struct sim_device *device = engine->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->port_count; i++)
			if (sim_port_is_infiniband(&device->ports[i]) &&
			    device->ports[i].lid == lid)
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

/* The type of the source GID as it is now. */
static bool is_roce_v1(const struct sim_path *path)
{
	return path->source->gid_types[path->sgid_index] == IBV_GID_TYPE_ROCE_V1;
}

/*
 * Whether a connected QP's packet is from the other end of its connection. On InfiniBand as
 * qib_ruc_check_hdr in Linux drivers/infiniband/hw/qib/qib_ruc.c: both sides have a GRH or none,
 * its GIDs are the connection's, and the source LID is the peer's. On Ethernet both sides' GIDs
 * are of one type: what comes to the connection's GID comes to a GID of its type.
 */
static bool from_peer(const struct sim_qp *qp, const struct sim_packet *packet,
		      const struct sim_route *route)
{
	const struct sim_route *own = &qp->path.route;

	if (packet->source_qpn != qp->dest_qpn && !qp->device->quirks.foreign_requests_accepted)
		return false;
	if (route->infiniband && (route->slid != own->dlid || route->has_grh != own->has_grh))
		return false;
	if (route->infiniband && !route->has_grh)
		return true;
	if (route->roce_v1 != is_roce_v1(&qp->path))
		return false;
	return memcmp(route->source_gid, own->dest_gid, sizeof(route->source_gid)) == 0;
}

/* A switch looks at LIDs only: a GRH may be for another than the port that the packet came to. */
static bool misrouted(const struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (!route->infiniband || !route->has_grh)
		return false;
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return sim_port_find_gid(port, &dgid, IBV_GID_TYPE_IB) < 0;
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
	/* An XRC connection has its requester on one side and its responder on the other. */
	if (qp->transport == SIM_TRANSPORT_XRC &&
	    !(info->flags & SIM_OP_REQUEST) != (qp->type == IBV_QPT_XRC_SEND))
		return false;
	if (qp->type == IBV_QPT_UD)
		return true;
	return from_peer(qp, packet, route);
}

/* A request to a QP that is in ERR: Linux 6.12 drivers/infiniband/sw/rxe/rxe_recv.c, check_type_state,
 * lets it pass (a quirk). QP_LAST_WQE_REACHED, which it raises again for each, is not. */
static void knock(struct sim_qp *qp, const struct sim_packet *packet, const struct sim_route *route,
		  const struct sim_opcode_info *info)
{
	if (qp && qp->state == IBV_QPS_ERR && qp->device->quirks.errors_repeat &&
	    info->flags & SIM_OP_REQUEST && (packet->opcode & 0xe0) == qp->transport &&
	    (qp->type == IBV_QPT_UD ? packet->qkey == qp->qkey : from_peer(qp, packet, route)))
		sim_qp_fail(qp);
}

static bool in_group(const struct sim_member *member, const struct sim_port *port,
		     const struct sim_route *route)
{
	return member->qp->device == port->device &&
	       member->lid == (route->infiniband ? route->dlid : 0) &&
	       memcmp(&member->gid, route->dest_gid, sizeof(member->gid)) == 0;
}

/* QPNs are each device's own. */
static bool sent_by(const struct sim_qp *qp, const struct sim_port *port,
		    const struct sim_packet *packet, const struct sim_route *route)
{
	union ibv_gid source;

	if (packet->source_qpn != qp->number)
		return false;
	if (route->infiniband)
		return route->slid == port->lid;
	memcpy(source.raw, route->source_gid, sizeof(source.raw));
	return sim_port_find_gid(port, &source,
				 route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) >= 0;
}

static void arrive_multicast(struct sim_port *port, const struct sim_packet *packet,
			     const struct sim_route *route, const struct sim_opcode_info *info)
{
	struct sim_member *next;

	for (struct sim_member *member = port->device->engine->fabric.members; member;
	     member = next) {
		next = member->next;
		if (member->qp->block_self_multicast && sent_by(member->qp, port, packet, route))
			continue;
		if (in_group(member, port, route) && admits(port, member->qp, packet, route, info))
			sim_datagram_receive(member->qp, packet, route);
	}
}

/* Nobody here takes it. */
static void refuse(struct sim_device *device)
{
	device->counters.dropped_packets++;
	device->counters.refused_packets++;
}

/* A packet whose ICRC is right has come to a port. */
static void arrive(struct sim_port *port, const struct sim_packet *packet,
		   const struct sim_route *route)
{
	struct sim_device *device = port->device;
	const struct sim_opcode_info *info = &sim_opcodes[packet->opcode];
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);

	device->counters.received_packets++;
	if (packet->dest_qpn == MULTICAST_QPN) {
		arrive_multicast(port, packet, route, info);
		return;
	}
	if (misrouted(port, route) || !admits(port, qp, packet, route, info)) {
		knock(qp, packet, route, info);
		refuse(device);
	} else if (qp->type == IBV_QPT_UD) {
		sim_datagram_receive(qp, packet, route);
	} else if (info->flags & SIM_OP_REQUEST) {
		sim_responder_receive(qp, packet);
	} else {
		sim_completer_receive(qp, packet);
	}
}

static void land(struct sim_timer *timer)
{
	struct sim_flight *flight = (struct sim_flight *)timer;
	struct sim_fabric *fabric = &flight->engine->fabric;

	arrive(flight->dest, &flight->packet, &flight->route);
	flight->next_spare = fabric->spare;
	fabric->spare = flight;
}

/* Buffers are made as the number under way reaches a new height, and kept. */
static struct sim_flight *take_flight(struct sim_engine *engine)
{
	struct sim_fabric *fabric = &engine->fabric;
	struct sim_flight *flight = fabric->spare;

	if (flight) {
		fabric->spare = flight->next_spare;
		return flight;
	}
	flight = malloc(sizeof(*flight));
	if (!flight || sim_clock_reserve(&engine->clock)) {
		free(flight);
		return NULL;
	}
	sim_timer_init(&flight->timer, land);
	flight->engine = engine;
	flight->next_made = fabric->flights;
	fabric->flights = flight;
	return flight;
}

/* False where there is no memory for it: the packet is lost, as in a full switch. */
static bool take_off(struct sim_engine *engine, const struct sim_path *path,
		     const struct sim_packet *packet, uint64_t arrival_ns)
{
	struct sim_flight *flight = take_flight(engine);

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
	sim_timer_arm(&engine->clock, &flight->timer, arrival_ns);
	return true;
}

/* When a packet that is sent now comes out at the other end. */
static uint64_t arrival(struct sim_engine *engine, const struct sim_path *path,
			const struct sim_packet *packet)
{
	struct sim_link *link = path->link;
	uint64_t start_ns = engine->clock.now_ns;

	if (link->bits_per_second) {
		uint64_t *busy_ns = &link->busy_until_ns[path->source == link->b];
		uint64_t bits = sim_frame_bytes(packet, &path->route) * 8;

		if (*busy_ns > start_ns)
			start_ns = *busy_ns;
		start_ns += bits * UINT64_C(1000000000) / link->bits_per_second;
		*busy_ns = start_ns;
	}
	return start_ns + link->delay_ns;
}

static bool deliver(struct sim_engine *engine, const struct sim_path *path,
		    const struct sim_packet *packet, uint64_t extra_ns)
{
	uint64_t arrival_ns = arrival(engine, path, packet) + extra_ns;

	if (arrival_ns > engine->clock.now_ns)
		return take_off(engine, path, packet, arrival_ns);
	arrive(path->dest, packet, &path->route);
	return true;
}

static void show(struct sim_engine *engine, size_t frame_bytes, unsigned int flags)
{
	struct sim_fabric *fabric = &engine->fabric;

	for (unsigned int i = 0; i < 2; i++)
		if (fabric->sinks[i].frame)
			fabric->sinks[i].frame(fabric->sinks[i].arg, engine->clock.now_ns,
					       fabric->frame, frame_bytes, flags);
}

/* One bit behind the first words of the BTH, where each is covered by the ICRC. */
static void spoil(struct sim_engine *engine, size_t frame_bytes, size_t bth)
{
	uint64_t bit = sim_engine_random(engine) % (8 * (frame_bytes - bth - 8));

	engine->fabric.frame[bth + 8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

/* As in the memory of a switch, which sends the packet on with a VCRC that is right. */
static void spoil_infiniband(struct sim_engine *engine, size_t frame_bytes, size_t bth)
{
	uint8_t *frame = engine->fabric.frame;
	size_t length_bytes = frame_bytes - 2;

	spoil(engine, length_bytes, bth);
	sim_store_le16(frame + length_bytes, sim_vcrc(frame, length_bytes));
}

/* Serialises a packet that somebody looks at, and shows it. */
static void expose(struct sim_engine *engine, const struct sim_path *path,
		   const struct sim_packet *packet, bool lost, bool spoilt)
{
	struct sim_fabric *fabric = &engine->fabric;
	struct sim_route route = path->route;
	unsigned int flags = lost ? SIM_FRAME_LOST : 0;
	size_t bth = sim_route_bytes(&route);
	size_t frame_bytes;

	if (!route.udp_source_port)
		route.udp_source_port = sim_udp_source_port(packet->source_qpn, packet->dest_qpn);
	if (lost)
		memcpy(route.dest_mac, sim_trace_lost_mac, sizeof(route.dest_mac));
	frame_bytes = sim_packet_encode(packet, &route, engine->host.memory.copy, fabric->frame);
	if (route.infiniband)
		flags |= SIM_FRAME_INFINIBAND;
	if (spoilt && route.infiniband)
		spoil_infiniband(engine, frame_bytes, bth);
	else if (spoilt)
		spoil(engine, frame_bytes, bth);
	show(engine, frame_bytes, flags);
}

/* What comes of the bytes of a spoilt frame: nothing, by its ICRC. */
static void arrive_spoilt(struct sim_port *port)
{
	port->device->counters.received_packets++;
	refuse(port->device);
}

/* Addresses may have moved since the path was found. */
static void refresh(struct sim_engine *engine, struct sim_path *path)
{
	const union ibv_gid *sgid = &path->source->gids[path->sgid_index];
	union ibv_gid dgid;

	if (path->address_epoch == engine->fabric.address_epoch)
		return;
	path->address_epoch = engine->fabric.address_epoch;
	if (!path->route.infiniband || path->route.has_grh)
		memcpy(path->route.source_gid, sgid->raw, sizeof(path->route.source_gid));
	memcpy(dgid.raw, path->route.dest_gid, sizeof(dgid));
	if (path->route.infiniband) {
		path->route.slid = path->source->lid;
		path->dest = sim_fabric_find_lid(engine, path->route.dlid);
	} else {
		path->route.roce_v1 = is_roce_v1(path);
		path->dest =
			sim_fabric_find(engine, &dgid, path->source->gid_types[path->sgid_index]);
		if (path->dest)
			memcpy(path->route.dest_mac, path->dest->mac, sizeof(path->dest->mac));
	}
	path->link = path->dest ? sim_fabric_link(engine, path->source, path->dest) : NULL;
}

static bool alive(const struct sim_port *port)
{
	return port && port->state == IBV_PORT_ACTIVE && !port->device->dead;
}

static bool passable(const struct sim_path *path)
{
	return alive(path->source) && alive(path->dest) && path->link;
}

/* Nothing of RoCE v1 comes to a port that has no GID of that type; likewise v2. */
static bool hears(const struct sim_port *port, const struct sim_route *route)
{
	const enum ibv_gid_type type = route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	static const union ibv_gid zero;

	for (unsigned int i = 0; i < port->gid_count; i++)
		if (port->gid_types[i] == type && memcmp(&port->gids[i], &zero, sizeof(zero)) != 0)
			return true;
	return route->infiniband;
}

static bool has_members(const struct sim_port *port, const struct sim_path *path)
{
	const struct sim_member *member = port->device->engine->fabric.members;

	if (!hears(port, &path->route))
		return false;
	while (member && !in_group(member, port, &path->route))
		member = member->next;
	return member;
}

/* One copy to each port that has members of the group; the sender's own port too. */
static bool deliver_multicast(struct sim_engine *engine, const struct sim_path *path,
			      const struct sim_packet *packet, uint64_t extra_ns)
{
	struct sim_path branch = *path;
	bool sent = false;

	for (struct sim_device *device = engine->devices; device; device = device->next) {
		if (device == path->source->device && device->quirks.multicast_leaves_device)
			continue;
		for (unsigned int i = 0; i < device->port_count; i++) {
			branch.dest = &device->ports[i];
			branch.link = sim_fabric_link(engine, path->source, branch.dest);
			if (passable(&branch) && has_members(branch.dest, path))
				sent |= deliver(engine, &branch, packet, extra_ns);
		}
	}
	return sent;
}

static bool forward(struct sim_engine *engine, const struct sim_path *path,
		    const struct sim_packet *packet, uint64_t extra_ns)
{
	if (path->multicast)
		return alive(path->source) && deliver_multicast(engine, path, packet, extra_ns);
	return passable(path) && deliver(engine, path, packet, extra_ns);
}

/* A packet that was not delivered: what did not get out was not even sent. */
static void lose(const struct sim_path *path)
{
	struct sim_counters *counters = &path->source->device->counters;

	counters->lost_packets++;
	if (!alive(path->source))
		counters->unsent_packets++;
}

static void send_observed(struct sim_engine *engine, const struct sim_path *path,
			  const struct sim_packet *packet)
{
	const struct sim_fault_rule *rule = sim_fault_offer(engine, path->source->device, packet);
	enum sim_fault_action action = rule ? rule->action : SIM_FAULT_NONE;
	bool lost = action == SIM_FAULT_DROP || !(path->multicast || passable(path));
	bool spoilt = action == SIM_FAULT_CORRUPT && !lost;
	uint64_t extra_ns = action == SIM_FAULT_DELAY ? rule->delay_ns : 0;

	if (spoilt || engine->fabric.sinks[0].frame || engine->fabric.sinks[1].frame)
		expose(engine, path, packet, lost, spoilt);
	if (spoilt) {
		if (path->dest)
			arrive_spoilt(path->dest);
	} else if (lost || !forward(engine, path, packet, extra_ns)) {
		lose(path);
	}
	if (action == SIM_FAULT_DUPLICATE && !lost) {
		expose(engine, path, packet, false, false);
		forward(engine, path, packet, 0);
	}
}

void sim_fabric_send(struct sim_engine *engine, struct sim_path *path, struct sim_packet *packet)
{
	path->source->device->counters.sent_packets++;
	refresh(engine, path);
	if (engine->fabric.observed)
		send_observed(engine, path, packet);
	else if (!forward(engine, path, packet, 0))
		lose(path);
}

/* Whether nothing but the peer's admission stands between a packet and the peer. */
static struct sim_qp *find_peer(struct sim_qp *qp, const struct sim_packet *packet)
{
	struct sim_path *path = &qp->path;
	struct sim_qp *peer;

	refresh(qp->engine, path);
	if (!passable(path) || path->link->delay_ns || path->link->bits_per_second)
		return NULL;
	peer = sim_table_find(&path->dest->device->qps, packet->dest_qpn);
	if (misrouted(path->dest, &path->route) ||
	    !admits(path->dest, peer, packet, &path->route, &sim_opcodes[packet->opcode]))
		return NULL;
	return peer;
}

bool sim_fabric_reach(struct sim_qp *qp, uint64_t *epoch, const struct sim_packet *packet)
{
	struct sim_engine *engine = qp->engine;
	struct sim_qp *peer;

	if (engine->fabric.observed)
		return false;
	peer = find_peer(qp, packet);
	if (!peer)
		return false;
	if (qp->peer.qp != peer)
		qp->peer = (struct sim_peer){.qp = peer};
	*epoch = engine->epoch;
	return true;
}
