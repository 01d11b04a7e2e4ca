/* SPDX-License-Identifier: MIT */
/* A connection manager that is attached to the test's shared world, as a process has it. */
#ifndef TEST_UNIT_ATTACHED_CM_H
#define TEST_UNIT_ATTACHED_CM_H

#include "sim/cm/private.h"
#include "test/support/engine.h"
#include "test/unit/shared_world.h"

#include "backends/sim/wire/shared.h"

/* Makes an engine with the devices of the world, its wire and its connection manager. Returns the wire. */
static inline struct wire *attach_cm_on(struct engine *engine, struct wires *wires,
					const struct sim_cm_owner *owner, bool infiniband)
{
	const struct shared_config shared = {world_name, "devices\n"};
	struct engine_config config = {.unconnected = true,
				       .quiet = true,
				       .claim = shared_claim,
				       .infiniband = infiniband};
	struct wire *wire;

	TEST_ASSERT_EQUAL_INT(0, shared_open(&shared, &wire));
	config.claim_arg = wire;
	engine_open(engine, &config);
	for (unsigned int i = 0; i < 2; i++)
		shared_join(wire, engine->sides[i].device);
	wires_add(wires, engine->sim, wire);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_start(engine->sim, owner));
	return wire;
}

/* The same, on RoCE. */
static inline struct wire *attach_cm(struct engine *engine, struct wires *wires,
				     const struct sim_cm_owner *owner)
{
	return attach_cm_on(engine, wires, owner, false);
}

/* Ends all communications, and leaves the world. */
static inline void detach_cm(struct engine *engine, struct wires *wires)
{
	uint32_t cursor = 0;
	struct sim_cm *cm;

	while ((cm = sim_table_next(&engine->sim->cm->table, &cursor)))
		sim_cm_destroy(cm);
	sim_cm_stop(engine->sim);
	wires_close(wires);
	engine_close(engine);
}

/* Handles arrivals, and sends what they cause. */
static inline void run_cm(struct engine *engine, struct wires *wires)
{
	wires_receive(wires);
	sim_engine_run(engine->sim);
	wires_flush(wires);
}

#endif
