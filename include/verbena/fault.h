/* SPDX-License-Identifier: MIT */
/*
 * Faults on the simulated wire: rules that drop, corrupt, duplicate or delay chosen packets.
 *
 * Each packet is compared with a world's rules as its port sends it, retransmissions included, in
 * the order in which the rules were added. The first rule that matches and fires decides the
 * packet's fate; later rules do not see the packet.
 *
 * Every function takes NULL for the default world, may be called from any thread, and acts at once.
 * A function that returns int returns 0 or an errno value; vb_last_error() explains the error.
 */
#ifndef VERBENA_FAULT_H
#define VERBENA_FAULT_H

#include <verbena/sim.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_fault_action {
	VB_FAULT_DROP,	    /* the packet is lost on the way */
	VB_FAULT_CORRUPT,   /* one bit of the packet changes, so that its ICRC is wrong */
	VB_FAULT_DUPLICATE, /* the packet is delivered twice */
	VB_FAULT_DELAY, /* the packet arrives delay_ns late; packets behind it may overtake it */
};

/* Which packets a rule matches, and when it fires. A rule of zeros drops every packet. */
struct vb_fault_rule {
	enum vb_fault_action action;
	const char *from;   /* the name of the sending device; NULL for any */
	bool opcode_given;  /* set: only packets with this BTH opcode */
	uint8_t opcode;	    /* for example 0x04, RC SEND Only */
	bool psn_given;	    /* set: only packets with this PSN */
	uint32_t psn;	    /* 24 bits */
	uint32_t dest_qpn;  /* the QPN in the packet's BTH; 0 for any */
	uint64_t skip;	    /* how many matching packets pass before the rule may fire */
	uint64_t count;	    /* how often the rule fires; 0 for no limit */
	double probability; /* of firing on a match that is not skipped; 0 means always */
	uint64_t delay_ns;  /* for VB_FAULT_DELAY */
};

/*
 * Adds a rule behind the world's other rules. rule and its strings are copied. *id becomes the
 * number by which the other functions name the rule; id may be NULL.
 *
 * EINVAL: there is no such action or device, or the probability is not between 0 and 1.
 * ENOSPC: the world has 64 rules.
 */
int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id);

/* Removes a rule. ENOENT: no rule has this id. */
int vb_fault_remove(struct vb_sim *sim, unsigned int id);

/* Removes all rules of the world. */
void vb_fault_clear(struct vb_sim *sim);

/* Returns how often a rule has fired; 0 if no rule has this id. */
uint64_t vb_fault_hits(struct vb_sim *sim, unsigned int id);

#ifdef __cplusplus
}
#endif

#endif
