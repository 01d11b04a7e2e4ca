/* SPDX-License-Identifier: MIT */
#include "sim/net/delivery.h"

#include "sim/base/note.h"
#include "sim/net/arrival.h"
#include "sim/net/net.h"
#include "sim/object/rules.h"
#include "sim/qp/qp.h"
#include "sim/wire/psn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/packet.h>

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
		sim_arrival_frame(path->dest, load->frame, load->frame_bytes, false, 0);
	else
		sim_arrival_packet(path->dest, load->packet, &path->route);
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
		.dest_qpn = path->multicast ? SIM_MULTICAST_QPN : load->dest_qpn,
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
	if (!net->way || path->multicast || dest_qpn == SIM_MULTICAST_QPN)
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
	return sim_arrival_decode(path->source, load->frame, load->frame_bytes, packet, span,
				  &route) == SIM_DECODE_OK;
}

/* A packet to QP 1 has come to a port. The engine takes a message that no other process takes, and may refuse
 * the message by an answer. */
static bool end_at_gsi(const struct sim_net *net, const struct sim_path *path,
		       const struct load *load)
{
	struct sim_packet packet;
	struct sim_span span;
	uint64_t process;

	if (!net->way || !read_load(path, load, &packet, &span)) {
		enter(path, load);
		return true;
	}
	process = sim_gsi_server(net, path->dest, &packet);
	if (!process)
		enter(path, load);
	else if (!depart(net, path, load, process))
		return false;
	sim_gsi_sent(net, &packet, process);
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
	    sim_arrival_decode(flight->path.source, flight->frame, flight->frame_bytes, &packet,
			       &span, &route) == SIM_DECODE_OK)
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

	if (transit->changed &&
	    sim_arrival_decode(path->source, transit->frame, transit->frame_bytes, &packet, &span,
			       &route) == SIM_DECODE_OK)
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
	       !path->link->bits_per_second && !sim_arrival_is_misrouted(path->dest, &path->route);
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
