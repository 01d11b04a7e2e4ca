/* SPDX-License-Identifier: MIT */
/* <verbena/fault.h>. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/process.h"

#include <errno.h>
#include <stdio.h>
#include <verbena/fault.h>

static const enum sim_fault_action actions[] = {
	[VB_FAULT_DROP] = SIM_FAULT_DROP,
	[VB_FAULT_CORRUPT] = SIM_FAULT_CORRUPT,
	[VB_FAULT_DUPLICATE] = SIM_FAULT_DUPLICATE,
	[VB_FAULT_DELAY] = SIM_FAULT_DELAY,
};

static const char *const action_names[] = {
	[VB_FAULT_DROP] = "drop",
	[VB_FAULT_CORRUPT] = "corrupt",
	[VB_FAULT_DUPLICATE] = "duplicate",
	[VB_FAULT_DELAY] = "delay",
};

static const char *const change_names[] = {
	[VB_CHANGE_ANY_BIT] = "ANY_BIT",
	[VB_CHANGE_FRAME_BYTE] = "FRAME_BYTE",
	[VB_CHANGE_BTH_BYTE] = "BTH_BYTE",
	[VB_CHANGE_LENGTH] = "LENGTH",
	[VB_CHANGE_OPCODE] = "OPCODE",
	[VB_CHANGE_SOLICITED] = "SOLICITED",
	[VB_CHANGE_PAD] = "PAD",
	[VB_CHANGE_VERSION] = "VERSION",
	[VB_CHANGE_PKEY] = "PKEY",
	[VB_CHANGE_DEST_QPN] = "DEST_QPN",
	[VB_CHANGE_ACK_REQUEST] = "ACK_REQUEST",
	[VB_CHANGE_PSN] = "PSN",
	[VB_CHANGE_SYNDROME] = "SYNDROME",
	[VB_CHANGE_MSN] = "MSN",
	[VB_CHANGE_REMOTE_ADDR] = "REMOTE_ADDR",
	[VB_CHANGE_RKEY] = "RKEY",
	[VB_CHANGE_DMA_LENGTH] = "DMA_LENGTH",
	[VB_CHANGE_SWAP_ADD] = "SWAP_ADD",
	[VB_CHANGE_COMPARE] = "COMPARE",
	[VB_CHANGE_ORIGINAL] = "ORIGINAL",
	[VB_CHANGE_QKEY] = "QKEY",
	[VB_CHANGE_SOURCE_QPN] = "SOURCE_QPN",
	[VB_CHANGE_IMM_DATA] = "IMM_DATA",
	[VB_CHANGE_XRC_SRQN] = "XRC_SRQN",
};

static const enum sim_field fields[] = {
	[VB_CHANGE_OPCODE] = SIM_FIELD_OPCODE,
	[VB_CHANGE_SOLICITED] = SIM_FIELD_SOLICITED,
	[VB_CHANGE_PAD] = SIM_FIELD_PAD,
	[VB_CHANGE_VERSION] = SIM_FIELD_VERSION,
	[VB_CHANGE_PKEY] = SIM_FIELD_PKEY,
	[VB_CHANGE_DEST_QPN] = SIM_FIELD_DEST_QPN,
	[VB_CHANGE_ACK_REQUEST] = SIM_FIELD_ACK_REQUEST,
	[VB_CHANGE_PSN] = SIM_FIELD_PSN,
	[VB_CHANGE_SYNDROME] = SIM_FIELD_SYNDROME,
	[VB_CHANGE_MSN] = SIM_FIELD_MSN,
	[VB_CHANGE_REMOTE_ADDR] = SIM_FIELD_REMOTE_ADDR,
	[VB_CHANGE_RKEY] = SIM_FIELD_RKEY,
	[VB_CHANGE_DMA_LENGTH] = SIM_FIELD_DMA_BYTES,
	[VB_CHANGE_SWAP_ADD] = SIM_FIELD_SWAP_ADD,
	[VB_CHANGE_COMPARE] = SIM_FIELD_COMPARE,
	[VB_CHANGE_ORIGINAL] = SIM_FIELD_ORIGINAL,
	[VB_CHANGE_QKEY] = SIM_FIELD_QKEY,
	[VB_CHANGE_SOURCE_QPN] = SIM_FIELD_SOURCE_QPN,
	[VB_CHANGE_IMM_DATA] = SIM_FIELD_IMM_DATA,
	[VB_CHANGE_XRC_SRQN] = SIM_FIELD_XRC_SRQN,
};

/* A function of <verbena/fault.h> that adds a rule refuses it. */
static int refuse_rule(struct vb_why why)
{
	return refuse_why("vb_fault_add", why);
}

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

