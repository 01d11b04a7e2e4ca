/* SPDX-License-Identifier: MIT */
#include "sim/net/delivery.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/rules.h"
#include "sim/qp/qp.h"
#include "sim/wire/psn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/packet.h>

#define MULTICAST_QPN 0xffffffu

/* A packet on a link with delay: its bytes, and where they go to. */
struct sim_flight {
	struct sim_timer timer;
	struct sim_flight *next_made;
	struct sim_flight *next; /* spare, or held */
	struct sim_net *net;
	struct sim_path path;
	uint32_t dest_qpn;
	size_t frame_bytes;
	uint8_t frame[SIM_FRAME_BYTES_MAX];
};

/* True if an InfiniBand packet came by its LID to a port that does not have the GID of its GRH. A group
 * has a LID and a GID that no port has. */
static bool misrouted(const struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (!route->infiniband || !route->has_grh || sim_lid_is_multicast(route->dlid))
		return false;
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return sim_port_find_gid(port, &dgid, IBV_GID_TYPE_IB) < 0;
}

/* True if a frame came to a port that has neither its destination GID nor, on InfiniBand, its
 * destination LID: the address was taken from the port meanwhile, or the frame was changed. */
static bool is_misaddressed(struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (route->infiniband)
		return !sim_lid_is_multicast(route->dlid) &&
		       (route->dlid != port->lid || misrouted(port, route));
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return !sim_gid_is_multicast(dgid.raw) &&
	       !sim_port_has_gid(port, &dgid,
				 route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2);
}

static bool is_to_group(const struct sim_route *route)
{
	return route->infiniband ? sim_lid_is_multicast(route->dlid)
				 : sim_gid_is_multicast(route->dest_gid);
}

static void arrive_at_group(struct sim_port *port, const struct sim_packet *packet,
			    const struct sim_route *route)
{
	struct sim_member *next;

	for (struct sim_member *member = port->device->engine->net->members; member;
	     member = next) {
		next = member->next;
		if (sim_multicast_matches(member, port, route) &&
		    sim_qp_objects(member->qp, port, packet, route) == SIM_DISCARD_NONE)
			sim_datagram_receive(member->qp, packet, route);
	}
}

/* Counts a packet that no QP takes. qp is NULL if no QP has its QPN. */
static void refuse(const struct sim_port *port, const struct sim_qp *qp,
		   const struct sim_packet *packet, const struct sim_route *route,
		   enum sim_discard cause)
{
	sim_qp_discard(qp, port, packet, route, cause);
	port->device->counters.refused_packets++;
}

/* How a frame is dropped that cannot be decoded. */
static const struct {
	enum sim_discard cause;
	enum vb_reason reason;
} decode_errors[] = {
	[SIM_DECODE_TRUNCATED] = {SIM_DISCARD_TRUNCATED, VB_WHY_DROP_TRUNCATED},
	[SIM_DECODE_NOT_ROCE] = {SIM_DISCARD_NETWORK_HEADER, VB_WHY_DROP_NETWORK_HEADER},
	[SIM_DECODE_NOT_INFINIBAND] = {SIM_DISCARD_NETWORK_HEADER, VB_WHY_DROP_NETWORK_HEADER},
	[SIM_DECODE_BAD_VERSION] = {SIM_DISCARD_VERSION, VB_WHY_DROP_VERSION},
	[SIM_DECODE_BAD_OPCODE] = {SIM_DISCARD_OPCODE, VB_WHY_DROP_OPCODE},
	[SIM_DECODE_BAD_PAD] = {SIM_DISCARD_PAD, VB_WHY_DROP_PAD},
	[SIM_DECODE_BAD_ICRC] = {SIM_DISCARD_ICRC, VB_WHY_DROP_ICRC},
	[SIM_DECODE_BAD_VCRC] = {SIM_DISCARD_VCRC, VB_WHY_DROP_VCRC},
};

static void note_undecoded(const struct sim_port *port, size_t frame_bytes, enum vb_reason reason,
			   const struct vb_packet *shown)
{
	struct vb_why why = {.reason = reason, .text = shown->opcode_name};

	if (reason == VB_WHY_DROP_OPCODE)
		why.values[0] = shown->opcode;
	else if (reason == VB_WHY_DROP_ICRC || reason == VB_WHY_DROP_VCRC)
		why.values[0] = shown->psn;
	else
		why.values[0] = frame_bytes;
	sim_note_drop(port->device, port, NULL, shown, &why);
}

