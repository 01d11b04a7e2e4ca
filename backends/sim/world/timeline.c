/* SPDX-License-Identifier: MIT */
/* The events of a configuration: each is a timer of the engine, which acts on a port. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"

#include <stdlib.h>

struct timed {
	struct sim_timer timer; /* first, so that the timer leads to its event */
	struct vb_sim *world;
	struct sim_port *port;
	struct vb_sim_event event; /* without its name, which is the caller's */
};

/* The values were compared with the port's limits before the timer was armed. */
static void act(const struct timed *timed)
{
	const struct vb_sim_event *event = &timed->event;
	struct sim_port *port = timed->port;

	switch (event->kind) {
	case VB_SIM_AT_PORT_STATE:
		sim_port_set_state(port, event->up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
		break;
	case VB_SIM_AT_LID:
		sim_port_set_lid(port, event->lid);
		break;
	case VB_SIM_AT_GID:
		(void)sim_port_set_gid(port, event->index, &event->gid, sim_port_gid_type(port));
		break;
	case VB_SIM_AT_PKEY:
		(void)sim_port_set_pkey(port, event->index, event->pkey);
		break;
	case VB_SIM_AT_PORT_EVENT:
		sim_port_event(port, event->type);
		break;
	case VB_SIM_AT_KILL_DEVICE:
		sim_device_kill(port->device);
		break;
	}
}

static void fire(struct sim_timer *timer)
{
	struct timed *timed = (struct timed *)timer;

	act(timed);
	driver_changed(&timed->world->driver);
}

/* 0, or an errno with a sentence, if the port does not take the event's values. */
static int check_values(const struct vb_sim_event *event, const struct sim_port *port)
{
	if (event->kind == VB_SIM_AT_GID && event->index >= SIM_GIDS_MAX)
		return refuse_why(NULL, (struct vb_why){VB_WHY_SIM_GID_INDEX,
							{event->index, SIM_GIDS_MAX - 1}});
	if (event->kind == VB_SIM_AT_PKEY && event->index >= port->pkey_count)
		return refuse_why(NULL, (struct vb_why){VB_WHY_SIM_PKEY_INDEX,
							{event->index, port->pkey_count - 1u}});
	if (event->kind == VB_SIM_AT_PORT_EVENT && event->type != IBV_EVENT_CLIENT_REREGISTER &&
	    event->type != IBV_EVENT_SM_CHANGE)
		return refuse_why(NULL, (struct vb_why){VB_WHY_SIM_EVENT, {(uint64_t)event->type}});
	return 0;
}

/* A world that other processes have made has a time of its own already. */
static uint64_t at_ns(const struct vb_sim *world, const struct vb_sim_event *event)
{
	const uint64_t now_ns = sim_engine_now_ns(world->driver.engine);

	return event->at_ns < SIM_NEVER - now_ns ? now_ns + event->at_ns : SIM_NEVER;
}

static int plan(struct vb_sim *world, const struct vb_sim_event *event, unsigned int index)
{
	const struct device *device =
		event->device ? world_find_device(world, event->device) : NULL;
	const unsigned int port_num = event->kind == VB_SIM_AT_KILL_DEVICE ? 1 : event->port_num;
	struct timed *timed = &world->timeline[index];
	int err;

	if ((unsigned int)event->kind > VB_SIM_AT_KILL_DEVICE)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_EVENT_KIND,
							{index, (uint64_t)(int)event->kind}});
	if (!device)
		return refuse_why(
			NULL, (struct vb_why){VB_WHY_WORLD_EVENT_DEVICE,
					      {index},
					      .text = event->device ? event->device : "nobody"});
	*timed = (struct timed){.world = world, .event = *event};
	timed->port = sim_device_port(device->engine, port_num);
	if (!timed->port)
		return refuse_why(NULL, (struct vb_why){VB_WHY_PORT_NONE,
							{port_num, device->engine->port_count},
							.text = event->device});
	err = check_values(event, timed->port);
	if (err)
		return err;
	if (sim_clock_reserve(&world->driver.engine->clock))
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	sim_timer_init(&timed->timer, fire);
	sim_timer_arm(&world->driver.engine->clock, &timed->timer, at_ns(world, event));
	timed->event.device = NULL;
	return 0;
}

int world_plan(struct vb_sim *world, const struct vb_sim_config *config)
{
	int err = 0;

	if (config->event_count > VB_SIM_EVENTS_MAX)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_EVENTS,
							{config->event_count, VB_SIM_EVENTS_MAX}});
	if (!config->event_count)
		return 0;
	world->timeline = calloc(config->event_count, sizeof(*world->timeline));
	if (!world->timeline)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	for (unsigned int i = 0; i < config->event_count && !err; i++)
		err = plan(world, &config->events[i], i);
	return err;
}
