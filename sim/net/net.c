/* SPDX-License-Identifier: MIT */
#include "sim/net/net.h"

#include "sim/qp/outlet.h"
#include "sim/qp/qp.h"

#include <errno.h>
#include <stdlib.h>

void sim_filter_activate(struct sim_filter *filter, bool active)
{
	struct sim_net *net = filter->net;
	struct sim_filter **end = &net->first;

	filter->active = active;
	for (filter = net->made; filter; filter = filter->next_made) {
		if (!filter->active)
			continue;
		*end = filter;
		end = &filter->next;
	}
	/* QPs that hand packets to the peer directly have to ask for the way again. */
	sim_engine_changed(net->engine);
}

static struct sim_filter **add_filter(struct sim_net *net, struct sim_filter **end,
				      struct sim_filter *filter, sim_filter_fn *pass)
{
	*filter = (struct sim_filter){.net = net, .pass = pass};
	*end = filter;
	return &filter->next_made;
}

void sim_net_check_way(struct sim_transit *transit)
{
	if (!transit->path->multicast && !sim_fabric_is_passable(transit->path))
		transit->lost = true;
}

struct sim_route sim_net_route(const struct sim_path *path, const struct sim_packet *packet)
{
	struct sim_route route = path->route;

	/* A connection's port is in its path. */
	if (sim_opcodes[packet->opcode].flags & SIM_OP_DETH && !route.udp_source_port)
		route.udp_source_port = sim_udp_source_port(packet->source_qpn, packet->dest_qpn);
	return route;
}

void sim_net_encode(struct sim_net *net, struct sim_transit *transit)
{
	const struct sim_packet *packet = transit->packet;
	struct sim_route route;
	bool readable;

	if (transit->frame_bytes)
		return;
	route = sim_net_route(transit->path, packet);
	transit->frame_bytes = sim_packet_encode(packet, &route, net->engine->host.memory.copy,
						 transit->frame, &readable);
	if (readable)
		return;
	transit->path->source->device->counters.guarded_faults++;
	transit->lost = true;
}

/* Leads a packet through all active filters. */
__attribute__((noinline)) static void pass_filters(struct sim_net *net, const struct sim_path *path,
						   const struct sim_packet *packet)
{
	uint8_t frame[SIM_FRAME_BYTES_MAX];
	struct sim_transit transit = {.path = path, .packet = packet, .frame = frame};

	net->first->pass(net->first, &transit);
}

static void send(struct sim_engine *engine, struct sim_path *path, const struct sim_packet *packet)
{
	struct sim_net *net = engine->net;

	path->source->device->counters.sent_packets++;
	sim_fabric_find_way(engine, path);
	if (net->first == &net->delivery.filter && !path->multicast &&
	    sim_delivery_is_instant(path))
		sim_delivery_hand_over(net, path, packet);
	else
		pass_filters(net, path, packet);
}

/* Returns the QP at the other end if a packet reaches it now and no filter but the delivery is
 * active. */
static struct sim_qp *direct(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn)
{
	const struct sim_net *net = engine->net;

	if (net->first != &net->delivery.filter)
		return NULL;
	sim_fabric_find_way(engine, path);
	return sim_delivery_is_instant(path) ? sim_table_find(&path->dest->device->qps, dest_qpn)
					     : NULL;
}

/* What the conditions ask for changes with the engine's epoch only. */
static bool find_lane(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn,
		      struct sim_lane *lane)
{
	const struct sim_net *net = engine->net;

	if (net->first != &net->delivery.filter || !net->way->lane || path->multicast)
		return false;
	sim_fabric_find_way(engine, path);
	return sim_delivery_is_instant(path) &&
	       !sim_table_find(&path->dest->device->qps, dest_qpn) &&
	       net->way->lane(net->way->arg, path, dest_qpn, lane);
}

static const struct sim_outlet outlet = {
	.send = send,
	.direct = direct,
	.find_way = sim_fabric_find_way,
	.forget = sim_multicast_forget,
};

/* The outlet of an engine with a way out. */
static const struct sim_outlet outlet_with_room = {
	.send = send,
	.direct = direct,
	.find_way = sim_fabric_find_way,
	.room = sim_net_room,
	.room_for_ack = sim_net_room_for_ack,
	.lane = find_lane,
	.lags = sim_net_lags,
	.find = sim_net_presence,
	.hindrance = sim_net_hindrance,
	.holder = sim_net_holder,
	.relay = sim_net_relay,
	.forget = sim_multicast_forget,
};

void sim_net_meter(struct sim_engine *engine, bool on)
{
	engine->outlet = on ? &outlet_with_room : &outlet;
	for (struct sim_device *device = engine->devices; device; device = device->next) {
		uint32_t cursor = 0;
		struct sim_qp *qp;

		while ((qp = sim_table_next(&device->qps, &cursor)))
			sim_room_follow(qp);
	}
}

int sim_net_create(struct sim_engine *engine)
{
	struct sim_net *net = calloc(1, sizeof(*net));
	struct sim_filter **end;

	if (!net)
		return ENOMEM;
	net->engine = engine;
	sim_delivery_init(&net->delivery);
	engine->net = net;
	engine->outlet = &outlet;
	/* The filters, in the order in which a packet passes them. */
	end = add_filter(net, &net->made, &net->faults.filter, sim_fault_pass);
	end = add_filter(net, end, &net->trace.filter, sim_trace_pass);
	end = add_filter(net, end, &net->notes.filter, sim_notes_pass);
	end = add_filter(net, end, &net->overtake.filter, sim_overtake_pass);
	add_filter(net, end, &net->delivery.filter, sim_delivery_pass);
	sim_filter_activate(&net->delivery.filter, true);
	return 0;
}

void sim_net_destroy(struct sim_engine *engine)
{
	struct sim_net *net = engine->net;

	sim_gsi_lines_end(&net->gsi_lines);
	sim_delivery_destroy(&net->delivery);
	sim_multicast_destroy(net);
	sim_links_destroy(&net->links);
	free(net);
}
