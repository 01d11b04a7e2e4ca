/* SPDX-License-Identifier: MIT */
#include "sim/world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int sim_world_create(const struct sim_host *host, uint64_t seed, struct sim_world **out)
{
	struct sim_world *world = calloc(1, sizeof(*world));

	if (!world)
		return ENOMEM;
	world->host = *host;
	world->random = seed;
	world->epoch = 1;
	sim_fabric_init(world);
	*out = world;
	return 0;
}

void sim_world_destroy(struct sim_world *world)
{
	while (world->devices) {
		struct sim_device *device = world->devices;

		assert(device->qps.live == 0 && device->regions.live == 0);
		world->devices = device->next;
		sim_table_destroy(&device->qps);
		sim_table_destroy(&device->regions);
		sim_table_destroy(&device->srqs);
		free(device);
	}
	sim_fabric_destroy(world);
	sim_clock_destroy(&world->clock);
	free(world);
}

static struct sim_qp *take_requester(struct sim_world *world)
{
	struct sim_qp *qp = world->requesters.head;

	if (qp) {
		world->requesters.head = qp->next_requester;
		qp->requester_listed = false;
	}
	return qp;
}

static struct sim_qp *take_responder(struct sim_world *world)
{
	struct sim_qp *qp = world->responders.head;

	if (qp) {
		world->responders.head = qp->next_responder;
		qp->responder_listed = false;
	}
	return qp;
}

/*
 * All that can be sent is sent before anything is answered: so what came in one instant is
 * acknowledged together.
 */
void sim_world_run(struct sim_world *world)
{
	for (;;) {
		struct sim_qp *qp = take_requester(world);

		if (qp) {
			if (sim_requester_run(qp))
				sim_qp_wake_requester(qp);
			continue;
		}
		qp = take_responder(world);
		if (!qp)
			return;
		if (sim_responder_run(qp))
			sim_qp_wake_responder(qp);
	}
}

uint64_t sim_world_next_ns(struct sim_world *world)
{
	return sim_clock_next(&world->clock);
}

void sim_world_advance(struct sim_world *world, uint64_t now_ns)
{
	struct sim_clock *clock = &world->clock;

	sim_world_run(world);
	for (;;) {
		uint64_t next_ns = sim_clock_next(clock);
		struct sim_timer *timer;

		if (next_ns > now_ns)
			break;
		if (next_ns > clock->now_ns)
			clock->now_ns = next_ns;
		while ((timer = sim_clock_take(clock)))
			timer->fire(timer);
		sim_world_run(world);
	}
	if (now_ns > clock->now_ns)
		clock->now_ns = now_ns;
}

/* splitmix64: one word of state, and every seed is a good one. */
uint64_t sim_world_random(struct sim_world *world)
{
	uint64_t z = world->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
