/* SPDX-License-Identifier: MIT */
/* One world's beginning and end. */
#include "backends/sim/world/world.h"

#include "backends/sim/object/refuse.h"
#include "backends/sim/object/users.h"
#include "src/guard/guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <verbena/fault.h>

static uint64_t choose_seed(const struct vb_sim_config *config)
{
	uint64_t seed = 1;

	if (config->seed_given)
		return config->seed;
	if (config->clock == VB_SIM_CLOCK_REAL)
		(void)!getrandom(&seed, sizeof(seed), 0);
	return seed;
}

/*
 * Decides whether the devices of a world have QPNs, keys, MACs and default GIDs of their own: then
 * a program cannot take the devices of another process for its own, and connect to itself. They have
 * them where nothing asks for a run that can be repeated: on the real clock, without a seed.
 */
static uint64_t choose_identity(const struct vb_sim_config *config)
{
	uint64_t identity = 0;

	if (config->clock == VB_SIM_CLOCK_REAL && !config->seed_given)
		(void)!getrandom(&identity, sizeof(identity), 0);
	return identity;
}

/*
 * The child's GIDs stay: parent and child share an adapter, which has one set of addresses. With the wire
 * shared, the devices take new blocks of numbers.
 */
void world_renumber(struct vb_sim *world)
{
	if (!world->identity)
		return;
	if (!world->shared)
		(void)!getrandom(&world->identity, sizeof(world->identity), 0);
	for (unsigned int i = 0; i < world->device_count; i++)
		sim_device_renumber(world->devices[i].engine, world->identity);
}

static int fill(struct vb_sim *world, const struct vb_sim_config *config)
{
	int err = world_open_wires(world, config), trace_err;
	const char *trace = config->trace;
	struct sim_host host;

	if (err)
		return err;
	host = world_host(world);
	if (sim_engine_create(&host, choose_seed(config), &world->driver.engine))
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	world->trace_bytes_max = config->trace_bytes_max;
	world->trace_packets_max = config->trace_packets_max;
	world_follow(world, &trace);
	world_connect_wires(world);
	err = world_furnish(world, config);
	for (unsigned int i = 0; i < config->fault_count && !err; i++)
		err = world_add_fault(world, &config->faults[i], NULL);
	if (!err)
		err = world_plan(world, config);
	if (!err && config->trace)
		return world_trace_open(world, trace);
	/* What exploration asks for must not change what the explored test does. */
	if (!err && trace && (trace_err = world_trace_open(world, trace)))
		fprintf(stderr, "verbena: trace %s: %s; the program continues without a trace\n",
			trace, strerror(trace_err));
	return err;
}

struct vb_sim *world_create(const struct vb_sim_config *config)
{
	static const struct vb_sim_config defaults;
	struct vb_sim *world;
	int err;

	if (!config)
		config = &defaults;
	if (config->clock != VB_SIM_CLOCK_VIRTUAL && config->clock != VB_SIM_CLOCK_REAL)
		return null_errno(refuse_why(
			NULL, (struct vb_why){VB_WHY_WORLD_CLOCK, {(uint64_t)(int)config->clock}}));
	world = calloc(1, sizeof(*world));
	if (!world)
		return null_errno(refuse_plainly(NULL, VB_WHY_NO_MEMORY));
	guard_install();
	driver_init(&world->driver, config->clock == VB_SIM_CLOCK_REAL);
	store_init(&world->store);
	world->identity = choose_identity(config);
	err = fill(world, config);
	if (err) {
		world_destroy(world);
		errno = err;
		return NULL;
	}
	return world;
}

void world_destroy(struct vb_sim *world)
{
	if (world->cm.end)
		world->cm.end(world->cm.arg);
	world_trace_close(world);
	world_close_wires(world);
	if (world->driver.engine)
		sim_engine_destroy(world->driver.engine);
	driver_end(&world->driver);
	store_end(&world->store);
	free(world->inherited_trace);
	free(world->timeline);
	free(world->devices);
	free(world);
}

/* The connection manager opens a device for good, as librdmacm does: the program holds no more of it than
 * the objects that it has made in it. */
static bool is_held(const struct context *context)
{
	for (enum kind kind = 0; kind < KIND_CONTEXT; kind++)
		if (context->handles[kind].live)
			return true;
	return !context->of_cm;
}

bool world_in_use(struct vb_sim *world)
{
	HOLD hold = world_hold(world);
	const struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (is_held(context))
			return true;
	return world->cm.live > 0;
}

void world_name_open(struct vb_sim *world, char *text, size_t size_bytes)
{
	HOLD hold = world_hold(world);
	FILE *out = fmemopen(text, size_bytes, "w");
	const struct context *context;
	const char *between = "";
	uint32_t at = 0;

	text[0] = '\0';
	if (!out)
		return;
	while ((context = handles_next(&world->store.contexts, &at))) {
		uint32_t counts[KINDS];
		char objects[128];

		for (enum kind kind = 0; kind < KINDS; kind++)
			counts[kind] = context->handles[kind].live;
		kinds_text(counts, objects, sizeof(objects));
		fprintf(out, "%s%s%s%s%s", between, context->device->ibv.name,
			objects[0] ? " (" : "", objects, objects[0] ? ")" : "");
		between = ", ";
	}
	fclose(out);
}

struct vb_sim *vb_sim_of(struct ibv_context *context)
{
	return context && world_owns_device(context->device) ? context_of(context)->world : NULL;
}

int say_refused(struct vb_sim *world, const char *verb, int error)
{
	struct vb_why why;

	if (!sim_take_refusal(world->driver.engine, error, &why))
		why = (struct vb_why){VB_WHY_ERRNO_ONLY, {(uint64_t)error}, .text = "sim"};
	why.verb = verb;
	return say_why(error, &why);
}

struct hold world_hold_of(struct ibv_context *context)
{
	struct vb_sim *world = vb_sim_of(context);

	return world ? world_hold(world) : (struct hold){.world = NULL};
}
