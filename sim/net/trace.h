/* SPDX-License-Identifier: MIT */
/*
 * The trace filter: shows every frame once, when it is sent, to sinks that the engine's owner gives.
 */
#ifndef SIM_NET_TRACE_H
#define SIM_NET_TRACE_H

#include "sim/net/filter.h"

#include <stddef.h>
#include <stdint.h>

/* What the bytes of a frame do not say. */
enum sim_frame_flag {
	SIM_FRAME_INFINIBAND = 1 << 0, /* from LRH to VCRC; else Ethernet */
	SIM_FRAME_LOST = 1 << 1,       /* a fault rule or a dead link lost the packet */
};

/* Receives whole frames; flags are of enum sim_frame_flag. frame is valid during the call only. */
struct sim_trace_sink {
	void *arg;
	void (*frame)(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		      unsigned int flags);
};

enum sim_trace_place {
	SIM_TRACE_FILE,
	SIM_TRACE_WATCHER,
	SIM_TRACE_PLACES,
};

struct sim_trace {
	struct sim_filter filter;
	struct sim_trace_sink sinks[SIM_TRACE_PLACES]; /* frame NULL: no sink */
};

struct sim_engine;

void sim_trace_init(struct sim_net *net);

/* Sets a sink; NULL removes it. On Ethernet a lost frame has sim_trace_lost_mac as its destination. */
void sim_trace_set(struct sim_engine *engine, enum sim_trace_place place,
		   const struct sim_trace_sink *sink);

/* Locally administered; the last two bytes read "dead". InfiniBand has no place for such a mark:
 * there SIM_FRAME_LOST alone says it. */
extern const uint8_t sim_trace_lost_mac[6];

#endif
