/* SPDX-License-Identifier: MIT */
/*
 * The trace filter: shows every frame when it is sent to the sinks of the engine's owner.
 */
#ifndef SIM_NET_TRACE_H
#define SIM_NET_TRACE_H

#include "sim/net/filter.h"

#include <stddef.h>
#include <stdint.h>

/* Properties of a frame that its bytes do not show. */
enum sim_frame_flag {
	SIM_FRAME_INFINIBAND = 1 << 0, /* from LRH to VCRC; else Ethernet */
	SIM_FRAME_LOST = 1 << 1,       /* a fault rule or a dead link lost the packet */
};

/* Gets whole frames; flags are enum sim_frame_flag. The bytes are valid during the call only. */
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
struct sim_net;

/* Shows a packet's frame to the sinks. */
sim_filter_fn sim_trace_pass;

/* Shows a frame that no QP has sent; flags are enum sim_frame_flag. */
void sim_trace_show(struct sim_net *net, const uint8_t *frame, size_t frame_bytes,
		    unsigned int flags);

/* Sets the sink of a place; NULL removes it. On Ethernet the destination of a lost frame is
 * sim_trace_lost_mac. */
void sim_trace_set(struct sim_engine *engine, enum sim_trace_place place,
		   const struct sim_trace_sink *sink);

/* 02:00:00:00:de:ad, a locally administered address. A lost frame of InfiniBand has no mark but
 * SIM_FRAME_LOST. */
extern const uint8_t sim_trace_lost_mac[6];

#endif
