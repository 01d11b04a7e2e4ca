/* SPDX-License-Identifier: MIT */
/* <verbena/sim.h>: what a test does to a device: ports, addresses, quirks, limits, its death. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"
#include "sim/net/arrival.h"

#include <errno.h>

/*
 * One act on a port. The world is held to the end of the block in which ACT declares it; then all
 * that follows from the act runs at once, as for a posted work request.
 */
struct act {
	struct hold hold;
	struct sim_port *port; /* NULL: the act is refused with EINVAL and a reason */
};

#define ACT __attribute__((cleanup(end_act))) struct act

/* Returns NULL with a reason if the context is closed or the device has no such port. */
static struct sim_port *find_port(const char *function, const struct context *context,
				  unsigned int port_num)
{
	struct sim_port *port;

	if (!context_live(context)) {
		refuse_plainly(function, VB_WHY_CONTEXT_CLOSED);
		return NULL;
	}
	port = sim_device_port(context->device->engine, port_num);
	if (!port)
		refuse_why(function,
			   (struct vb_why){VB_WHY_PORT_NONE,
					   {port_num, context->device->engine->port_count},
					   .text = context->device->ibv.name});
	return port;
}

static struct act begin_act(const char *function, struct ibv_context *ibv, unsigned int port_num)
{
	struct act act = {.hold = world_hold_of(ibv)};

	if (!act.hold.world) {
		refuse_plainly(function, VB_WHY_SIM_FOREIGN);
		return act;
	}
	driver_catch_up(&act.hold.world->driver);
	act.port = find_port(function, context_of(ibv), port_num);
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
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_FRAME_LENGTH,
							    {frame_bytes, SIM_FRAME_BYTES_MAX}});
	case EFAULT:
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_FRAME_FAULT,
							    {frame_bytes, (uintptr_t)frame}});
	case ENETDOWN:
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_PORT_DOWN,
							    {port_num},
							    .text = act.port->device->name});
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
	if (!err)
		return 0;
	if (index >= SIM_GIDS_MAX)
		return refuse_why(function,
				  (struct vb_why){VB_WHY_SIM_GID_INDEX, {index, SIM_GIDS_MAX - 1}});
	return refuse_why(function, (struct vb_why){VB_WHY_SIM_GID_TYPE,
						    {act->port->number, gid_type},
						    .text = act->port->device->name});
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
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_PKEY_INDEX,
							    {index, SIM_PKEYS_MAX - 1}});
	return 0;
}

int vb_sim_port_event(struct ibv_context *context, unsigned int port_num, enum ibv_event_type type)
{
	ACT act = begin_act(__func__, context, port_num);

	if (!act.port)
		return EINVAL;
	if (type != IBV_EVENT_CLIENT_REREGISTER && type != IBV_EVENT_SM_CHANGE)
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_EVENT, {(uint64_t)type}});
	sim_port_event(act.port, type);
	return 0;
}

/* The caller holds the world. */
static int raise_for(struct vb_sim *world, enum kind kind, const struct ibv_async_event *event)
{
	static const char *const names[] = {[KIND_QP] = "QP", [KIND_CQ] = "CQ", [KIND_SRQ] = "SRQ"};
	void *object = event->element.cq; /* or qp, or srq: a union of pointers */
	const struct sim_event raised = {.type = event->event_type, .element = object};
	struct context *context = object_context(object);
	struct qp *qp = object;

	if (!context_live(context) || !object_live(kind, object))
		return refuse_name("vb_sim_object_event", VB_WHY_SIM_EVENT_GONE, names[kind]);
	driver_catch_up(&world->driver);
	if ((event->event_type == IBV_EVENT_QP_FATAL || event->event_type == IBV_EVENT_QP_REQ_ERR ||
	     event->event_type == IBV_EVENT_QP_ACCESS_ERR) &&
	    sim_qp_state(qp->engine) != IBV_QPS_RESET)
		sim_qp_fail(qp->engine, SIM_BY_EVENT);
	world->driver.engine->host.async_event(world, context->device->engine, &raised);
	driver_catch_up(&world->driver);
	driver_changed(&world->driver);
	return 0;
}

int vb_sim_object_event(const struct ibv_async_event *event)
{
	const enum kind kind = event_kind(event->event_type);
	struct hold hold;
	int err;

	if (kind == KINDS)
		return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_OBJECT_EVENT,
							    {(uint64_t)event->event_type}});
	hold = world_hold_of(*(struct ibv_context **)event->element.cq);
	if (!hold.world)
		return refuse_plainly(__func__, VB_WHY_SIM_FOREIGN);
	err = raise_for(hold.world, kind, event);
	world_release(&hold);
	return err;
}

int vb_sim_kill_device(struct ibv_context *context)
{
	ACT act = begin_act(__func__, context, 1);

	if (!act.port)
		return EINVAL;
	sim_device_kill(act.port->device);
	return 0;
}

/* Returns NULL with a reason if there is no such quirk or the act is refused. */
static const bool *find_quirk(const char *function, const struct act *act, const char *name)
{
	const bool *quirk = act->port ? sim_quirk_find(&act->port->device->quirks, name) : NULL;

	if (act->port && !quirk)
		refuse_name(function, VB_WHY_SIM_QUIRK, name);
	return quirk;
}

int vb_sim_set_quirk(struct ibv_context *context, const char *name, bool on)
{
	ACT act = begin_act(__func__, context, 1);

	if (!find_quirk(__func__, &act, name))
		return EINVAL;
	/* The quirk is known: only memory for its state can be missing. */
	return sim_device_set_quirk(act.port->device, name, on)
		       ? refuse_plainly(__func__, VB_WHY_NO_MEMORY)
		       : 0;
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
	struct ibv_device_attr limits;
	const int *limit;

	if (!act.port)
		return EINVAL;
	if (!sim_device_lower_limit(act.port->device, name, value))
		return 0;
	limits = act.port->device->profile->limits;
	limit = sim_limit_find(&limits, name);
	if (!limit)
		return refuse_name(__func__, VB_WHY_SIM_LIMIT_NAME, name);
	return refuse_why(__func__, (struct vb_why){VB_WHY_SIM_LIMIT_VALUE,
						    {(uint64_t)value, (uint64_t)*limit},
						    .text = name});
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
