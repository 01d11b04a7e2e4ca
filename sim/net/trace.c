/* SPDX-License-Identifier: MIT */
#include "sim/net/trace.h"

#include "sim/net/net.h"

#include <string.h>

const uint8_t sim_trace_lost_mac[6] = {0x02, 0, 0, 0, 0xde, 0xad};

void sim_trace_show(struct sim_net *net, const uint8_t *frame, size_t frame_bytes,
		    unsigned int flags)
{
	const struct sim_trace *trace = &net->trace;

	for (unsigned int i = 0; i < SIM_TRACE_PLACES; i++)
		if (trace->sinks[i].frame)
			trace->sinks[i].frame(trace->sinks[i].arg,
					      sim_clock_now_ns(&net->engine->clock), frame,
					      frame_bytes, flags);
}

void sim_trace_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	const bool infiniband = transit->path->route.infiniband;

	sim_net_check_way(transit);
	sim_net_encode(filter->net, transit);
	/* The bytes of a lost packet go nowhere but into the trace. */
	if (transit->lost && !infiniband)
		memcpy(transit->frame, sim_trace_lost_mac, sizeof(sim_trace_lost_mac));
	sim_trace_show(filter->net, transit->frame, transit->frame_bytes,
		       (transit->lost ? SIM_FRAME_LOST : 0) |
			       (infiniband ? SIM_FRAME_INFINIBAND : 0));
	sim_filter_next(filter, transit);
}

void sim_trace_set(struct sim_engine *engine, enum sim_trace_place place,
		   const struct sim_trace_sink *sink)
{
	struct sim_trace *trace = &engine->net->trace;
	bool active = false;

	trace->sinks[place] = sink ? *sink : (struct sim_trace_sink){0};
	for (unsigned int i = 0; i < SIM_TRACE_PLACES; i++)
		active |= trace->sinks[i].frame != NULL;
	sim_filter_activate(&trace->filter, active);
}
