/* SPDX-License-Identifier: MIT */
/* <verbena/fault.h>. */
#include "backends/sim/base/say.h"
#include "backends/sim/world/process.h"

#include <errno.h>
#include <verbena/fault.h>

static const enum sim_fault_action actions[] = {
	[VB_FAULT_DROP] = SIM_FAULT_DROP,
	[VB_FAULT_CORRUPT] = SIM_FAULT_CORRUPT,
	[VB_FAULT_DUPLICATE] = SIM_FAULT_DUPLICATE,
	[VB_FAULT_DELAY] = SIM_FAULT_DELAY,
};

/* A probability as a fraction of 2^32; 0 means always, as in the rule. */
static uint32_t chance_of(double probability)
{
	double chance = probability * 0x1p32;

	if (probability == 0 || probability >= 1)
		return 0;
	if (chance >= UINT32_MAX)
		return UINT32_MAX;
	return chance < 1 ? 1 : (uint32_t)chance;
}

static int translate(const struct vb_sim *world, const struct vb_fault_rule *from,
		     struct sim_fault_rule *to)
{
	const struct device *device = from->from ? world_find_device(world, from->from) : NULL;

	if ((unsigned int)from->action >= sizeof(actions) / sizeof(actions[0]))
		return say(EINVAL, "vb_fault_add: there is no action %d", (int)from->action);
	if (!(from->probability >= 0 && from->probability <= 1))
		return say(EINVAL, "vb_fault_add: probability %g is not between 0 and 1",
			   from->probability);
	*to = (struct sim_fault_rule){
		.action = actions[from->action],
		.from = device ? device->engine : NULL,
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
	if (from->from && !device)
		return say(EINVAL, "vb_fault_add: there is no device %s", from->from);
	return 0;
}

int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id)
{
	HOLD hold = process_hold(sim);
	struct sim_fault_rule translated;
	unsigned int ignored;
	int err;

	if (!hold.world)
		return errno;
	err = translate(hold.world, rule, &translated);
	if (err)
		return err;
	err = sim_fault_add(hold.world->driver.engine, &translated, id ? id : &ignored);
	return err ? say(err, "vb_fault_add: the world has too many rules; remove one first") : 0;
}

int vb_fault_remove(struct vb_sim *sim, unsigned int id)
{
	HOLD hold = process_hold(sim);
	int err;

	if (!hold.world)
		return errno;
	err = sim_fault_remove(hold.world->driver.engine, id);
	return err ? say(err, "vb_fault_remove: there is no rule %u", id) : 0;
}

void vb_fault_clear(struct vb_sim *sim)
{
	HOLD hold = process_hold(sim);

	if (hold.world)
		sim_fault_clear(hold.world->driver.engine);
}

uint64_t vb_fault_hits(struct vb_sim *sim, unsigned int id)
{
	HOLD hold = process_hold(sim);

	return hold.world ? sim_fault_hits(hold.world->driver.engine, id) : 0;
}
