/* SPDX-License-Identifier: MIT */
#include "sim/net/overtake.h"

#include "sim/net/net.h"
#include "sim/object/device.h"

#define SLOWER_NS 5000u

/* True if another packet that is sent a little later arrives before this one. */
static bool is_slow(struct sim_overtake *overtake, const struct sim_packet *packet)
{
	/* The connection manager's messages stay in order. */
	if (packet->dest_qpn == SIM_GSI_QPN)
		return false;
	if (sim_opcodes[packet->opcode].flags & SIM_OP_DETH)
		return ++overtake->datagrams % 2;
	return packet->dest_qpn % 2;
}

void sim_overtake_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	struct sim_overtake *overtake = (struct sim_overtake *)filter;

	if (transit->path->source->device->quirks.packets_overtake &&
	    is_slow(overtake, transit->packet))
		transit->delay_ns += SLOWER_NS;
	sim_filter_next(filter, transit);
}

void sim_overtake_follow(struct sim_engine *engine)
{
	struct sim_filter *filter = &engine->net->overtake.filter;
	bool wanted = false;

	for (struct sim_device *device = engine->devices; device; device = device->next)
		wanted |= device->quirks.packets_overtake;
	if (filter->active != wanted)
		sim_filter_activate(filter, wanted);
}
