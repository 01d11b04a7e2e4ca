/* SPDX-License-Identifier: MIT */
/*
 * The filter that lets packets of devices with the quirk packets_overtake be overtaken: some flows, and every
 * second datagram, take longer. The packets of a connection stay in their order.
 */
#ifndef SIM_NET_OVERTAKE_H
#define SIM_NET_OVERTAKE_H

#include "sim/net/filter.h"

struct sim_engine;

struct sim_overtake {
	struct sim_filter filter;
	uint32_t datagrams; /* counts those that have passed */
};

sim_filter_fn sim_overtake_pass;

/* The quirks of a device have changed: switches the filter on or off. */
void sim_overtake_follow(struct sim_engine *engine);

#endif