/* Counts bytes that cannot be decoded. Returns true if the drop must be noted. */
static bool count_undecoded(const struct sim_port *port, enum sim_decode error)
{
	struct sim_device *device = port->device;

	sim_discard(&device->counters, decode_errors[error].cause);
	device->counters.refused_packets++;
	return sim_watched(device->engine);
}

static void refuse_frame(const struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			 enum sim_decode error)
{
	struct vb_packet shown;

	if (!count_undecoded(port, error))
		return;
	sim_frame_show(frame, frame_bytes, sim_port_is_infiniband(port), &shown);
	note_undecoded(port, frame_bytes, decode_errors[error].reason, &shown);
}

/* Gives a packet that has come to a port to its QP, or counts why no QP takes the packet. Returns the QP that has
 * the packet's QPN and has taken the packet, or NULL. */
static struct sim_qp *admit(struct sim_port *port, const struct sim_packet *packet,
			    const struct sim_route *route)
{
	struct sim_device *device = port->device;
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);
	enum sim_discard cause;

	if (packet->dest_qpn == MULTICAST_QPN && is_to_group(route)) {
		arrive_at_group(port, packet, route);
		return NULL;
	}
	if (packet->dest_qpn == SIM_GSI_QPN && device->engine->net->gsi.receive) {
		sim_gsi_arrive(port, packet, route);
		return NULL;
	}
	cause = sim_qp_take_packet(qp, port, packet, route);
	if (cause == SIM_DISCARD_NONE)
		return qp;
	refuse(port, qp, packet, route, cause);
	return NULL;
}

/* A packet that was not encoded arrives at a port. */
static void arrive(struct sim_port *port, const struct sim_packet *packet,
		   const struct sim_route *route)
{
	port->device->counters.received_packets++;
	if (misrouted(port, route))
		refuse(port, NULL, packet, route, SIM_DISCARD_ADDRESS);
	else
		admit(port, packet, route);
}

static enum sim_decode decode(const struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			      struct sim_packet *packet, struct sim_span *span,
			      struct sim_route *route)
{
	return (sim_port_is_infiniband(port) ? sim_packet_decode_infiniband : sim_packet_decode)(
		frame, frame_bytes, packet, span, route);
}

void sim_delivery_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			 bool checked)
{
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	enum sim_decode result =
		checked ? sim_packet_read(frame, frame_bytes, sim_port_is_infiniband(port), &packet,
					  &span, &route)
			: decode(port, frame, frame_bytes, &packet, &span, &route);

	port->device->counters.received_packets++;
	if (result != SIM_DECODE_OK)
		refuse_frame(port, frame, frame_bytes, result);
	else if (is_misaddressed(port, &route))
		refuse(port, NULL, &packet, &route, SIM_DISCARD_ADDRESS);
	else
		admit(port, &packet, &route);
}

static void refuse_bare(const struct sim_port *port, const struct sim_packet *packet,
			const struct sim_route *route, size_t length_bytes, enum sim_decode error)
{
	struct vb_packet shown;

	if (!count_undecoded(port, error))
		return;
	sim_packet_show(packet, route, &shown);
	note_undecoded(port, length_bytes, decode_errors[error].reason, &shown);
}

/* Returns where an inlet keeps the last packet of a packet's kind. */
static struct sim_admitted *admitted_of(struct sim_inlet *inlet, const struct sim_packet *packet)
{
	return &inlet->admitted[!!(sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST)];
}

/* Returns true if nothing that the checks look at has changed since the last packet of an inlet. */
static bool is_admitted(const struct sim_admitted *last, const struct sim_port *port,
			const struct sim_packet *packet)
{
	return last->epoch == port->device->engine->epoch && last->port == port &&
	       last->dest_qpn == packet->dest_qpn && last->pkey == packet->pkey &&
	       last->transport == (packet->opcode & SIM_TRANSPORT_MASK);
}

/* Gives the packet of an inlet to its QP. A connected QP takes the next packets like this one without checks of
 * its address: until the engine changes, and the packet itself may change the engine. */
__attribute__((noinline)) static void admit_by_inlet(struct sim_port *port, struct sim_inlet *inlet,
						     const struct sim_packet *packet)
{
	const uint64_t epoch = port->device->engine->epoch;
	const struct sim_route *route = &inlet->route;
	struct sim_qp *qp;

	if (route->infiniband != sim_port_is_infiniband(port) || is_misaddressed(port, route)) {
		refuse(port, NULL, packet, route, SIM_DISCARD_ADDRESS);
		return;
	}
	qp = admit(port, packet, route);
	if (qp && sim_qp_is_connected(qp))
		*admitted_of(inlet, packet) = (struct sim_admitted){
			.epoch = epoch,
			.port = port,
			.qp = qp,
			.dest_qpn = packet->dest_qpn,
			.pkey = packet->pkey,
			.transport = packet->opcode & SIM_TRANSPORT_MASK,
		};
}

