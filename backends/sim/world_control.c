/* SPDX-License-Identifier: MIT */
/* What a test does to the simulated world: ports, addresses, the end of a device. */
#include "backend.h"
#include "say.h"
#include "world.h"

#include <errno.h>

/* The lock, and the engine's port behind a context; NULL where there is none. */
static struct sim_port *enter(struct ibv_context *ibv, unsigned int port_num, bool *locked)
{
	struct context *context = context_of(ibv);

	*locked = world_lock(context->world);
	if (!context_live(context))
		return NULL;
	driver_catch_up(context->world);
	return sim_device_port(context->device->engine, port_num);
}

/* What changed is acted on at once, as for a posted work request. */
static void leave(struct ibv_context *ibv, bool locked)
{
	struct vb_sim *world = context_of(ibv)->world;

	driver_catch_up(world);
	driver_changed(world);
	world_unlock(world, locked);
}

static int check(struct ibv_context *ibv, const char *function)
{
	return vb_sim_of(ibv) ? 0 : say(EINVAL, "%s: not a simulated device", function);
}

static int no_port(const char *function, unsigned int port_num)
{
	return say(EINVAL, "%s: no port %u, or the context is closed", function, port_num);
}

int vb_sim_port_state(struct ibv_context *context, unsigned int port_num, bool up)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	port = enter(context, port_num, &locked);
	if (port)
		sim_port_set_state(port, up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
	leave(context, locked);
	return port ? 0 : no_port(__func__, port_num);
}

int vb_sim_set_lid(struct ibv_context *context, unsigned int port_num, uint16_t lid)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	port = enter(context, port_num, &locked);
	if (port)
		sim_port_set_lid(port, lid);
	leave(context, locked);
	return port ? 0 : no_port(__func__, port_num);
}

int vb_sim_set_gid(struct ibv_context *context, unsigned int port_num, unsigned int index,
		   const union ibv_gid *gid)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	port = enter(context, port_num, &locked);
	if (port)
		err = sim_port_set_gid(port, index, gid);
	leave(context, locked);
	if (!port)
		return no_port(__func__, port_num);
	return err ? say(err, "%s: port %u: index %u cannot be", __func__, port_num, index) : 0;
}

int vb_sim_set_pkey(struct ibv_context *context, unsigned int port_num, unsigned int index,
		    uint16_t pkey)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	port = enter(context, port_num, &locked);
	if (port)
		err = sim_port_set_pkey(port, index, pkey);
	leave(context, locked);
	if (!port)
		return no_port(__func__, port_num);
	return err ? say(err, "%s: port %u: index %u cannot be", __func__, port_num, index) : 0;
}

int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	if (type != IBV_EVENT_CLIENT_REREGISTER && type != IBV_EVENT_SM_CHANGE)
		return say(EINVAL, "%s: event %d has a cause, or is not of a port", __func__,
			   (int)type);
	port = enter(context, port_num, &locked);
	if (port)
		sim_port_event(port, type);
	leave(context, locked);
	return port ? 0 : no_port(__func__, port_num);
}

int vb_sim_kill_device(struct ibv_context *context)
{
	int err = check(context, __func__);
	struct sim_port *port;
	bool locked;

	if (err)
		return err;
	port = enter(context, 1, &locked);
	if (port)
		sim_device_kill(port->device);
	leave(context, locked);
	return port ? 0 : say(EINVAL, "%s: the context is closed", __func__);
}

/* --- quirks --- */

/* The place of a quirk, the lock being held; NULL for an unknown name or a closed context. */
static bool *find_quirk(struct ibv_context *ibv, const char *name)
{
	struct context *context = context_of(ibv);

	if (!context_live(context))
		return NULL;
	return sim_quirk_find(&context->device->engine->quirks, name);
}

int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on)
{
	int err = check(context, __func__);
	bool locked, *quirk;

	if (err)
		return err;
	locked = world_lock(context_of(context)->world);
	quirk = find_quirk(context, name);
	if (quirk)
		*quirk = on;
	world_unlock(context_of(context)->world, locked);
	return quirk ? 0 : say(EINVAL, "%s: no quirk is called \"%s\"", __func__, name);
}

int vb_sim_quirk(struct ibv_context *context, const char *name, bool *on)
{
	int err = check(context, __func__);
	bool locked, *quirk;

	if (err)
		return err;
	locked = world_lock(context_of(context)->world);
	quirk = find_quirk(context, name);
	if (quirk)
		*on = *quirk;
	world_unlock(context_of(context)->world, locked);
	return quirk ? 0 : say(EINVAL, "%s: no quirk is called \"%s\"", __func__, name);
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
