/* SPDX-License-Identifier: MIT */
/* <verbena/fault.h>. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/fault.h>

static const enum sim_fault_action actions[] = {
	[VB_FAULT_DROP] = SIM_FAULT_DROP,	    [VB_FAULT_CORRUPT] = SIM_FAULT_CORRUPT,
	[VB_FAULT_DUPLICATE] = SIM_FAULT_DUPLICATE, [VB_FAULT_DELAY] = SIM_FAULT_DELAY,
	[VB_FAULT_REJECT] = SIM_FAULT_REJECT,
};

static const char *const action_names[] = {
	[VB_FAULT_DROP] = "drop",	    [VB_FAULT_CORRUPT] = "corrupt",
	[VB_FAULT_DUPLICATE] = "duplicate", [VB_FAULT_DELAY] = "delay",
	[VB_FAULT_REJECT] = "reject",
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
	[VB_CHANGE_MESSAGE_FIELD] = "MESSAGE_FIELD",
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
	[VB_CHANGE_MESSAGE_FIELD] = 0, /* no field of a packet's headers */
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
	case VB_CHANGE_MESSAGE_FIELD:
		return SIM_FAULT_MESSAGE_FIELD;
	default:
		return SIM_FAULT_FIELD;
	}
}

/* --- messages of the connection manager --- */

/* Returns NULL for SIM_CM_NONE, which stands for the header of each message. */
static const char *message_name(enum sim_cm_message message)
{
	return message > SIM_CM_NONE && message < SIM_CM_MESSAGES
		       ? sim_cm_message_info[message].name
		       : NULL;
}

const char *vb_fault_message_name(unsigned int index)
{
	return index < SIM_CM_MESSAGES ? message_name((enum sim_cm_message)(index + 1)) : NULL;
}

/* Returns SIM_CM_NONE if no message has the name. */
static enum sim_cm_message find_message(const char *name)
{
	for (unsigned int i = SIM_CM_NONE + 1; name && i < SIM_CM_MESSAGES; i++)
		if (strcmp(sim_cm_message_info[i].name, name) == 0)
			return (enum sim_cm_message)i;
	return SIM_CM_NONE;
}

/* Returns field number `index` of a message and, behind its fields, of the header; SIM_CM_FIELDS behind the
 * last one. */
static enum sim_cm_field field_at(enum sim_cm_message message, unsigned int index)
{
	const enum sim_cm_message owners[] = {message, SIM_CM_NONE};

	for (unsigned int i = 0; message && i < 2; i++)
		for (unsigned int field = 0; field < SIM_CM_FIELDS; field++)
			if (sim_cm_field_info[field].message == owners[i] && !index--)
				return (enum sim_cm_field)field;
	return SIM_CM_FIELDS;
}

const char *vb_fault_field_name(const char *message, unsigned int index)
{
	const enum sim_cm_field field = field_at(find_message(message), index);

	return field == SIM_CM_FIELDS ? NULL : sim_cm_field_info[field].name;
}

static enum sim_cm_field find_field(enum sim_cm_message message, const char *name)
{
	enum sim_cm_field field;
	unsigned int i = 0;

	do
		field = field_at(message, i++);
	while (field != SIM_CM_FIELDS && strcmp(sim_cm_field_info[field].name, name) != 0);
	return field;
}

static uint64_t widest_field(enum sim_cm_field field)
{
	const unsigned int bits = sim_cm_field_info[field].bits;

	return !bits ? UINT8_MAX : bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

uint64_t vb_fault_field_max(const char *message, const char *field)
{
	const enum sim_cm_field found = find_field(find_message(message), field);

	return found == SIM_CM_FIELDS ? 0 : widest_field(found);
}

/* Finds the message of the rule, and copies the reason. Returns 0 or an errno value. */
static int translate_message(const struct vb_fault_rule *from, struct sim_fault_rule *to)
{
	to->message = find_message(from->message);
	to->reason = from->reason;
	if (from->message && !to->message)
		return refuse_rule(
			(struct vb_why){.reason = VB_WHY_FAULT_MESSAGE, .text = from->message});
	if (from->action == VB_FAULT_REJECT && to->message != SIM_CM_REQ &&
	    to->message != SIM_CM_REP)
		return refuse_rule((struct vb_why){.reason = VB_WHY_FAULT_REJECT,
						   .text = from->message ?: "NULL"});
	return 0;
}

static int translate_field(const struct vb_fault_rule *from, enum sim_cm_message message,
			   struct sim_fault_change *to)
{
	const enum sim_cm_field field = find_field(message, from->field ?: "");
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];

	if (field == SIM_CM_FIELDS)
		return refuse_rule((struct vb_why){.reason = VB_WHY_FAULT_FIELD,
						   .text = from->field ?: "NULL"});
	if (!info->bits && from->offset >= info->bytes)
		return refuse_rule(
			(struct vb_why){VB_WHY_FAULT_FIELD_OFFSET, {from->offset, info->bytes}});
	to->message_field = field;
	return 0;
}

/* --- rules --- */

/* The widest value that a change takes. */
static uint64_t widest(const struct sim_fault_change *change)
{
	switch (change->place) {
	case SIM_FAULT_FIELD:
		return sim_field_max(change->field);
	case SIM_FAULT_MESSAGE_FIELD:
		return widest_field(change->message_field);
	case SIM_FAULT_FRAME_BYTE:
	case SIM_FAULT_BTH_BYTE:
		return UINT8_MAX;
	default:
		return UINT64_MAX;
	}
}

static int translate_change(const struct vb_fault_rule *from, enum sim_cm_message message,
			    struct sim_fault_change *to)
{
	const bool whole = from->mask == 0 && from->flip == 0;

	if ((unsigned int)from->change >= sizeof(fields) / sizeof(fields[0]))
		return refuse_rule(
			(struct vb_why){VB_WHY_FAULT_CHANGE, {(uint64_t)(int)from->change}});
	*to = (struct sim_fault_change){
		.place = place_of(from->change),
		.field = fields[from->change],
		.offset = from->offset,
		.bits = {from->value, whole ? UINT64_MAX : from->mask, from->flip},
		.right_icrc = from->right_icrc,
	};
	if (to->place == SIM_FAULT_MESSAGE_FIELD) {
		int err = translate_field(from, message, to);

		if (err)
			return err;
	}
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
	int err;

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
	err = translate_message(from, to);
	if (err)
		return err;
	return from->action == VB_FAULT_CORRUPT ? translate_change(from, to->message, &to->change)
						: 0;
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

/* A change of a message's field depends on the field, which is not known here. */
uint64_t vb_fault_change_max(enum vb_fault_change change)
{
	const struct sim_fault_change translated = {
		.place = place_of(change),
		.field = (unsigned int)change < sizeof(fields) / sizeof(fields[0]) ? fields[change]
										   : 0,
	};

	return translated.place == SIM_FAULT_MESSAGE_FIELD ? UINT64_MAX : widest(&translated);
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
