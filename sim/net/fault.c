/* SPDX-License-Identifier: MIT */
#include "sim/net/fault.h"

#include "sim/base/note.h"
#include "sim/net/net.h"
#include "sim/net/schedule.h"

#include <errno.h>
#include <string.h>

enum {
	ICRC_BYTES = 4,
	VCRC_BYTES = 2,
	OPERATION = 0x1f, /* the bits of an opcode behind those of its transport */
};

/* The bytes from the BTH to the ICRC, without the ICRC. */
static size_t covered_bytes(const struct sim_packet *packet)
{
	return sim_opcodes[packet->opcode].header_bytes + packet->payload_bytes +
	       sim_pad_bytes(packet->payload_bytes);
}

/* True if the packet has what the rule changes. */
static bool can_change(const struct sim_fault_change *change, const struct sim_path *path,
		       const struct sim_packet *packet)
{
	const size_t frame_bytes = sim_frame_bytes(packet, &path->route);
	size_t offset;

	switch (change->place) {
	case SIM_FAULT_FIELD:
		return sim_field_find(packet->opcode, change->field, &offset) != NULL;
	case SIM_FAULT_FRAME_BYTE:
		return change->offset < frame_bytes;
	case SIM_FAULT_BTH_BYTE:
		return change->offset < frame_bytes - sim_route_bytes(&path->route);
	case SIM_FAULT_LENGTH:
		return change->bits.value < covered_bytes(packet);
	default:
		return true;
	}
}

/* A CNP is of no transport, although its low bits are those of an operation. */
static bool has_opcode(const struct sim_fault_rule *rule, uint8_t opcode)
{
	if (!rule->opcode_given || rule->opcode == opcode)
		return true;
	return rule->any_transport && opcode != SIM_CNP &&
	       ((rule->opcode ^ opcode) & OPERATION) == 0;
}

