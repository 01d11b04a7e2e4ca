/* SPDX-License-Identifier: MIT */
#include "sim/engine.h"

#include "sim/net/net.h"
#include "sim/qp/relay.h"
#include "sim/rxe/rxe.h"

#include <errno.h>
#include <stdlib.h>

static int follow_quirks(struct sim_device *device)
{
	sim_overtake_follow(device->engine);
	return sim_rxe_give_hooks(device);
}

int sim_engine_create(const struct sim_host *host, uint64_t seed, struct sim_engine **out)
{
	struct sim_engine *engine = calloc(1, sizeof(*engine));

	if (!engine || sim_net_create(engine)) {
		free(engine);
		return ENOMEM;
	}
	engine->host = *host;
	engine->clock.ask = host->now_ns;
	engine->clock.ask_arg = host->arg;
	engine->give_hooks = follow_quirks;
	engine->random = seed;
	engine->epoch = 1;
	engine->address_epoch = 1;
	*out = engine;
	return 0;
}

void sim_engine_destroy(struct sim_engine *engine)
{
	sim_cm_stop(engine);
	while (engine->devices) {
		struct sim_device *device = engine->devices;

		engine->devices = device->next;
		sim_relay_end(device);
		sim_device_free(device);
	}
	sim_net_destroy(engine);
	sim_clock_destroy(&engine->clock);
	free(engine);
}

/*
 * All that can be sent is sent before anything is answered: so what came in one instant is
 * acknowledged together. Messages of the connection manager come last, one at a time.
 */
void sim_engine_run(struct sim_engine *engine)
{
	for (;;) {
		struct sim_qp *qp = sim_turn_take(engine, SIM_TURN_REQUESTER);

		if (qp) {
			if (sim_requester_run(qp))
				sim_turn_ask(qp, SIM_TURN_REQUESTER);
			continue;
		}
		qp = sim_turn_take(engine, SIM_TURN_RESPONDER);
		if (qp) {
			if (sim_responder_run(qp))
				sim_turn_ask(qp, SIM_TURN_RESPONDER);
		} else if (!sim_cm_run(engine)) {
			return;
		}
	}
}

bool sim_engine_owes_ack(const struct sim_engine *engine)
{
	const struct sim_qp *qp = engine->turns[SIM_TURN_RESPONDER].head;

	return qp && qp == engine->turns[SIM_TURN_RESPONDER].tail &&
	       !engine->turns[SIM_TURN_REQUESTER].head && !engine->cm_waits &&
	       sim_responder_owes_ack(qp);
}

uint64_t sim_engine_next_ns(struct sim_engine *engine)
{
	return sim_clock_next(&engine->clock);
}

void sim_engine_advance(struct sim_engine *engine, uint64_t now_ns)
{
	struct sim_clock *clock = &engine->clock;

	clock->behind = false;
	sim_engine_run(engine);
	for (;;) {
		uint64_t next_ns = sim_clock_next(clock);
		struct sim_timer *timer;

		if (next_ns > now_ns)
			break;
		sim_clock_tell(clock, next_ns);
		while ((timer = sim_clock_take(clock)))
			timer->fire(timer);
		sim_engine_run(engine);
	}
	sim_clock_tell(clock, now_ns);
}

void sim_engine_postpone(struct sim_engine *engine, uint64_t duration_ns, uint64_t now_ns)
{
	sim_clock_postpone(&engine->clock, duration_ns);
	sim_links_postpone(&engine->net->links, duration_ns);
	sim_clock_tell(&engine->clock, now_ns);
}