/* Gives the packet of an inlet to its QP, or counts why no QP takes the packet. */
static inline void take(struct sim_port *port, struct sim_inlet *inlet,
			const struct sim_packet *packet)
{
	const struct sim_admitted *last = admitted_of(inlet, packet);

	port->device->counters.received_packets++;
	if (is_admitted(last, port, packet))
		sim_qp_give_packet(last->qp, packet);
	else
		admit_by_inlet(port, inlet, packet);
}

void sim_delivery_arrive_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			      size_t length_bytes)
{
	struct sim_packet packet;
	struct sim_span span;
	const enum sim_decode result =
		sim_packet_read_bare(bytes, length_bytes, &inlet->route, &packet, &span);

	if (result == SIM_DECODE_OK) {
		take(port, inlet, &packet);
		return;
	}
	port->device->counters.received_packets++;
	refuse_bare(port, &packet, &inlet->route, length_bytes, result);
}

/* --- trains --- */

static bool is_train(const struct sim_packet *train, unsigned int count)
{
	const uint32_t flags = sim_opcodes[train->opcode].flags;

	return flags & SIM_OP_MIDDLE && count > 1 && train->payload_bytes &&
	       train->payload_bytes % count == 0 &&
	       train->payload_bytes / count <= SIM_PATH_MTU_MAX;
}

/* Takes the packets of a train one by one. */
__attribute__((noinline)) static void take_each(struct sim_port *port, struct sim_inlet *inlet,
						const struct sim_packet *train, unsigned int count)
{
	const uint32_t bytes = train->payload_bytes / count;
	const uint8_t *payload = train->spans->base;

	for (unsigned int i = 0; i < count; i++) {
		const struct sim_span span = {payload + (size_t)i * bytes, bytes};
		struct sim_packet packet = *train;

		packet.psn = sim_psn_add(train->psn, i);
		packet.payload_bytes = bytes;
		packet.spans = &span;
		if (i + 1 < count)
			packet.flags &= (uint8_t)~SIM_PACKET_ACK_REQUEST;
		take(port, inlet, &packet);
	}
}

/* Returns true if the QP of the inlet has taken the whole train. */
static bool take_whole(struct sim_port *port, struct sim_inlet *inlet,
		       const struct sim_packet *train, unsigned int count)
{
	const struct sim_admitted *last = admitted_of(inlet, train);

	if (!is_admitted(last, port, train) || !sim_qp_take_train(last->qp, train, count))
		return false;
	port->device->counters.received_packets += count;
	return true;
}

void sim_delivery_arrive_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			       size_t length_bytes, unsigned int count)
{
	struct sim_packet train;
	struct sim_span span;
	enum sim_decode result =
		sim_packet_read_bare(bytes, length_bytes, &inlet->route, &train, &span);

	if (result == SIM_DECODE_OK && !is_train(&train, count))
		result = SIM_DECODE_TRUNCATED;
	if (result != SIM_DECODE_OK) {
		port->device->counters.received_packets++;
		refuse_bare(port, &train, &inlet->route, length_bytes, result);
	} else if (!take_whole(port, inlet, &train, count)) {
		take_each(port, inlet, &train, count);
	}
}

int sim_net_inject(struct sim_port *port, const void *frame, size_t frame_bytes)
{
	struct sim_engine *engine = port->device->engine;
	uint8_t copy[SIM_FRAME_BYTES_MAX];

	if (frame_bytes > sizeof(copy))
		return EINVAL;
	if (engine->host.memory.copy(copy, frame, frame_bytes))
		return EFAULT;
	if (!sim_port_is_up(port))
		return ENETDOWN;
	sim_trace_show(engine->net, copy, frame_bytes,
		       sim_port_is_infiniband(port) ? SIM_FRAME_INFINIBAND : 0);
	if (sim_watched(engine))
		sim_notes_injected(port, copy, frame_bytes);
	sim_delivery_arrive(port, copy, frame_bytes, false);
	return 0;
}

