/* SPDX-License-Identifier: MIT */
/*
 * The last filter: carries a packet over its link to a QP. A packet that a link delays is copied
 * into a buffer of its own.
 */
#ifndef SIM_NET_DELIVERY_H
#define SIM_NET_DELIVERY_H

#include "sim/net/filter.h"

struct sim_flight;

struct sim_delivery {
	struct sim_filter filter;
	struct sim_flight *flights; /* all buffers of delayed packets */
	struct sim_flight *spare;   /* the buffers that hold no packet */
};

/* Delivers a packet, counts it if it is lost, and ends the chain. */
sim_filter_fn sim_delivery_pass;

/* Frees the buffers of delayed packets. */
void sim_delivery_destroy(struct sim_delivery *delivery);

/* Returns true if a packet on this path arrives in the instant in which it is sent. */
bool sim_delivery_is_instant(const struct sim_path *path);

#endif
