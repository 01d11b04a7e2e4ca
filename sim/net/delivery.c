/* SPDX-License-Identifier: MIT */
#include "sim/net/delivery.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/object/rules.h"
#include "sim/qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/packet.h>

#define MULTICAST_QPN 0xffffffu

/* A packet on a link with delay: its bytes, and the port that they go to. */
struct sim_flight {
	struct sim_timer timer;
	struct sim_flight *next_made;
	struct sim_flight *next_spare;
	struct sim_net *net;
	struct sim_port *dest;
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
static bool is_misaddressed(const struct sim_port *port, const struct sim_route *route)
{
	union ibv_gid dgid;

	if (route->infiniband)
		return !sim_lid_is_multicast(route->dlid) &&
		       (route->dlid != port->lid || misrouted(port, route));
	memcpy(dgid.raw, route->dest_gid, sizeof(dgid));
	return !sim_gid_is_multicast(dgid.raw) &&
	       sim_port_find_gid(port, &dgid,
				 route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) < 0;
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

static void note_frame(const struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
		       enum vb_reason reason)
{
	struct vb_why why = {.reason = reason};
	struct vb_packet shown;

	sim_frame_show(frame, frame_bytes, sim_port_is_infiniband(port), &shown);
	why.text = shown.opcode_name;
	if (reason == VB_WHY_DROP_OPCODE)
		why.values[0] = shown.opcode;
	else if (reason == VB_WHY_DROP_ICRC || reason == VB_WHY_DROP_VCRC)
		why.values[0] = shown.psn;
	else
		why.values[0] = frame_bytes;
	sim_note_drop(port->device, port, NULL, &shown, &why);
}

/* Counts a frame that cannot be decoded. */
static void refuse_frame(const struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			 enum sim_decode error)
{
	struct sim_device *device = port->device;

	sim_discard(&device->counters, decode_errors[error].cause);
	device->counters.refused_packets++;
	if (sim_watched(device->engine))
		note_frame(port, frame, frame_bytes, decode_errors[error].reason);
}

/* Gives a packet that has come to a port to its QP, or counts why no QP takes the packet. */
static void admit(struct sim_port *port, const struct sim_packet *packet,
		  const struct sim_route *route)
{
	struct sim_device *device = port->device;
	struct sim_qp *qp = sim_table_find(&device->qps, packet->dest_qpn);
	enum sim_discard cause;

	if (packet->dest_qpn == MULTICAST_QPN) {
		arrive_at_group(port, packet, route);
		return;
	}
	cause = sim_qp_take_packet(qp, port, packet, route);
	if (cause != SIM_DISCARD_NONE)
		refuse(port, qp, packet, route, cause);
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

void sim_delivery_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes)
{
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	enum sim_decode result =
		(sim_port_is_infiniband(port) ? sim_packet_decode_infiniband : sim_packet_decode)(
			frame, frame_bytes, &packet, &span, &route);

	port->device->counters.received_packets++;
	if (result != SIM_DECODE_OK)
		refuse_frame(port, frame, frame_bytes, result);
	else if (is_misaddressed(port, &route))
		refuse(port, NULL, &packet, &route, SIM_DISCARD_ADDRESS);
	else
		admit(port, &packet, &route);
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
	sim_delivery_arrive(port, copy, frame_bytes);
	return 0;
}

static void land(struct sim_timer *timer)
{
	struct sim_flight *flight = (struct sim_flight *)timer;
	struct sim_delivery *delivery = &flight->net->delivery;

	sim_delivery_arrive(flight->dest, flight->frame, flight->frame_bytes);
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

/* Keeps the bytes of a packet until its arrival. False if memory is out: the packet is lost, as in a
 * full switch. */
static bool take_off(struct sim_net *net, const struct sim_path *path,
		     const struct sim_transit *transit, uint64_t arrival_ns)
{
	struct sim_flight *flight = take_flight(net);

	if (!flight)
		return false;
	flight->dest = path->dest;
	flight->frame_bytes = transit->frame_bytes;
	memcpy(flight->frame, transit->frame, transit->frame_bytes);
	sim_timer_arm(&net->engine->clock, &flight->timer, arrival_ns);
	return true;
}

/* Returns the time at which a packet that is sent now reaches the other end of its link. */
static uint64_t arrival_ns(const struct sim_net *net, const struct sim_path *path,
			   const struct sim_transit *transit)
{
	struct sim_link *link = path->link;
	uint64_t start_ns = net->engine->clock.now_ns;

	if (link->bits_per_second) {
		uint64_t *busy_ns = &link->busy_until_ns[path->source == link->b];

		if (*busy_ns > start_ns)
			start_ns = *busy_ns;
		start_ns += transit->frame_bytes * 8 * UINT64_C(1000000000) / link->bits_per_second;
		*busy_ns = start_ns;
	}
	return start_ns + link->delay_ns + transit->delay_ns;
}

bool sim_delivery_needs_bytes(const struct sim_path *path, const struct sim_transit *transit)
{
	return path->link &&
	       (path->link->bits_per_second || path->link->delay_ns || transit->delay_ns);
}

/* False if the packet is lost. */
static bool deliver_to(struct sim_net *net, const struct sim_path *path,
		       struct sim_transit *transit)
{
	uint64_t when_ns;

	if (sim_delivery_needs_bytes(path, transit))
		sim_net_encode(net, transit);
	if (transit->lost)
		return false;
	when_ns = arrival_ns(net, path, transit);
	if (when_ns > net->engine->clock.now_ns)
		return take_off(net, path, transit, when_ns);
	if (transit->frame_bytes)
		sim_delivery_arrive(path->dest, transit->frame, transit->frame_bytes);
	else
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
static bool deliver_to_group(struct sim_net *net, struct sim_transit *transit)
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