/* True if the port has a GID of the packet's RoCE version. */
static bool hears(const struct sim_port *port, const struct sim_route *route)
{
	return route->infiniband || sim_port_has_type(port, route->roce_v1 ? IBV_GID_TYPE_ROCE_V1
									   : IBV_GID_TYPE_ROCE_V2);
}

/* True if QPs of this engine are in the group that the path leads to. */
static bool has_members(const struct sim_port *port, const struct sim_path *path)
{
	const struct sim_member *member = port->device->engine->net->members;

	if (!hears(port, &path->route))
		return false;
	while (member && !sim_multicast_matches(member, port, &path->route))
		member = member->next;
	return member;
}

/* True if QPs of other engines may be in the group. */
static bool has_other_members(const struct sim_net *net, const struct sim_port *port,
			      const struct sim_path *path)
{
	return net->way && hears(port, &path->route) && net->way->has_members(net->way->arg, port);
}

/* --- the end of a path --- */

/* What has come to the end of a path. */
struct load {
	const struct sim_packet *packet; /* used if the packet is not encoded */
	const uint8_t *frame;
	size_t frame_bytes; /* 0: not encoded */
	uint32_t dest_qpn;
};

/* Gives the packet to the QPs of this engine. */
static void enter(const struct sim_path *path, const struct load *load)
{
	if (load->frame_bytes)
		sim_delivery_arrive(path->dest, load->frame, load->frame_bytes, false);
	else
		arrive(path->dest, load->packet, &path->route);
}

/* Lets the packet leave the engine. process: the receiver of a message to QP 1, else 0. Returns false if the packet
 * is lost there. */
static bool depart(const struct sim_net *net, const struct sim_path *path, const struct load *load,
		   uint64_t process)
{
	struct sim_departure departure = {
		.source = path->source,
		.dest = path->dest,
		.route = &path->route,
		.dest_qpn = path->multicast ? MULTICAST_QPN : load->dest_qpn,
		.qpn = path->qpn,
		.process = process,
		.frame = load->frame,
		.frame_bytes = load->frame_bytes,
		.packet = load->frame_bytes ? NULL : load->packet,
		.copy = net->engine->host.memory.copy,
	};
	struct sim_route route;

	if (departure.packet && !path->route.udp_source_port) {
		route = sim_net_route(path, load->packet);
		departure.route = &route;
	}
	return net->way->send(net->way->arg, &departure);
}

static bool is_for_gsi(const struct sim_net *net, uint32_t dest_qpn)
{
	return dest_qpn == SIM_GSI_QPN && net->gsi.receive;
}

/* True if the engine's own QPs cannot take the packet: it goes to one QP, which they do not know. */
static bool leaves(const struct sim_net *net, const struct sim_path *path, uint32_t dest_qpn)
{
	if (!net->way || path->multicast || dest_qpn == MULTICAST_QPN)
		return false;
	if (path->beyond)
		return true;
	return !is_for_gsi(net, dest_qpn) && !sim_table_find(&path->dest->device->qps, dest_qpn);
}

/* A packet to a group has come to a port, or (without one) goes beyond the engine. */
static bool end_at_group(const struct sim_net *net, const struct sim_path *path,
			 const struct load *load)
{
	bool taken = false;

	if (!path->dest)
		return depart(net, path, load, 0);
	if (has_members(path->dest, path)) {
		enter(path, load);
		taken = true;
	}
	if (has_other_members(net, path->dest, path))
		taken |= depart(net, path, load, 0);
	return taken;
}

/* Reads the packet that has come to the end of a path. False if its frame is wrong. */
static bool read_load(const struct sim_path *path, const struct load *load,
		      struct sim_packet *packet, struct sim_span *span)
{
	struct sim_route route;

	if (!load->frame_bytes) {
		*packet = *load->packet;
		return true;
	}
	return decode(path->source, load->frame, load->frame_bytes, packet, span, &route) ==
	       SIM_DECODE_OK;
}

/* A packet to QP 1 has come to a port. The engine takes a message that no other process takes, and may refuse
 * the message by an answer. */
static bool end_at_gsi(const struct sim_net *net, const struct sim_path *path,
		       const struct load *load)
{
	uint64_t process = 0;
	struct sim_packet packet;
	struct sim_span span;

	if (net->way && read_load(path, load, &packet, &span))
		process = sim_gsi_server(net, path->dest, &packet);
	if (process)
		return depart(net, path, load, process);
	enter(path, load);
	return true;
}

/* A packet has come to the end of its path. False if it is lost. A QPN that nobody has is refused by the
 * port, as in an engine without a way out. */
