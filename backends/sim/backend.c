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
	.open_device = verb_open_device,
	.close_device = verb_close_device,
	.import_device = verb_import_device,
	.query_device = verb_query_device,
	.query_device_ex = verb_query_device_ex,
	.query_port = verb_query_port,
	.query_gid = verb_query_gid,
	.query_gid_ex = verb_query_gid_ex,
	.query_gid_table = verb_query_gid_table,
	.query_pkey = verb_query_pkey,
	.get_pkey_index = verb_get_pkey_index,
	.query_rt_values_ex = verb_query_rt_values_ex,
	.get_async_event = verb_get_async_event,
	.ack_async_event = verb_ack_async_event,
	.resolve_eth_l2_from_gid = verb_resolve_eth_l2_from_gid,
	.fork_init = fork_init,
	.is_fork_initialized = is_fork_initialized,

	.alloc_pd = verb_alloc_pd,
	.dealloc_pd = verb_dealloc_pd,
	.import_pd = verb_import_pd,
	.unimport_pd = verb_unimport_pd,
	.alloc_td = verb_alloc_td,
	.dealloc_td = verb_dealloc_td,
	.alloc_parent_domain = verb_alloc_parent_domain,
	.open_xrcd = verb_open_xrcd,
	.close_xrcd = verb_close_xrcd,
	.reg_mr = verb_reg_mr,
	.reg_mr_iova = verb_reg_mr_iova,
	.reg_mr_iova2 = verb_reg_mr_iova2,
	.rereg_mr = verb_rereg_mr,
	.dereg_mr = verb_dereg_mr,
	.import_mr = verb_import_mr,
	.unimport_mr = verb_unimport_mr,
	.alloc_null_mr = verb_alloc_null_mr,
	.reg_dm_mr = verb_reg_dm_mr,
	.advise_mr = verb_advise_mr,
	.alloc_mw = verb_alloc_mw,
	.bind_mw = verb_bind_mw,
	.dealloc_mw = verb_dealloc_mw,
	.alloc_dm = verb_alloc_dm,
	.free_dm = verb_free_dm,
	.import_dm = verb_import_dm,
	.unimport_dm = verb_unimport_dm,

	.create_comp_channel = verb_create_comp_channel,
	.destroy_comp_channel = verb_destroy_comp_channel,
	.create_cq = verb_create_cq,
	.create_cq_ex = verb_create_cq_ex,
	.resize_cq = verb_resize_cq,
	.modify_cq = verb_modify_cq,
	.destroy_cq = verb_destroy_cq,
	.get_cq_event = verb_get_cq_event,
	.ack_cq_events = verb_ack_cq_events,
	.poll_cq = verb_poll_cq,
	.req_notify_cq = verb_req_notify_cq,

	.create_srq = verb_create_srq,
	.create_srq_ex = verb_create_srq_ex,
	.modify_srq = verb_modify_srq,
	.query_srq = verb_query_srq,
	.get_srq_num = verb_get_srq_num,
	.destroy_srq = verb_destroy_srq,
	.post_srq_recv = verb_post_srq_recv,

	.create_qp = verb_create_qp,
	.create_qp_ex = verb_create_qp_ex,
	.qp_to_qp_ex = verb_qp_to_qp_ex,
	.open_qp = verb_open_qp,
	.modify_qp = verb_modify_qp,
	.query_qp = verb_query_qp,
	.destroy_qp = verb_destroy_qp,
	.post_send = verb_post_send,
	.post_recv = verb_post_recv,
	.attach_mcast = verb_attach_mcast,
	.detach_mcast = verb_detach_mcast,

	.create_ah = verb_create_ah,
	.init_ah_from_wc = verb_init_ah_from_wc,
	.create_ah_from_wc = verb_create_ah_from_wc,
	.destroy_ah = verb_destroy_ah,
};
