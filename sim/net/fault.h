/* SPDX-License-Identifier: MIT */
/*
 * The fault filter: rules say which packets are lost, corrupted, repeated or delayed.
 */
#ifndef SIM_NET_FAULT_H
#define SIM_NET_FAULT_H

#include "sim/net/cm_message.h"
#include "sim/net/filter.h"
#include "sim/wire/field.h"

#define SIM_FAULT_RULES_MAX 64

struct sim_device;
struct sim_engine;
struct sim_schedule;

enum sim_fault_action {
	SIM_FAULT_NONE,
	SIM_FAULT_DROP,
	SIM_FAULT_CORRUPT,
	SIM_FAULT_DUPLICATE,
	SIM_FAULT_DELAY,
	SIM_FAULT_REJECT, /* the packet is lost, and its sender gets a REJ */
};

/* What SIM_FAULT_CORRUPT changes. */
enum sim_fault_place {
	SIM_FAULT_RANDOM_BIT, /* behind the second word of the BTH, where the ICRC covers all bits */
	SIM_FAULT_FIELD,
	SIM_FAULT_FRAME_BYTE,	 /* offset counts from the first byte of the frame */
	SIM_FAULT_BTH_BYTE,	 /* offset counts from the BTH */
	SIM_FAULT_LENGTH,	 /* the packet keeps `value` bytes from the BTH on, and an ICRC */
	SIM_FAULT_MESSAGE_FIELD, /* of a message of the connection manager, which the rule names */
};

/* A change of a packet's bytes. */
struct sim_fault_change {
	enum sim_fault_place place;
	enum sim_field field;
	enum sim_cm_field message_field;
	uint32_t offset;
	struct sim_bits bits;
	bool right_icrc; /* the checksums are those of the changed packet */
};

struct sim_fault_rule {
	enum sim_fault_action action;
	const struct sim_device *from; /* NULL: any */
	bool opcode_given;
	uint8_t opcode;
	bool any_transport; /* opcode stands for its operation on every transport */
	bool psn_given;
	uint32_t psn;
	uint32_t dest_qpn;	     /* 0: any */
	enum sim_cm_message message; /* SIM_CM_NONE: any packet */
	uint64_t skip;		     /* matching packets to skip before the rule acts */
	uint64_t count;		     /* packets that the rule acts on; 0: no limit */
	uint32_t chance; /* the rule acts with a probability of chance / 2^32; 0: always */
	uint64_t delay_ns;
	uint16_t reason; /* of SIM_FAULT_REJECT, whose message is SIM_CM_REQ or SIM_CM_REP */
	struct sim_fault_change change;
};

struct sim_fault_slot {
	struct sim_fault_rule rule; /* first, so that a rule leads to its slot */
	unsigned int id;
	uint64_t matched; /* packets that fit the rule */
	uint64_t fired;	  /* packets that the rule acted on */
};

struct sim_faults {
	struct sim_filter filter;
	struct sim_fault_slot
		slots[SIM_FAULT_RULES_MAX]; /* in the order in which they were added */
	unsigned int count;
	unsigned int last_id;
	struct sim_schedule *schedule; /* asked before the rules; NULL: none */
};

/* Acts on a packet by the first rule that fits. */
sim_filter_fn sim_fault_pass;

/* The engine follows a schedule from now on (sim/net/schedule.h); NULL: none. */
void sim_fault_follow(struct sim_engine *engine, struct sim_schedule *schedule);

/* Adds a rule behind the others and gives it an id. ENOSPC if SIM_FAULT_RULES_MAX rules exist. */
int sim_fault_add(struct sim_engine *engine, const struct sim_fault_rule *rule, unsigned int *id);

/* Removes a rule; ENOENT for an unknown id. sim_fault_clear() removes all rules. */
int sim_fault_remove(struct sim_engine *engine, unsigned int id);
void sim_fault_clear(struct sim_engine *engine);

/* Counts the packets that a rule acted on; 0 for an unknown id. */
uint64_t sim_fault_hits(const struct sim_engine *engine, unsigned int id);

/* Offers a packet to the rules in order; returns the rule that acts on it, or NULL. */
const struct sim_fault_rule *sim_fault_offer(struct sim_engine *engine, const struct sim_path *path,
					     const struct sim_packet *packet);

#endif
