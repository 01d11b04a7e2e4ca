/* SPDX-License-Identifier: MIT */
/*
 * The tap on the wire: every frame once, when it is sent, into a sink that the world's owner gives.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* Receives whole frames. frame is valid during the call only. */
struct sim_trace_sink {
	void *arg;
	void (*frame)(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes);
};

/* The destination MAC that marks a frame which a fault rule or a dead link lost. */
extern const uint8_t sim_trace_lost_mac[6];

#endif