/* The places of changes that are no field. */
static enum sim_fault_place place_of(enum vb_fault_change change)
{
	switch (change) {
	case VB_CHANGE_ANY_BIT:
		return SIM_FAULT_RANDOM_BIT;
	case VB_CHANGE_FRAME_BYTE:
		return SIM_FAULT_FRAME_BYTE;
	case VB_CHANGE_BTH_BYTE:
		return SIM_FAULT_BTH_BYTE;
	case VB_CHANGE_LENGTH:
		return SIM_FAULT_LENGTH;
	default:
		return SIM_FAULT_FIELD;
	}
}

/* The widest value that a change takes. */
static uint64_t widest(const struct sim_fault_change *change)
{
	switch (change->place) {
	case SIM_FAULT_FIELD:
		return sim_field_max(change->field);
	case SIM_FAULT_FRAME_BYTE:
	case SIM_FAULT_BTH_BYTE:
		return UINT8_MAX;
	default:
		return UINT64_MAX;
	}
}

static int translate_change(const struct vb_fault_rule *from, struct sim_fault_change *to)
{
	const bool whole = from->mask == 0 && from->flip == 0;

	if ((unsigned int)from->change >= sizeof(fields) / sizeof(fields[0]))
		return refuse_rule(
			(struct vb_why){VB_WHY_FAULT_CHANGE, {(uint64_t)(int)from->change}});
	*to = (struct sim_fault_change){
		.place = place_of(from->change),
		.field = fields[from->change],
		.offset = from->offset,
		.value = from->value,
		.mask = whole ? UINT64_MAX : from->mask,
		.flip = from->flip,
		.right_icrc = from->right_icrc,
	};
	if ((from->value | from->mask | from->flip) > widest(to))
		return refuse_rule((struct vb_why){
			VB_WHY_FAULT_WIDTH, {from->value, from->mask, from->flip, widest(to)}});
	return 0;
}

static int refuse_probability(double probability)
{
	char text[32];

	snprintf(text, sizeof(text), "%g", probability);
	return refuse_rule((struct vb_why){.reason = VB_WHY_FAULT_PROBABILITY, .text = text});
}

static int translate(const struct vb_sim *world, const struct vb_fault_rule *from,
		     struct sim_fault_rule *to)
{
	const struct device *device = from->from ? world_find_device(world, from->from) : NULL;

	if ((unsigned int)from->action >= sizeof(actions) / sizeof(actions[0]))
		return refuse_rule(
			(struct vb_why){VB_WHY_FAULT_ACTION, {(uint64_t)(int)from->action}});
	if (!(from->probability >= 0 && from->probability <= 1))
		return refuse_probability(from->probability);
	*to = (struct sim_fault_rule){
		.action = actions[from->action],
		.from = device ? device->engine : NULL,
		.opcode_given = from->opcode_given,
		.opcode = from->opcode,
		.any_transport = from->any_transport,
		.psn_given = from->psn_given,
		.psn = from->psn,
		.dest_qpn = from->dest_qpn,
		.skip = from->skip,
		.count = from->count,
		.chance = chance_of(from->probability),
		.delay_ns = from->delay_ns,
	};
	if (from->from && !device)
		return refuse_rule(
			(struct vb_why){.reason = VB_WHY_FAULT_DEVICE, .text = from->from});
	return from->action == VB_FAULT_CORRUPT ? translate_change(from, &to->change) : 0;
}

const char *vb_fault_action_name(unsigned int action)
{
	return action < sizeof(action_names) / sizeof(action_names[0]) ? action_names[action]
								       : NULL;
}

const char *vb_fault_change_name(unsigned int change)
{
	return change < sizeof(change_names) / sizeof(change_names[0]) ? change_names[change]
								       : NULL;
}

uint64_t vb_fault_change_max(enum vb_fault_change change)
{
	const struct sim_fault_change translated = {
		.place = place_of(change),
		.field = (unsigned int)change < sizeof(fields) / sizeof(fields[0]) ? fields[change]
										   : 0,
	};

	return widest(&translated);
}

int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id)
{
	HOLD hold = process_hold(sim);

	return hold.world ? world_add_fault(hold.world, rule, id) : errno;
}

int world_add_fault(struct vb_sim *world, const struct vb_fault_rule *rule, unsigned int *id)
{
	struct sim_fault_rule translated;
	unsigned int ignored;
	int err = translate(world, rule, &translated);

	if (err)
		return err;
	err = sim_fault_add(world->driver.engine, &translated, id ? id : &ignored);
	return err ? refuse_rule((struct vb_why){VB_WHY_FAULT_FULL, {SIM_FAULT_RULES_MAX}}) : 0;
}

int vb_fault_remove(struct vb_sim *sim, unsigned int id)
{
	HOLD hold = process_hold(sim);
	int err;

	if (!hold.world)
		return errno;
	err = sim_fault_remove(hold.world->driver.engine, id);
	return err ? refuse_why(__func__, (struct vb_why){VB_WHY_FAULT_NONE, {id}}) : 0;
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
