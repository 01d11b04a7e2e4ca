/* SPDX-License-Identifier: MIT */
/*
 * Filters: every packet that a QP sends passes the active filters in their order, which
 * sim_net_create() decides. A filter looks at the packet, may change the transit, and calls
 * sim_filter_next(): once, several times to repeat the packet, or never to end its way. The last
 * filter delivers the packet.
 */
#ifndef SIM_NET_FILTER_H
#define SIM_NET_FILTER_H

#include "sim/object/path.h"

/*
 * A packet on its way, as the filters see and change it. Once a filter has encoded the packet, its
 * bytes are what travels: the receiver decodes them, and sees nothing else of the packet.
 */
struct sim_transit {
	const struct sim_path *path;
	const struct sim_packet *packet;
	uint8_t *frame;	    /* SIM_FRAME_BYTES_MAX bytes, for sim_net_encode() */
	size_t frame_bytes; /* 0 until the packet is encoded */
	uint64_t delay_ns;  /* added to the link's delay */
	bool lost;	    /* the packet does not arrive */
	bool changed;	    /* the bytes of the frame say something else than the packet */
	bool again;	    /* a copy of a packet; the counters count the packet once */
};

struct sim_filter;
typedef void sim_filter_fn(struct sim_filter *filter, struct sim_transit *transit);

struct sim_filter {
	struct sim_net *net;
	struct sim_filter *next_made; /* the next one of all filters */
	struct sim_filter *next;      /* the next active one */
	sim_filter_fn *pass;
	bool active; /* false: the filter has nothing to do, and packets skip it */
};

/* Hands the packet to the next active filter. */
static inline void sim_filter_next(struct sim_filter *filter, struct sim_transit *transit)
{
	filter->next->pass(filter->next, transit);
}

/* Switches a filter on or off; the delivery is always on. */
void sim_filter_activate(struct sim_filter *filter, bool active);

#endif
