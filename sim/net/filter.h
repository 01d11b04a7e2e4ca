/* SPDX-License-Identifier: MIT */
/*
 * Filters: every packet passes the active ones in their order. A filter looks at the packet, changes
 * what becomes of it, and hands it to the next filter: once, several times, or never. The last filter
 * delivers.
 */
#ifndef SIM_NET_FILTER_H
#define SIM_NET_FILTER_H

#include "sim/object/path.h"

/* A packet on its way. */
struct sim_transit {
	const struct sim_path *path;
	const struct sim_packet *packet;
	const uint8_t *frame; /* its bytes, once a filter has asked for them; else NULL */
	size_t frame_bytes;
	uint64_t delay_ns; /* beyond the link's delay */
	bool lost;	   /* the packet does not arrive */
	bool corrupt;	   /* a bit of frame is wrong, and the ICRC finds it */
	bool again;	   /* a second copy of a packet that was counted */
};

struct sim_filter;
typedef void sim_filter_fn(struct sim_filter *filter, struct sim_transit *transit);

struct sim_filter {
	const char *name;
	struct sim_net *net;
	struct sim_filter *next; /* the next active one */
	sim_filter_fn *pass;
	bool active; /* false: the filter has nothing to do, and packets skip it */
};

static inline void sim_filter_next(struct sim_filter *filter, struct sim_transit *transit)
{
	filter->next->pass(filter->next, transit);
}

/* Switches a filter on or off. */
void sim_filter_activate(struct sim_filter *filter, bool active);

#endif
