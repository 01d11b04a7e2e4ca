/* SPDX-License-Identifier: MIT */
/*
 * The tap on the wire: every frame once, when it is sent, into a sink that the engine's owner gives.
 */
#ifndef SIM_NET_TRACE_H
#define SIM_NET_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* What the bytes of a frame do not say. */
enum sim_frame_flag {
	SIM_FRAME_INFINIBAND = 1 << 0, /* from LRH to VCRC; else Ethernet */
	SIM_FRAME_LOST = 1 << 1,       /* a fault rule or a dead link lost it */
};

/* Receives whole frames; flags are of enum sim_frame_flag. frame is valid during the call only. */
struct sim_trace_sink {
	void *arg;
	void (*frame)(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		      unsigned int flags);
};

/* The destination MAC of a lost frame. One of InfiniBand has no place for such a mark: its flag
 * is all (pcapfile.h says what becomes of it in a file). */
extern const uint8_t sim_trace_lost_mac[6];

#endif
