/* SPDX-License-Identifier: MIT */
/*
 * What all objects of one engine share: time, chance, the owner, and where packets go.
 */
#ifndef SIM_BASE_CORE_H
#define SIM_BASE_CORE_H

#include "sim/base/clock.h"
#include "sim/base/host.h"

struct sim_net;
struct sim_outlet;

/* The parts of a QP that get turns: the requester sends or flushes, the responder answers. */
enum sim_turns {
	SIM_TURN_REQUESTER,
	SIM_TURN_RESPONDER,
	SIM_TURNS,
};

/* QPs in the order in which they asked for a turn. */
struct sim_qp_list {
	struct sim_qp *head;
	struct sim_qp *tail;
};

struct sim_engine {
	struct sim_clock clock;
	struct sim_host host;
	uint64_t random; /* state of sim_random() */
	uint64_t epoch;	 /* changes with all that decides which QP admits which packet; from 1 */
	uint64_t address_epoch; /* changes with the addresses of ports; from 1 */
	struct sim_qp_list turns[SIM_TURNS];
	struct sim_device *devices; /* in the order in which they were made */
	uint32_t device_count;
	struct sim_net *net;
	const struct sim_outlet *outlet; /* how QPs reach net */
	/* Gives a device, and its QPs, the hooks that its quirks need. ENOMEM. */
	int (*give_hooks)(struct sim_device *device);
};

/* Notes that something has changed which decides which QP admits which packets. */
static inline void sim_engine_changed(struct sim_engine *engine)
{
	engine->epoch++;
}

/* The next number of the engine's pseudo-random sequence. */
uint64_t sim_random(struct sim_engine *engine);

#endif
