/* SPDX-License-Identifier: MIT */
/*
 * Faults on the simulated wire: rules that lose, spoil, repeat or delay chosen packets.
 *
 * A packet is offered to the rules in the order in which they were added; the first that matches
 * and fires decides. Rules look at packets as they are sent, retransmissions included.
 */
#ifndef VERBENA_FAULT_H
#define VERBENA_FAULT_H

#include <verbena/sim.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_fault_action {
	VB_FAULT_DROP,	    /* lost on the way */
	VB_FAULT_CORRUPT,   /* one bit changed, so that its ICRC is wrong */
	VB_FAULT_DUPLICATE, /* delivered twice */
	VB_FAULT_DELAY, /* delivered delay_ns later than it would be: overtaken by what follows */
};

/* Which packets, how many, how likely. Zeroed fields choose every packet. */
struct vb_fault_rule {
	enum vb_fault_action action;
	const char *from; /* name of the sending device; NULL for any */
	bool opcode_given;
	uint8_t opcode; /* BTH opcode */
	bool psn_given;
	uint32_t psn;
	uint32_t dest_qpn;  /* 0 for any */
	uint64_t skip;	    /* let this many matching packets pass first */
	uint64_t count;	    /* then fire this many times; 0 for ever */
	double probability; /* of firing on a match that is not skipped; 0 means always */
	uint64_t delay_ns;  /* of VB_FAULT_DELAY */
};

/*
 * Adds a rule to a world (NULL: the default one). rule is copied; *id names the rule later.
 * EINVAL for an action, probability or device name that does not exist; ENOSPC after 64 rules.
 */
int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id);

/* Removes a rule. ENOENT where there is none of that id. */
int vb_fault_remove(struct vb_sim *sim, unsigned int id);

/* Removes all rules of a world. */
void vb_fault_clear(struct vb_sim *sim);

/* How often a rule has fired; 0 for an id that does not exist. */
uint64_t vb_fault_hits(struct vb_sim *sim, unsigned int id);

#ifdef __cplusplus
}
#endif

#endif
