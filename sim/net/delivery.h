/* SPDX-License-Identifier: MIT */
/*
 * The last filter: carries a packet over its link to a port, where the packet arrives (arrival.h). A link that delays a
 * packet keeps the packet's bytes in a buffer.
 */
#ifndef SIM_NET_DELIVERY_H
#define SIM_NET_DELIVERY_H

#include "sim/net/filter.h"

struct sim_flight;
struct sim_net;

struct sim_delivery {
	struct sim_filter filter;
	struct sim_flight *flights; /* all buffers of delayed packets */
	struct sim_flight *spare;   /* the buffers that hold no packet */
	/* Packets that have come to the end of their link and wait for room in the way out. */
	struct sim_flight *held;
	struct sim_flight **held_end;
};

void sim_delivery_init(struct sim_delivery *delivery);

/* Returns true if the delivery encodes the packet, because the packet arrives later. A packet to a group is
 * decided for each of its links. */
bool sim_delivery_needs_bytes(const struct sim_path *path, const struct sim_transit *transit);

/* Delivers a packet, counts it if it is lost, and ends the chain. */
sim_filter_fn sim_delivery_pass;

/* Delivers a packet that no other filter looks at, on a path for which sim_delivery_is_instant() returns true, and
 * counts the packet if it is lost. */
void sim_delivery_hand_over(struct sim_net *net, const struct sim_path *path,
			    const struct sim_packet *packet);

/* The way out may have room again: packets that were held leave. Those that find no room stay. */
void sim_delivery_release(struct sim_net *net);

/* Frees the buffers of delayed packets. */
void sim_delivery_destroy(struct sim_delivery *delivery);

/* Returns true if a packet on this path arrives in the instant in which it is sent. */
bool sim_delivery_is_instant(const struct sim_path *path);

#endif