static bool end(const struct sim_net *net, const struct sim_path *path, const struct load *load)
{
	if (path->multicast && net->way)
		return end_at_group(net, path, load);
	if (leaves(net, path, load->dest_qpn)) {
		if (depart(net, path, load, 0))
			return true;
		if (path->beyond ||
		    sim_net_presence(net->engine, path, load->dest_qpn) != SIM_PRESENCE_NOBODY)
			return false;
	}
	if (!path->dest)
		return false;
	if (is_for_gsi(net, load->dest_qpn))
		return end_at_gsi(net, path, load);
	enter(path, load);
	return true;
}

/* --- links with delay --- */

void sim_delivery_init(struct sim_delivery *delivery)
{
	delivery->held_end = &delivery->held;
}

static void end_flight(struct sim_flight *flight)
{
	struct sim_delivery *delivery = &flight->net->delivery;
	const struct load load = {
		.frame = flight->frame,
		.frame_bytes = flight->frame_bytes,
		.dest_qpn = flight->dest_qpn,
	};

	if (!end(flight->net, &flight->path, &load))
		flight->path.source->device->counters.lost_packets++;
	flight->next = delivery->spare;
	delivery->spare = flight;
}

/* Returns true if the packet leaves the engine. Sets *process to the receiver of a message to QP 1, else to 0. */
static bool goes_out(const struct sim_flight *flight, uint64_t *process)
{
	const struct sim_net *net = flight->net;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;

	*process = 0;
	if (leaves(net, &flight->path, flight->dest_qpn))
		return true;
	if (net->way && flight->path.dest && is_for_gsi(net, flight->dest_qpn) &&
	    decode(flight->path.source, flight->frame, flight->frame_bytes, &packet, &span,
		   &route) == SIM_DECODE_OK)
		*process = sim_gsi_server(net, flight->path.dest, &packet);
	return *process;
}

/* Returns true if a packet can end its flight: it stays in the engine, or no packet is `held` before it and the way
 * out has room. Packets leave in the order in which they have landed. */
static bool may_end(const struct sim_flight *flight, bool held)
{
	uint64_t process;

	return !goes_out(flight, &process) ||
	       (!held &&
		sim_way_out_has_room(flight->net->way, &flight->path, flight->dest_qpn, process));
}

static void land(struct sim_timer *timer)
{
	struct sim_flight *flight = (struct sim_flight *)timer;
	struct sim_delivery *delivery = &flight->net->delivery;

	if (may_end(flight, delivery->held)) {
		end_flight(flight);
		return;
	}
	flight->next = NULL;
	*delivery->held_end = flight;
	delivery->held_end = &flight->next;
}

void sim_delivery_release(struct sim_net *net)
{
	struct sim_delivery *delivery = &net->delivery;

	while (delivery->held && may_end(delivery->held, false)) {
		struct sim_flight *flight = delivery->held;

		delivery->held = flight->next;
		if (!delivery->held)
			delivery->held_end = &delivery->held;
		end_flight(flight);
	}
}

/* Takes a spare buffer or makes one; sim_delivery_destroy() frees the buffers. NULL if memory is
 * out. */
static struct sim_flight *take_flight(struct sim_net *net)
{
	struct sim_delivery *delivery = &net->delivery;
	struct sim_flight *flight = delivery->spare;

	if (flight) {
		delivery->spare = flight->next;
		return flight;
	}
	flight = malloc(sizeof(*flight));
	if (!flight || sim_clock_reserve(&net->engine->clock)) {
		free(flight);
		return NULL;
	}
	sim_timer_init(&flight->timer, land);
	flight->net = net;
	flight->next_made = delivery->flights;
	delivery->flights = flight;
	return flight;
}

/* Keeps the bytes of a packet until its arrival. False if memory is out: the packet is lost, as in a
 * full switch. */
static bool take_off(struct sim_net *net, const struct sim_path *path, const struct load *load,
		     uint64_t arrival_ns)
{
	struct sim_flight *flight = take_flight(net);

	if (!flight)
		return false;
	flight->path = *path;
	flight->dest_qpn = load->dest_qpn;
	flight->frame_bytes = load->frame_bytes;
	memcpy(flight->frame, load->frame, load->frame_bytes);
	sim_timer_arm(&net->engine->clock, &flight->timer, arrival_ns);
	return true;
}

