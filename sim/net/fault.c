/* SPDX-License-Identifier: MIT */
#include "sim/net/fault.h"

#include "sim/engine.h"

#include <errno.h>

int sim_fault_add(struct sim_engine *engine, const struct sim_fault_rule *rule, unsigned int *id)
{
	struct sim_faults *faults = &engine->fabric.faults;

	if (faults->count == SIM_FAULT_RULES_MAX)
		return ENOSPC;
	*id = ++faults->last_id;
	faults->slots[faults->count++] = (struct sim_fault_slot){.rule = *rule, .id = *id};
	sim_fabric_observe(engine);
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
	struct sim_faults *faults = &engine->fabric.faults;
	struct sim_fault_slot *slot = find(faults, id);

	if (!slot)
		return ENOENT;
	/* The order of the others is theirs. */
	for (; slot + 1 < faults->slots + faults->count; slot++)
		slot[0] = slot[1];
	faults->count--;
	sim_fabric_observe(engine);
	return 0;
}

void sim_fault_clear(struct sim_engine *engine)
{
	engine->fabric.faults.count = 0;
	sim_fabric_observe(engine);
}

uint64_t sim_fault_hits(const struct sim_engine *engine, unsigned int id)
{
	const struct sim_faults *faults = &engine->fabric.faults;

	for (unsigned int i = 0; i < faults->count; i++)
		if (faults->slots[i].id == id)
			return faults->slots[i].fired;
	return 0;
}

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
	if (rule->chance && (uint32_t)sim_engine_random(engine) >= rule->chance)
		return false;
	slot->fired++;
	return true;
}

const struct sim_fault_rule *sim_fault_offer(struct sim_engine *engine,
					     const struct sim_device *from,
					     const struct sim_packet *packet)
{
	struct sim_faults *faults = &engine->fabric.faults;

	for (unsigned int i = 0; i < faults->count; i++) {
		struct sim_fault_slot *slot = &faults->slots[i];

		if (matches(&slot->rule, from, packet) && fires(engine, slot))
			return &slot->rule;
	}
	return NULL;
}
