/* SPDX-License-Identifier: MIT */
#include "backends/sim/backend.h"

#include "backends/sim/base/say.h"
#include "backends/sim/cm/cm.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/process.h"

#include <endian.h>

struct ibv_device **verb_get_device_list(int *num_devices)
{
	struct vb_sim *world = process_default();

	return world ? process_list(world, num_devices) : NULL;
}

static bool owns_context(const struct ibv_context *context)
{
	return world_owns_device(context->device);
}

static uint64_t now_ns(const struct ibv_context *context)
{
	const struct device *device = (const struct device *)context->device;
	HOLD hold = world_hold(device->world);

	return sim_engine_now_ns(hold.world->driver.engine);
}

const char *verb_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int verb_get_device_index(struct ibv_device *device)
{
	return (int)((struct device *)device)->engine->index;
}

__be64 verb_get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct device *)device)->engine->node_guid);
}

/* This process itself reads and writes memory, so that copy on write does no harm. */
int verb_fork_init(void)
{
	return 0;
}

enum ibv_fork_status verb_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* The initialisers after the table replace those of the table. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

const struct vb_backend vb_backend_sim = {
	.name = "sim",
	.description = "simulated devices in this process",
	.capabilities = VB_BACKEND_SIMULATED | VB_BACKEND_VIRTUAL_CLOCK | VB_BACKEND_TRACE,
	.last_why = said,
	.listen = say_listen,
	.watch = process_watch,
	.now_ns = now_ns,
	.look_qp = verb_look_qp,
	.look_port = verb_look_port,
	.look_peer = verb_look_peer,
	.completion_why = verb_completion_why,
	.owns_device = world_owns_device,
	.owns_context = owns_context,
	.owns_list = process_owns_list,
	.cm = &cm_backend,

#define VB_VERB(result, name, parameters, arguments, convention, by, object) .name = verb_##name,
#include <verbena/verbs.def>
	.free_device_list = process_free_list,

	/* The simulated devices do not have these verbs. */
	.reg_dmabuf_mr = NULL,
	.post_srq_ops = NULL,
	.query_qp_data_in_order = NULL,
	.modify_qp_rate_limit = NULL,
	.set_ece = NULL,
	.query_ece = NULL,
	.create_wq = NULL,
	.modify_wq = NULL,
	.destroy_wq = NULL,
	.create_rwq_ind_table = NULL,
	.destroy_rwq_ind_table = NULL,
	.create_flow = NULL,
	.destroy_flow = NULL,
	.create_flow_action_esp = NULL,
	.modify_flow_action_esp = NULL,
	.destroy_flow_action = NULL,
	.create_counters = NULL,
	.destroy_counters = NULL,
	.attach_counters_point_flow = NULL,
	.read_counters = NULL,
};

#pragma GCC diagnostic pop
