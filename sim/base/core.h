/* SPDX-License-Identifier: MIT */
/*
 * The engine as its objects see it: the clock, random numbers, the owner's callbacks, the QPs that
 * wait for a turn, and the outlet that takes their packets.
 */
#ifndef SIM_BASE_CORE_H
#define SIM_BASE_CORE_H

#include "sim/base/clock.h"
#include "sim/base/host.h"

#include <verbena/why.h>

struct sim_cm_manager;
struct sim_net;
struct sim_outlet;
struct sim_path;

/* The parts of a QP that get turns: the requester sends or flushes, the responder answers. */
enum sim_turns {
	SIM_TURN_REQUESTER,
	SIM_TURN_RESPONDER,
	SIM_TURN_ROOM, /* the QP waits until the network takes packets (sim/qp/room.c) */
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
	uint64_t random;	/* state of sim_random() */
	uint64_t epoch;		/* from 1; sim_engine_changed() counts it up */
	uint64_t address_epoch; /* from 1; counts the changes of addresses and links */
	struct sim_qp_list turns[SIM_TURNS];
	struct sim_device *devices; /* in the order in which they were made */
	uint32_t device_count;
	struct sim_net *net;
	struct sim_cm_manager *cm;	 /* NULL: the engine has no connection manager */
	bool cm_waits;			 /* messages wait for sim_cm_run() */
	const struct sim_outlet *outlet; /* takes the packets of QPs */
	bool watched;			 /* the owner watches: see sim/base/note.h */
	struct vb_why why;		 /* of the last refusal; see sim/base/refuse.h */
	/* Refuses an Ethernet address that no port has and no way out leads to; NULL: such packets are
	 * lost. */
	int (*check_address)(struct sim_engine *engine, const struct sim_path *path);
	/* The quirks of a device are set: sets the hooks of the device and of its QPs by them. ENOMEM. */
	int (*give_hooks)(struct sim_device *device);
};

/* Call this after a change of anything that decides which packets a QP admits: its cached decisions
 * end. */
static inline void sim_engine_changed(struct sim_engine *engine)
{
	engine->epoch++;
}

/* Returns the next number of the pseudo-random sequence that began with *state. */
uint64_t sim_random_next(uint64_t *state);

/* Returns the next number of the sequence that begins with the engine's seed. */
uint64_t sim_random(struct sim_engine *engine);

#endif
