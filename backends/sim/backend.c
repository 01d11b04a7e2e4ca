/* SPDX-License-Identifier: MIT */
#include "backends/sim/backend.h"

#include "backends/sim/base/say.h"
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/process.h"

#include <endian.h>

static struct ibv_device **get_device_list(int *num_devices)
{
	struct vb_sim *world = process_default();

	return world ? process_list(world, num_devices) : NULL;
}

static bool owns_context(const struct ibv_context *context)
{
	return world_owns_device(context->device);
}

static const char *get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int get_device_index(struct ibv_device *device)
{
	return (int)((struct device *)device)->engine->index;
}

static __be64 get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct device *)device)->engine->node_guid);
}

/* This process itself reads and writes memory, so that copy on write does no harm. */
static int fork_init(void)
{
	return 0;
}

static enum ibv_fork_status is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

const struct vb_backend vb_backend_sim = {
	.name = "sim",
	.description = "simulated devices in this process",
	.capabilities = VB_BACKEND_SIMULATED | VB_BACKEND_VIRTUAL_CLOCK | VB_BACKEND_TRACE,
	.last_error = said,
	.owns_device = world_owns_device,
	.owns_context = owns_context,
	.owns_list = process_owns_list,

	.get_device_list = get_device_list,
	.free_device_list = process_free_list,
	.get_device_name = get_device_name,
	.get_device_index = get_device_index,
	.get_device_guid = get_device_guid,
	.fork_init = fork_init,
	.is_fork_initialized = is_fork_initialized,

#define VERB(name) .name = verb_##name,
#include "backends/sim/verb/verbs.def"
#undef VERB
};
