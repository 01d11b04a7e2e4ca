/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: what a test does to a device: ports, addresses, quirks, limits, its death. */
#include "backends/sim/base/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

/* Acts on a port. Returns 0 or an errno. arg is the caller's. */
typedef int act_fn(struct sim_port *port, void *arg);

/*
 * Calls act under the world's lock, and runs what follows from it at once, as for a posted work
 * request. EINVAL if there is no such device or port, or the context is closed.
 */
static int act_on(const char *function, struct ibv_context *ibv, unsigned int port_num, act_fn *act,
		  void *arg)
{
	HOLD hold = world_hold_of(ibv);
	struct sim_port *port = NULL;
	int err;

	if (!hold.world)
		return say(EINVAL, "%s: not a simulated device", function);
	driver_catch_up(&hold.world->driver);
	if (context_live(context_of(ibv)))
		port = sim_device_port(context_of(ibv)->device->engine, port_num);
	if (!port)
		return say(EINVAL, "%s: no port %u, or the context is closed", function, port_num);
	err = act(port, arg);
	driver_catch_up(&hold.world->driver);
	driver_changed(&hold.world->driver);
	return err;
}

static int set_state(struct sim_port *port, void *arg)
{
	sim_port_set_state(port, *(bool *)arg ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
	return 0;
}

int vb_sim_port_state(struct ibv_context *context, unsigned int port_num, bool up)
{
	return act_on(__func__, context, port_num, set_state, &up);
}

static int set_lid(struct sim_port *port, void *arg)
{
	sim_port_set_lid(port, *(uint16_t *)arg);
	return 0;
}

int vb_sim_set_lid(struct ibv_context *context, unsigned int port_num, uint16_t lid)
{
	return act_on(__func__, context, port_num, set_lid, &lid);
}

struct gid_entry {
	const char *function;
	const union ibv_gid *gid;
	unsigned int index;
	bool default_type; /* the port's usual type; else type */
	uint32_t type;
};

static int set_gid(struct sim_port *port, void *arg)
{
	const struct gid_entry *entry = arg;
	const uint32_t type = entry->default_type ? sim_port_gid_type(port) : entry->type;
	int err = sim_port_set_gid(port, entry->index, entry->gid, type);

	return err ? say(err, "%s: port %u cannot have GID index %u with GID type %u",
			 entry->function, port->number, entry->index, type)
		   : 0;
}

int vb_sim_set_gid(struct ibv_context *context, unsigned int port_num, unsigned int index,
		   const union ibv_gid *gid)
{
	struct gid_entry entry = {
		.function = __func__, .gid = gid, .index = index, .default_type = true};

	return act_on(__func__, context, port_num, set_gid, &entry);
}

int vb_sim_set_gid_type(struct ibv_context *context, unsigned int port_num, unsigned int index,
			const union ibv_gid *gid, uint32_t gid_type)
{
	struct gid_entry entry = {
		.function = __func__, .gid = gid, .index = index, .type = gid_type};

	return act_on(__func__, context, port_num, set_gid, &entry);
}

struct pkey_entry {
	unsigned int index;
	uint16_t pkey;
};

static int set_pkey(struct sim_port *port, void *arg)
{
	const struct pkey_entry *entry = arg;
	int err = sim_port_set_pkey(port, entry->index, entry->pkey);

	return err ? say(err, "vb_sim_set_pkey: port %u cannot have P_Key index %u", port->number,
			 entry->index)
		   : 0;
}

int vb_sim_set_pkey(struct ibv_context *context, unsigned int port_num, unsigned int index,
		    uint16_t pkey)
{
	struct pkey_entry entry = {.index = index, .pkey = pkey};

	return act_on(__func__, context, port_num, set_pkey, &entry);
}

static int raise_event(struct sim_port *port, void *arg)
{
	const enum ibv_event_type type = *(enum ibv_event_type *)arg;

	if (type != IBV_EVENT_CLIENT_REREGISTER && type != IBV_EVENT_SM_CHANGE)
		return say(EINVAL,
			   "vb_sim_port_event: event %d is not CLIENT_REREGISTER or SM_CHANGE",
			   (int)type);
	sim_port_event(port, type);
	return 0;
}

int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type)
{
	return act_on(__func__, context, port_num, raise_event, &type);
}

static int kill_device(struct sim_port *port, void *arg)
{
	(void)arg;
	sim_device_kill(port->device);
	return 0;
}

int vb_sim_kill_device(struct ibv_context *context)
{
	return act_on(__func__, context, 1, kill_device, NULL);
}

struct quirk_act {
	const char *function;
	const char *name;
	bool *answer; /* where the quirk's value goes; NULL: the quirk becomes on */
	bool on;
};

static int act_on_quirk(struct sim_port *port, void *arg)
{
	const struct quirk_act *act = arg;
	const bool *quirk = sim_quirk_find(&port->device->quirks, act->name);

	if (!quirk)
		return say(EINVAL, "%s: no quirk is called \"%s\"", act->function, act->name);
	if (!act->answer)
		return sim_device_set_quirk(port->device, act->name, act->on);
	*act->answer = *quirk;
	return 0;
}

int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on)
{
	struct quirk_act act = {.function = __func__, .name = name, .on = on};

	return act_on(__func__, context, 1, act_on_quirk, &act);
}

int vb_sim_quirk(struct ibv_context *context, const char *name, bool *on)
{
	struct quirk_act act = {.function = __func__, .name = name, .answer = on};

	return act_on(__func__, context, 1, act_on_quirk, &act);
}

struct limit_act {
	const char *name;
	int value;
};

static int lower_limit(struct sim_port *port, void *arg)
{
	const struct limit_act *act = arg;
	int err = sim_device_lower_limit(port->device, act->name, act->value);

	return err ? say(err,
			 "vb_sim_lower_limit: there is no limit \"%s\", or %d is negative or above "
			 "it",
			 act->name, act->value)
		   : 0;
}

int vb_sim_lower_limit(struct ibv_context *context, const char *name, int value)
{
	struct limit_act act = {.name = name, .value = value};

	return act_on(__func__, context, 1, lower_limit, &act);
}

const char *vb_sim_quirk_name(unsigned int index, const char **about)
{
	const struct sim_quirk_info *info = sim_quirk_info;

	while (info->name && index--)
		info++;
	if (about)
		*about = info->about;
	return info->name;
}

const char *vb_sim_profile_name(unsigned int index)
{
	const struct sim_profile *profile = sim_profile_at(index);

	return profile ? profile->name : NULL;
}
