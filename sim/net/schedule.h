/* SPDX-License-Identifier: MIT */
/*
 * A schedule: what happens to the n-th packet that is sent, counted from 1. Several engines may follow one
 * schedule; they count their packets together. Its owner keeps it alive as long as they do.
 */
#ifndef SIM_NET_SCHEDULE_H
#define SIM_NET_SCHEDULE_H

#include "sim/net/fault.h"

#define SIM_SCHEDULE_MAX 16

struct sim_schedule_step {
	uint64_t packet;	    /* the number of the packet */
	struct sim_fault_slot slot; /* its rule has an action, and what the action needs */
};

struct sim_schedule {
	struct sim_schedule_step steps[SIM_SCHEDULE_MAX]; /* by the numbers of their packets */
	unsigned int count;
	unsigned int next; /* the first step whose packet has not come */
	uint64_t packets;  /* counts the packets */
	uint64_t *seen;	   /* becomes `packets` if that is more; NULL: nobody asks */
};

/* Counts a packet, and returns the rule that acts on it, or NULL. */
const struct sim_fault_rule *sim_schedule_offer(struct sim_schedule *schedule);

#endif
