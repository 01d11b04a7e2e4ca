/* SPDX-License-Identifier: MIT */
/*
 * The filter that notes packets: each packet is an event (VB_EVENT_PACKET) when it is sent. It reads
 * the descriptor, and encodes nothing.
 */
#ifndef SIM_NET_NOTES_H
#define SIM_NET_NOTES_H

#include "sim/net/filter.h"

struct sim_engine;

struct sim_notes {
	struct sim_filter filter;
};

/* Notes a packet. */
sim_filter_fn sim_notes_pass;

/* Notes that a fault rule acts on a packet. */
void sim_notes_fault(struct sim_engine *engine, const struct sim_transit *transit,
		     const char *action, unsigned int rule);

/* Notes a frame that no QP has sent and that arrives at a port. */
void sim_notes_injected(struct sim_port *port, const uint8_t *frame, size_t frame_bytes);

/* The engine gives its events to its owner, or does so no more. */
void sim_notes_watch(struct sim_engine *engine, bool on);

#endif
