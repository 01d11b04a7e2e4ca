/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: what a test does to a device: ports, addresses, quirks, limits, its death. */
#include "backends/sim/base/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>

/*
 * One act on a port. The world is held to the end of the block in which ACT declares it; then all
 * that follows from the act runs at once, as for a posted work request.
 */
struct act {
	struct hold hold;
	struct sim_port *port; /* NULL: the act is refused with EINVAL and a sentence */
};

#define ACT __attribute__((cleanup(end_act))) struct act

static struct act begin_act(const char *function, struct ibv_context *ibv, unsigned int port_num)
{
	struct act act = {.hold = world_hold_of(ibv)};

	if (!act.hold.world) {
		say(EINVAL, "%s: not a simulated device", function);
		return act;
	}
	driver_catch_up(&act.hold.world->driver);
	if (context_live(context_of(ibv)))
		act.port = sim_device_port(context_of(ibv)->device->engine, port_num);
	if (!act.port)
		say(EINVAL, "%s: no port %u, or the context is closed", function, port_num);
	return act;
}

static void end_act(const struct act *act)
{
	if (act->port) {
		driver_catch_up(&act->hold.world->driver);
		driver_changed(&act->hold.world->driver);
	}
	world_release(&act->hold);
}

int vb_sim_port_state(struct ibv_context *context, unsigned int port_num, bool up)
{
	ACT act = begin_act(__func__, context, port_num);

	if (!act.port)
		return EINVAL;
	sim_port_set_state(act.port, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
	return 0;
}

int vb_sim_inject(struct ibv_context *context, unsigned int port_num, const void *frame,
		  size_t frame_bytes)
{
	ACT act = begin_act(__func__, context, port_num);
	int err;

	if (!act.port)
		return EINVAL;
	err = sim_net_inject(act.port, frame, frame_bytes);
	/* The trace is whole when this call returns. */
	if (act.hold.world->driver.ran)
		act.hold.world->driver.ran(act.hold.world->driver.ran_arg);
	switch (err) {
	case EINVAL:
		return say(EINVAL, "vb_sim_inject: a frame of %zu bytes; the longest has %u",
			   frame_bytes, (unsigned int)SIM_FRAME_BYTES_MAX);
	case EFAULT:
		return say(EFAULT, "vb_sim_inject: the frame cannot be read");
	case ENETDOWN:
		return say(ENETDOWN, "vb_sim_inject: port %u is down", port_num);
	default:
		return 0;
	}
}

int vb_sim_set_lid(struct ibv_context *context, unsigned int port_num, uint16_t lid)
{
	ACT act = begin_act(__func__, context, port_num);

	if (!act.port)
		return EINVAL;
	sim_port_set_lid(act.port, lid);
	return 0;
}

/* type NULL: the port's usual type. */
static int set_gid(const char *function, const struct act *act, unsigned int index,
		   const union ibv_gid *gid, const uint32_t *type)
{
	uint32_t gid_type;
	int err;

	if (!act->port)
		return EINVAL;
	gid_type = type ? *type : sim_port_gid_type(act->port);
	err = sim_port_set_gid(act->port, index, gid, gid_type);
	return err ? say(err, "%s: port %u cannot have GID index %u with GID type %u", function,
			 act->port->number, index, gid_type)
		   : 0;
}

int vb_sim_set_gid(struct ibv_context *context, unsigned int port_num, unsigned int index,
		   const union ibv_gid *gid)
{
	ACT act = begin_act(__func__, context, port_num);

	return set_gid(__func__, &act, index, gid, NULL);
}

int vb_sim_set_gid_type(struct ibv_context *context, unsigned int port_num, unsigned int index,
			const union ibv_gid *gid, uint32_t gid_type)
{
	ACT act = begin_act(__func__, context, port_num);

	return set_gid(__func__, &act, index, gid, &gid_type);
}

int vb_sim_set_pkey(struct ibv_context *context, unsigned int port_num, unsigned int index,
		    uint16_t pkey)
{
	ACT act = begin_act(__func__, context, port_num);

	if (!act.port)
		return EINVAL;
	if (sim_port_set_pkey(act.port, index, pkey))
		return say(EINVAL, "vb_sim_set_pkey: port %u cannot have P_Key index %u", port_num,
			   index);
	return 0;
}

int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type)
{
	ACT act = begin_act(__func__, context, port_num);

	if (!act.port)
		return EINVAL;
	if (type != IBV_EVENT_CLIENT_REREGISTER && type != IBV_EVENT_SM_CHANGE)
		return say(EINVAL,
			   "vb_sim_port_event: event %d is not CLIENT_REREGISTER or SM_CHANGE",
			   (int)type);
	sim_port_event(act.port, type);
	return 0;
}

int vb_sim_kill_device(struct ibv_context *context)
{
	ACT act = begin_act(__func__, context, 1);

	if (!act.port)
		return EINVAL;
	sim_device_kill(act.port->device);
	return 0;
}

/* Returns NULL, with a sentence, if there is no such quirk or the act is refused. */
static const bool *find_quirk(const char *function, const struct act *act, const char *name)
{
	const bool *quirk = act->port ? sim_quirk_find(&act->port->device->quirks, name) : NULL;

	if (act->port && !quirk)
		say(EINVAL, "%s: no quirk is called \"%s\"", function, name);
	return quirk;
}

int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on)
{
	ACT act = begin_act(__func__, context, 1);

	if (!find_quirk(__func__, &act, name))
		return EINVAL;
	return sim_device_set_quirk(act.port->device, name, on);
}

int vb_sim_quirk(struct ibv_context *context, const char *name, bool *on)
{
	ACT act = begin_act(__func__, context, 1);
	const bool *quirk = find_quirk(__func__, &act, name);

	if (!quirk)
		return EINVAL;
	*on = *quirk;
	return 0;
}

int vb_sim_lower_limit(struct ibv_context *context, const char *name, int value)
{
	ACT act = begin_act(__func__, context, 1);

	if (!act.port)
		return EINVAL;
	if (sim_device_lower_limit(act.port->device, name, value))
		return say(EINVAL,
			   "vb_sim_lower_limit: there is no limit \"%s\", or %d is negative or "
			   "above it",
			   name, value);
	return 0;
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
