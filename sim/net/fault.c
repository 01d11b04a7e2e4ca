/* SPDX-License-Identifier: MIT */
#include "sim/net/fault.h"

#include "sim/net/net.h"
#include "sim/wire/bytes.h"
#include "sim/wire/icrc.h"

#include <errno.h>

static bool matches(const struct sim_fault_rule *rule, const struct sim_device *from,
		    const struct sim_packet *packet)
{
	return (!rule->from || rule->from == from) &&
	       (!rule->opcode_given || rule->opcode == packet->opcode) &&
	       (!rule->psn_given || rule->psn == packet->psn) &&
	       (!rule->dest_qpn || rule->dest_qpn == packet->dest_qpn);
}

static bool fires(struct sim_engine *engine, struct sim_fault_slot *slot)
{
	const struct sim_fault_rule *rule = &slot->rule;

	if (slot->matched++ < rule->skip || (rule->count && slot->fired >= rule->count))
		return false;
	if (rule->chance && (uint32_t)sim_random(engine) >= rule->chance)
		return false;
	slot->fired++;
	return true;
}

const struct sim_fault_rule *sim_fault_offer(struct sim_engine *engine,
					     const struct sim_device *from,
					     const struct sim_packet *packet)
{
	struct sim_faults *faults = &engine->net->faults;

	for (unsigned int i = 0; i < faults->count; i++) {
		struct sim_fault_slot *slot = &faults->slots[i];

		if (matches(&slot->rule, from, packet) && fires(engine, slot))
			return &slot->rule;
	}
	return NULL;
}

/* Turns one bit behind the second word of the BTH, where the ICRC covers every bit. */
static void corrupt(struct sim_net *net, struct sim_transit *transit)
{
	const bool infiniband = transit->path->route.infiniband;
	size_t bth = sim_route_bytes(&transit->path->route);
	size_t length_bytes;
	uint64_t bit;

	sim_net_encode(net, transit);
	length_bytes = transit->frame_bytes - (infiniband ? 2 : 0);
	bit = sim_random(net->engine) % (8 * (length_bytes - bth - 8));
	net->frame[bth + 8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
	/* The bit turned in the memory of a switch, which computes a new VCRC. */
	if (infiniband)
		sim_store_le16(net->frame + length_bytes, sim_vcrc(net->frame, length_bytes));
	transit->corrupt = true;
}

void sim_fault_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	const struct sim_fault_rule *rule = sim_fault_offer(
		filter->net->engine, transit->path->source->device, transit->packet);
	enum sim_fault_action action = rule ? rule->action : SIM_FAULT_NONE;
	struct sim_transit second = *transit;

	if (action == SIM_FAULT_DROP ||
	    !(transit->path->multicast || sim_fabric_is_passable(transit->path)))
		transit->lost = true;
	if (action == SIM_FAULT_CORRUPT && !transit->lost)
		corrupt(filter->net, transit);
	if (action == SIM_FAULT_DELAY)
		transit->delay_ns += rule->delay_ns;
	sim_filter_next(filter, transit);
	if (action == SIM_FAULT_DUPLICATE && !transit->lost) {
		second.again = true;
		sim_filter_next(filter, &second);
	}
}

static void count_rules(struct sim_faults *faults, unsigned int count)
{
	faults->count = count;
	sim_filter_activate(&faults->filter, count > 0);
}

int sim_fault_add(struct sim_engine *engine, const struct sim_fault_rule *rule, unsigned int *id)
{
	struct sim_faults *faults = &engine->net->faults;

	if (faults->count == SIM_FAULT_RULES_MAX)
		return ENOSPC;
	*id = ++faults->last_id;
	faults->slots[faults->count] = (struct sim_fault_slot){.rule = *rule, .id = *id};
	count_rules(faults, faults->count + 1);
	return 0;
}

static struct sim_fault_slot *find(struct sim_faults *faults, unsigned int id)
{
	for (unsigned int i = 0; i < faults->count; i++)
		if (faults->slots[i].id == id)
			return &faults->slots[i];
	return NULL;
}

int sim_fault_remove(struct sim_engine *engine, unsigned int id)
{
	struct sim_faults *faults = &engine->net->faults;
	struct sim_fault_slot *slot = find(faults, id);

	if (!slot)
		return ENOENT;
	for (; slot + 1 < faults->slots + faults->count; slot++)
		slot[0] = slot[1];
	count_rules(faults, faults->count - 1);
	return 0;
}

void sim_fault_clear(struct sim_engine *engine)
{
	count_rules(&engine->net->faults, 0);
}

uint64_t sim_fault_hits(const struct sim_engine *engine, unsigned int id)
{
	const struct sim_fault_slot *slot = find(&engine->net->faults, id);

	return slot ? slot->fired : 0;
}
