/* SPDX-License-Identifier: MIT */
/*
 * The network of one engine: the links, the filters that each packet passes, and the multicast
 * groups. Private to sim/net; sim/engine.c makes and destroys it.
 */
#ifndef SIM_NET_NET_H
#define SIM_NET_NET_H

#include "sim/base/core.h"
#include "sim/net/delivery.h"
#include "sim/net/fabric.h"
#include "sim/net/fault.h"
#include "sim/net/filter.h"
#include "sim/net/gsi.h"
#include "sim/net/gsi_line.h"
#include "sim/net/multicast.h"
#include "sim/net/notes.h"
#include "sim/net/overtake.h"
#include "sim/net/trace.h"
#include "sim/net/wire.h"

struct sim_net {
	struct sim_engine *engine;
	struct sim_filter *made;  /* all filters, in the order in which a packet passes them */
	struct sim_filter *first; /* the first active filter */
	struct sim_faults faults;
	struct sim_trace trace;
	struct sim_notes notes;
	struct sim_overtake overtake;
	struct sim_delivery delivery;
	struct sim_links links;
	struct sim_member *members;
	const struct sim_way_out *way; /* NULL: the engine has no way out */
	struct sim_way_out given_way;
	struct sim_gsi gsi; /* receive is NULL: QP 1 takes nothing */
	struct sim_gsi_lines gsi_lines;
};

/* Returns the route of a packet, with the UDP source port of a datagram. */
struct sim_route sim_net_route(const struct sim_path *path, const struct sim_packet *packet);

/* How many packets the network takes on a path now (sim/qp/outlet.h). */
unsigned int sim_net_room(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn);
bool sim_net_room_for_ack(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn);
bool sim_net_lags(struct sim_engine *engine, const struct sim_path *path, uint32_t dest_qpn);

/* See struct sim_outlet. */
uint64_t sim_net_holder(struct sim_engine *engine, const struct sim_device *device,
			unsigned int numbers, uint32_t number);
bool sim_net_relay(struct sim_engine *engine, const struct sim_port *port, uint64_t process,
		   const uint8_t *bytes, size_t length);

/* Who has a QPN at the end of a path, of which no QP of this engine has it, and what is in the way. */
struct vb_why sim_net_hindrance(struct sim_engine *engine, const struct sim_path *path,
				uint32_t dest_qpn);
enum sim_presence sim_net_presence(struct sim_engine *engine, const struct sim_path *path,
				   uint32_t dest_qpn);

/* Makes QPs ask for room, or ask no more. */
void sim_net_meter(struct sim_engine *engine, bool on);

/* Makes engine->net and engine->outlet. ENOMEM. */
int sim_net_create(struct sim_engine *engine);
void sim_net_destroy(struct sim_engine *engine);

/* Marks the packet as lost if its ports or its link do not carry it. A packet to a multicast group is
 * marked by the delivery. */
void sim_net_check_way(struct sim_transit *transit);

/* Writes the packet's bytes into transit->frame, unless an earlier filter has done so. The packet
 * is lost if its payload cannot be read. */
void sim_net_encode(struct sim_net *net, struct sim_transit *transit);

#endif