static bool matches(const struct sim_engine *engine, const struct sim_fault_rule *rule,
		    const struct sim_path *path, const struct sim_packet *packet)
{
	return (!rule->from || rule->from == path->source->device) &&
	       has_opcode(rule, packet->opcode) && (!rule->psn_given || rule->psn == packet->psn) &&
	       (!rule->dest_qpn || rule->dest_qpn == packet->dest_qpn) &&
	       (!rule->message || rule->message == sim_message_of(engine, packet)) &&
	       (rule->action != SIM_FAULT_CORRUPT || can_change(&rule->change, path, packet));
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

const struct sim_fault_rule *sim_fault_offer(struct sim_engine *engine, const struct sim_path *path,
					     const struct sim_packet *packet)
{
	struct sim_faults *faults = &engine->net->faults;

	for (unsigned int i = 0; i < faults->count; i++) {
		struct sim_fault_slot *slot = &faults->slots[i];

		if (matches(engine, &slot->rule, path, packet) && fires(engine, slot))
			return &slot->rule;
	}
	return NULL;
}

/* Turns one bit behind the second word of the BTH, where the ICRC covers every bit. */
static void turn_any_bit(struct sim_net *net, struct sim_transit *transit, uint8_t *bth)
{
	const bool infiniband = transit->path->route.infiniband;
	const size_t end = transit->frame_bytes - (infiniband ? VCRC_BYTES : 0);
	uint64_t bit = sim_random(net->engine) % (8 * (end - (size_t)(bth - transit->frame) - 8));

	bth[8 + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void change_byte(uint8_t *at, const struct sim_fault_change *change)
{
	*at = (uint8_t)sim_bits_change(&change->bits, *at);
}

/* Cuts the packet off, and puts its ICRC, which is wrong there, behind what is left. */
static void shorten(struct sim_transit *transit, uint8_t *bth, size_t kept_bytes)
{
	memmove(bth + kept_bytes, bth + covered_bytes(transit->packet), ICRC_BYTES);
	transit->frame_bytes =
		sim_packet_resize(transit->frame, kept_bytes + ICRC_BYTES, &transit->path->route);
}

static void change_frame(struct sim_net *net, struct sim_transit *transit,
			 const struct sim_fault_change *change)
{
	uint8_t *bth = transit->frame + sim_route_bytes(&transit->path->route);
	const struct sim_field_place *place;
	size_t offset;

	switch (change->place) {
	case SIM_FAULT_FIELD:
		place = sim_field_find(transit->packet->opcode, change->field, &offset);
		sim_field_change(bth, place, offset, &change->bits);
		break;
	case SIM_FAULT_FRAME_BYTE:
		change_byte(transit->frame + change->offset, change);
		break;
	case SIM_FAULT_BTH_BYTE:
		change_byte(bth + change->offset, change);
		break;
	case SIM_FAULT_LENGTH:
		shorten(transit, bth, change->bits.value);
		break;
	case SIM_FAULT_MESSAGE_FIELD:
		sim_message_change(bth, change->message_field, change->offset, &change->bits);
		break;
	default:
		turn_any_bit(net, transit, bth);
	}
}

static void corrupt(struct sim_net *net, struct sim_transit *transit,
		    const struct sim_fault_change *change)
{
	const struct sim_route *route = &transit->path->route;

	sim_net_encode(net, transit);
	change_frame(net, transit, change);
	transit->changed = true;
	if (change->right_icrc)
		sim_packet_seal(transit->frame, transit->frame_bytes, route);
	else if (route->infiniband)
		/* The bits turned in the memory of a switch, which computes a new VCRC. */
		sim_packet_seal_link(transit->frame, transit->frame_bytes);
}

static void note(struct sim_engine *engine, const struct sim_transit *transit,
		 const struct sim_fault_rule *rule)
{
	static const char *const names[] = {
		[SIM_FAULT_NONE] = "none",	 [SIM_FAULT_DROP] = "drop",
		[SIM_FAULT_CORRUPT] = "corrupt", [SIM_FAULT_DUPLICATE] = "duplicate",
		[SIM_FAULT_DELAY] = "delay",	 [SIM_FAULT_REJECT] = "reject",
	};
	const struct sim_fault_slot *slot = (const struct sim_fault_slot *)rule;

	sim_notes_fault(engine, transit, names[rule->action], slot->id);
}

/* The schedule counts each packet, and decides before the rules. */
static const struct sim_fault_rule *choose(struct sim_net *net, const struct sim_transit *transit)
{
	const struct sim_fault_rule *rule = NULL;

	if (net->faults.schedule)
		rule = sim_schedule_offer(net->faults.schedule);
	return rule ? rule : sim_fault_offer(net->engine, transit->path, transit->packet);
}

void sim_fault_pass(struct sim_filter *filter, struct sim_transit *transit)
{
	const struct sim_fault_rule *rule = choose(filter->net, transit);
	enum sim_fault_action action = rule ? rule->action : SIM_FAULT_NONE;
	struct sim_transit second;

	if (rule && sim_watched(filter->net->engine))
		note(filter->net->engine, transit, rule);
	sim_net_check_way(transit);
	if (action == SIM_FAULT_DROP || action == SIM_FAULT_REJECT)
		transit->lost = true;
	if (action == SIM_FAULT_CORRUPT && !transit->lost)
		corrupt(filter->net, transit, &rule->change);
	if (action == SIM_FAULT_DELAY)
		transit->delay_ns += rule->delay_ns;
	if (action == SIM_FAULT_DUPLICATE)
		sim_net_encode(filter->net, transit);
	second = *transit;
	sim_filter_next(filter, transit);
	if (action == SIM_FAULT_DUPLICATE && !transit->lost) {
		second.again = true;
		sim_filter_next(filter, &second);
	}
	if (action == SIM_FAULT_REJECT)
		sim_message_reject(filter->net, transit, rule->reason);
}

static void count_rules(struct sim_faults *faults, unsigned int count)
{
	faults->count = count;
	sim_filter_activate(&faults->filter, count || faults->schedule);
}

void sim_fault_follow(struct sim_engine *engine, struct sim_schedule *schedule)
{
	struct sim_faults *faults = &engine->net->faults;

	faults->schedule = schedule;
	count_rules(faults, faults->count);
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
