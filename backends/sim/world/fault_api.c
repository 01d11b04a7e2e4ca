/* SPDX-License-Identifier: MIT */
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <string.h>
#include <verbena/fault.h>

static const enum sim_fault_action actions[] = {
	[VB_FAULT_DROP] = SIM_FAULT_DROP,
	[VB_FAULT_CORRUPT] = SIM_FAULT_CORRUPT,
	[VB_FAULT_DUPLICATE] = SIM_FAULT_DUPLICATE,
	[VB_FAULT_DELAY] = SIM_FAULT_DELAY,
};

/* A probability as a fraction of 2^32; always is 0, as in the rule. */
static uint32_t chance_of(double probability)
{
	double chance = probability * 4294967296.0;

	if (probability == 0 || chance >= 4294967295.0)
		return probability == 0 || probability >= 1 ? 0 : UINT32_MAX;
	return chance < 1 ? 1 : (uint32_t)chance;
}

static int translate(struct vb_sim *world, const struct vb_fault_rule *from,
		     struct sim_fault_rule *to)
{
	if ((unsigned int)from->action >= sizeof(actions) / sizeof(actions[0]))
		return say(EINVAL, "vb_fault_add: there is no action %d", (int)from->action);
	if (!(from->probability >= 0 && from->probability <= 1))
		return say(EINVAL, "vb_fault_add: a probability is between 0 and 1, not %g",
			   from->probability);
	*to = (struct sim_fault_rule){
		.action = actions[from->action],
		.opcode_given = from->opcode_given,
		.opcode = from->opcode,
		.psn_given = from->psn_given,
		.psn = from->psn,
		.dest_qpn = from->dest_qpn,
		.skip = from->skip,
		.count = from->count,
		.chance = chance_of(from->probability),
		.delay_ns = from->delay_ns,
	};
	for (unsigned int i = 0; from->from && i < world->device_count && !to->from; i++)
		if (strcmp(world->devices[i].ibv.name, from->from) == 0)
			to->from = world->devices[i].engine;
	if (from->from && !to->from)
		return say(EINVAL, "vb_fault_add: there is no device %s", from->from);
	return 0;
}

int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id)
{
	struct vb_sim *world = world_or_default(sim);
	struct sim_fault_rule translated;
	unsigned int ignored;
	bool locked;
	int err;

	if (!world)
		return errno;
	err = translate(world, rule, &translated);
	if (err)
		return err;
	locked = world_lock(world);
	err = sim_fault_add(world->engine, &translated, id ? id : &ignored);
	world_unlock(world, locked);
	return err ? say(err, "vb_fault_add: there is no room for another rule") : 0;
}

int vb_fault_remove(struct vb_sim *sim, unsigned int id)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;
	int err;

	if (!world)
		return errno;
	locked = world_lock(world);
	err = sim_fault_remove(world->engine, id);
	world_unlock(world, locked);
	return err ? say(err, "vb_fault_remove: there is no rule %u", id) : 0;
}

void vb_fault_clear(struct vb_sim *sim)
{
	struct vb_sim *world = world_or_default(sim);
	bool locked;

	if (!world)
		return;
	locked = world_lock(world);
	sim_fault_clear(world->engine);
	world_unlock(world, locked);
}

uint64_t vb_fault_hits(struct vb_sim *sim, unsigned int id)
{
	struct vb_sim *world = world_or_default(sim);
	uint64_t hits;
	bool locked;

	if (!world)
		return 0;
	locked = world_lock(world);
	hits = sim_fault_hits(world->engine, id);
	world_unlock(world, locked);
	return hits;
}
