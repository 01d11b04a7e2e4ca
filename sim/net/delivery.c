/* SPDX-License-Identifier: MIT */
#include "sim/net/delivery.h"

#include "sim/net/net.h"
#include "sim/object/payload.h"
#include "sim/object/rules.h"
#include "sim/qp/qp.h"

#include <stdlib.h>
#include <string.h>

#define MULTICAST_QPN 0xffffffu

/* A packet on a link with delay. */
struct sim_flight {
	struct sim_timer timer;
	struct sim_flight *next_made;
	struct sim_flight *next_spare;
	struct sim_net *net;
	struct sim_port *dest;
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	uint8_t payload[SIM_PATH_MTU_MAX];
};

/* True if an InfiniBand packet came by its LID to a port that does not have the GID of its GRH. */
static bool misrouted(const struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (!route->infiniband || !route->has_grh)
		return false;
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return sim_port_find_gid(port, &dgid, IBV_GID_TYPE_IB) < 0;
}

static void arrive_at_group(struct sim_port *port, const struct sim_packet *packet,
			    const struct sim_route *route)
{
	struct sim_member *next;

	for (struct sim_member *member = port->device->engine->net->members; member;
	     member = next) {
		next = member->next;
		if (sim_multicast_matches(member, port, route) &&
		    sim_qp_admits(member->qp, port, packet, route))
			sim_datagram_receive(member->qp, packet, route);
	}
}

/* Counts a packet that no QP takes. */
static void refuse(struct sim_device *device)
{
	device->counters.dropped_packets++;
	device->counters.refused_packets++;
}

/* A packet with a right ICRC arrives at a port. */
static void arrive(struct sim_port *port, const struct sim_packet *packet,
		   const struct sim_route *route)
{
	struct sim_device *device = port->device;
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);

	device->counters.received_packets++;
	if (packet->dest_qpn == MULTICAST_QPN) {
		arrive_at_group(port, packet, route);
		return;
	}
	if (misrouted(port, route) || !sim_qp_take_packet(qp, port, packet, route))
		refuse(device);
}

/* A frame with a wrong ICRC arrives at a port. */
static void arrive_corrupt(struct sim_port *port)
{
	port->device->counters.received_packets++;
	refuse(port->device);
}

static void land(struct sim_timer *timer)
{
	struct sim_flight *flight = (struct sim_flight *)timer;
	struct sim_delivery *delivery = &flight->net->delivery;

	arrive(flight->dest, &flight->packet, &flight->route);
	flight->next_spare = delivery->spare;
	delivery->spare = flight;
}

/* Takes a spare buffer or makes one; sim_delivery_destroy() frees the buffers. NULL if memory is
 * out. */
static struct sim_flight *take_flight(struct sim_net *net)
{
	struct sim_delivery *delivery = &net->delivery;
	struct sim_flight *flight = delivery->spare;

	if (flight) {
		delivery->spare = flight->next_spare;
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

/* Copies a packet until its arrival. False if memory is out: the packet is lost, as in a full
 * switch. */
static bool take_off(struct sim_net *net, const struct sim_path *path,
		     const struct sim_packet *packet, uint64_t arrival_ns)
{
	struct sim_flight *flight = take_flight(net);

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
	sim_timer_arm(&net->engine->clock, &flight->timer, arrival_ns);
	return true;
}

/* Returns the time at which a packet that is sent now reaches the other end of its link. */
static uint64_t arrival_ns(const struct sim_net *net, const struct sim_path *path,
			   const struct sim_packet *packet)
{
	struct sim_link *link = path->link;
	uint64_t start_ns = net->engine->clock.now_ns;

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

/* False if the packet is lost. */
static bool deliver_to(struct sim_net *net, const struct sim_path *path,
		       const struct sim_transit *transit)
{
	uint64_t when_ns = arrival_ns(net, path, transit->packet) + transit->delay_ns;

	if (when_ns > net->engine->clock.now_ns)
		return take_off(net, path, transit->packet, when_ns);
	arrive(path->dest, transit->packet, &path->route);
	return true;
}

/* True if the port has a GID of the packet's RoCE version. */
static bool hears(const struct sim_port *port, const struct sim_route *route)
{
	return route->infiniband || sim_port_has_type(port, route->roce_v1 ? IBV_GID_TYPE_ROCE_V1
									   : IBV_GID_TYPE_ROCE_V2);
}

static bool has_members(const struct sim_port *port, const struct sim_path *path)
{
	const struct sim_member *member = port->device->engine->net->members;

	if (!hears(port, &path->route))
		return false;
	while (member && !sim_multicast_matches(member, port, &path->route))
		member = member->next;
	return member;
}

/* One copy to each port that has members of the group, the sender's own port included. False if no
 * port got one. */
static bool deliver_to_group(struct sim_net *net, const struct sim_transit *transit)
{
	const struct sim_device *source = transit->path->source->device;
	struct sim_path branch = *transit->path;
	bool delivered = false;

	for (struct sim_device *device = net->engine->devices; device; device = device->next) {
		if (device == source && !sim_device_obeys(device, SIM_RULE_MULTICAST_LOOPS))
			continue;
		for (unsigned int i = 0; i < device->port_count; i++) {
			branch.dest = &device->ports[i];
			branch.link = sim_fabric_link(net->engine, branch.source, branch.dest);
			if (sim_fabric_is_passable(&branch) && has_members(branch.dest, &branch))
				delivered |= deliver_to(net, &branch, transit);
		}
	}
	return delivered;
}

static bool deliver(struct sim_net *net, const struct sim_transit *transit)
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

	if (transit->corrupt) {
		if (path->dest)
			arrive_corrupt(path->dest);
		return;
	}
	if (deliver(filter->net, transit) || transit->again)
		return;
	counters->lost_packets++;
	if (!sim_port_is_up(path->source))
		counters->unsent_packets++;
}

bool sim_delivery_is_instant(const struct sim_path *path)
{
	return sim_fabric_is_passable(path) && !path->link->delay_ns &&
	       !path->link->bits_per_second && !misrouted(path->dest, &path->route);
}

void sim_delivery_destroy(struct sim_delivery *delivery)
{
	while (delivery->flights) {
		struct sim_flight *flight = delivery->flights;

		delivery->flights = flight->next_made;
		free(flight);
	}
}
