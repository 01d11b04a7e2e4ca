/* SPDX-License-Identifier: MIT */
#include "backends/sim/backend.h"

#include "backends/sim/object/channel.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/verb/data.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <endian.h>

static struct ibv_device **get_device_list(int *num_devices)
{
	struct vb_sim *world = world_default();

	return world ? world_list(world, num_devices) : NULL;
}

static bool owns_device(const struct ibv_device *device)
{
	return device->_ops._dummy1 == world_device_mark;
}

static bool owns_context(const struct ibv_context *context)
{
	return owns_device(context->device);
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

/* Memory is touched by this process itself: copy on write does no harm. */
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
	.owns_device = owns_device,
	.owns_context = owns_context,
	.owns_list = world_owns_list,

	.get_device_list = get_device_list,
	.free_device_list = world_free_list,
	.get_device_name = get_device_name,
	.get_device_index = get_device_index,
	.get_device_guid = get_device_guid,
	.open_device = control_open_device,
	.close_device = control_close_device,
	.import_device = control_import_device,
	.query_device = query_device,
	.query_device_ex = query_device_ex,
	.query_port = query_port,
	.query_gid = query_gid,
	.query_gid_ex = query_gid_ex,
	.query_gid_table = query_gid_table,
	.query_pkey = query_pkey,
	.get_pkey_index = query_pkey_index,
	.query_rt_values_ex = query_rt_values,
	.get_async_event = channel_get_async_event,
	.ack_async_event = channel_ack_async_event,
	.resolve_eth_l2_from_gid = query_eth_l2,
	.fork_init = fork_init,
	.is_fork_initialized = is_fork_initialized,

	.alloc_pd = control_alloc_pd,
	.dealloc_pd = control_dealloc_pd,
	.import_pd = control_import_pd,
	.unimport_pd = control_unimport_pd,
	.alloc_td = control_alloc_td,
	.dealloc_td = control_dealloc_td,
	.alloc_parent_domain = control_alloc_parent_domain,
	.open_xrcd = control_open_xrcd,
	.close_xrcd = control_close_xrcd,
	.reg_mr = control_reg_mr,
	.reg_mr_iova = control_reg_mr_iova,
	.reg_mr_iova2 = control_reg_mr_iova2,
	.rereg_mr = control_rereg_mr,
	.dereg_mr = control_dereg_mr,
	.import_mr = control_import_mr,
	.unimport_mr = control_unimport_mr,
	.alloc_null_mr = control_alloc_null_mr,
	.reg_dm_mr = control_reg_dm_mr,
	.advise_mr = control_advise_mr,
	.alloc_mw = control_alloc_mw,
	.bind_mw = control_bind_mw,
	.dealloc_mw = control_dealloc_mw,
	.alloc_dm = control_alloc_dm,
	.free_dm = control_free_dm,
	.import_dm = control_import_dm,
	.unimport_dm = control_unimport_dm,

	.create_comp_channel = channel_create,
	.destroy_comp_channel = channel_destroy,
	.create_cq = control_create_cq,
	.create_cq_ex = control_create_cq_ex,
	.resize_cq = control_resize_cq,
	.modify_cq = control_modify_cq,
	.destroy_cq = control_destroy_cq,
	.get_cq_event = channel_get_cq_event,
	.ack_cq_events = channel_ack_cq_events,
	.poll_cq = data_poll_cq,
	.req_notify_cq = data_req_notify_cq,

	.create_srq = control_create_srq,
	.create_srq_ex = control_create_srq_ex,
	.modify_srq = control_modify_srq,
	.query_srq = control_query_srq,
	.get_srq_num = control_get_srq_num,
	.destroy_srq = control_destroy_srq,
	.post_srq_recv = data_post_srq_recv,

	.create_qp = control_create_qp,
	.create_qp_ex = control_create_qp_ex,
	.qp_to_qp_ex = control_qp_to_qp_ex,
	.open_qp = control_open_qp,
	.modify_qp = control_modify_qp,
	.query_qp = control_query_qp,
	.destroy_qp = control_destroy_qp,
	.post_send = data_post_send,
	.post_recv = data_post_recv,
	.attach_mcast = control_attach_mcast,
	.detach_mcast = control_detach_mcast,

	.create_ah = control_create_ah,
	.init_ah_from_wc = control_init_ah_from_wc,
	.create_ah_from_wc = control_create_ah_from_wc,
	.destroy_ah = control_destroy_ah,
};