/* Returns the time at which a packet that is sent now reaches the other end of its link. */
static uint64_t arrival_ns(const struct sim_net *net, const struct sim_path *path,
			   const struct sim_transit *transit)
{
	struct sim_link *link = path->link;
	uint64_t start_ns = sim_clock_now_ns(&net->engine->clock);

	if (link && link->bits_per_second) {
		uint64_t *busy_ns = &link->busy_until_ns[path->source == link->b];

		if (*busy_ns > start_ns)
			start_ns = *busy_ns;
		start_ns += transit->frame_bytes * 8 * UINT64_C(1000000000) / link->bits_per_second;
		*busy_ns = start_ns;
	}
	return start_ns + (link ? link->delay_ns : 0) + transit->delay_ns;
}

bool sim_delivery_needs_bytes(const struct sim_path *path, const struct sim_transit *transit)
{
	if (!path->link)
		return path->beyond && transit->delay_ns;
	return path->link->bits_per_second || path->link->delay_ns || transit->delay_ns;
}

/* The QPN that the packet goes to. A frame that a rule has made wrong goes where the packet went. */
static uint32_t dest_qpn_of(const struct sim_path *path, const struct sim_transit *transit)
{
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;

	if (transit->changed && decode(path->source, transit->frame, transit->frame_bytes, &packet,
				       &span, &route) == SIM_DECODE_OK)
		return packet.dest_qpn;
	return transit->packet->dest_qpn;
}

/* False if the packet is lost. */
static bool deliver_to(struct sim_net *net, const struct sim_path *path,
		       struct sim_transit *transit)
{
	struct load load;
	uint64_t when_ns;

	if (sim_delivery_needs_bytes(path, transit))
		sim_net_encode(net, transit);
	if (transit->lost)
		return false;
	load = (struct load){
		.packet = transit->packet,
		.frame = transit->frame,
		.frame_bytes = transit->frame_bytes,
		.dest_qpn = dest_qpn_of(path, transit),
	};
	when_ns = arrival_ns(net, path, transit);
	if (when_ns > sim_clock_now_ns(&net->engine->clock))
		return take_off(net, path, &load, when_ns);
	return end(net, path, &load);
}

/* One copy to each port that has members of the group, the sender's own port included, and one to other
 * machines. False if nobody got one. */
static bool deliver_to_group(struct sim_net *net, struct sim_transit *transit)
{
	const struct sim_device *source = transit->path->source->device;
	struct sim_path branch = *transit->path;
	bool delivered = branch.beyond && deliver_to(net, &branch, transit);

	branch.beyond = false;
	for (struct sim_device *device = net->engine->devices; device; device = device->next) {
		if (device == source && !sim_device_obeys(device, SIM_RULE_MULTICAST_LOOPS))
			continue;
		for (unsigned int i = 0; i < device->port_count; i++) {
			branch.dest = &device->ports[i];
			branch.link = sim_fabric_link(net->engine, branch.source, branch.dest);
			if (sim_fabric_is_passable(&branch) &&
			    (has_members(branch.dest, &branch) ||
			     has_other_members(net, branch.dest, &branch)))
				delivered |= deliver_to(net, &branch, transit);
		}
	}
	return delivered;
}

static bool deliver(struct sim_net *net, struct sim_transit *transit)
{
	const struct sim_path *path = transit->path;

	if (transit->lost)
		return false;
	if (path->multicast)
		return sim_port_is_up(path->source) && deliver_to_group(net, transit);
	return sim_fabric_is_passable(path) && deliver_to(net, path, transit);
}

void sim_delivery_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	const struct sim_path *path = transit->path;
	struct sim_counters *counters = &path->source->device->counters;

	if (deliver(filter->net, transit) || transit->again)
		return;
	counters->lost_packets++;
	if (!sim_port_is_up(path->source))
		counters->unsent_packets++;
}

bool sim_delivery_is_instant(const struct sim_path *path)
{
	return path->dest && sim_fabric_is_passable(path) && !path->link->delay_ns &&
	       !path->link->bits_per_second && !misrouted(path->dest, &path->route);
}

void sim_delivery_hand_over(struct sim_net *net, const struct sim_path *path,
			    const struct sim_packet *packet)
{
	const struct load load = {.packet = packet, .dest_qpn = packet->dest_qpn};

	if (!end(net, path, &load))
		path->source->device->counters.lost_packets++;
}

void sim_delivery_destroy(struct sim_delivery *delivery)
{
	while (delivery->flights) {
		struct sim_flight *flight = delivery->flights;

		delivery->flights = flight->next_made;
		free(flight);
	}
}
