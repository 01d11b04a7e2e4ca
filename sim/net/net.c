/* SPDX-License-Identifier: MIT */
#include "sim/net/net.h"

#include "sim/qp/outlet.h"
#include "sim/qp/qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void sim_net_encode(struct sim_net *net, struct sim_transit *transit)
{
	struct sim_route route = transit->path->route;

	if (transit->frame)
		return;
	if (!route.udp_source_port)
		route.udp_source_port =
			sim_udp_source_port(transit->packet->source_qpn, transit->packet->dest_qpn);
	if (transit->lost)
		memcpy(route.dest_mac, sim_trace_lost_mac, sizeof(route.dest_mac));
	transit->frame_bytes = sim_packet_encode(transit->packet, &route,
						 net->engine->host.memory.copy, net->frame);
	transit->frame = net->frame;
}

static void send(struct sim_engine *engine, struct sim_path *path, const struct sim_packet *packet)
{
	struct sim_net *net = engine->net;
	struct sim_transit transit = {.path = path, .packet = packet};

	path->source->device->counters.sent_packets++;
	sim_fabric_find_way(engine, path);
	net->first->pass(net->first, &transit);
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

static const struct sim_outlet outlet = {
	.send = send,
	.direct = direct,
	.forget = sim_multicast_forget,
};

int sim_net_create(struct sim_engine *engine)
{
	struct sim_net *net = calloc(1, sizeof(*net));
	struct sim_filter **end;

	if (!net)
		return ENOMEM;
	net->engine = engine;
	engine->net = net;
	engine->outlet = &outlet;
	/* The filters, in the order in which a packet passes them. */
	end = add_filter(net, &net->made, &net->faults.filter, sim_fault_pass);
	end = add_filter(net, end, &net->trace.filter, sim_trace_pass);
	add_filter(net, end, &net->delivery.filter, sim_delivery_pass);
	sim_filter_activate(&net->delivery.filter, true);
	return 0;
}

void sim_net_destroy(struct sim_engine *engine)
{
	struct sim_net *net = engine->net;

	sim_delivery_destroy(&net->delivery);
	sim_multicast_destroy(net);
	sim_links_destroy(&net->links);
	free(net);
}
