/* SPDX-License-Identifier: MIT */
#include "src/verbs/stubs.h"

#include "src/verbs/dispatch.h"

#include <errno.h>
#include <string.h>

/* The verbs are the end of the structure, from this one on, and nothing but function pointers. */
#define FIRST_VERB offsetof(struct vb_backend, get_device_list)

typedef void (*any_function)(void);

_Static_assert((sizeof(struct vb_backend) - FIRST_VERB) % sizeof(any_function) == 0,
	       "the verbs of struct vb_backend must be function pointers without gaps");

static void *refuse_pointer(const char *function)
{
	errno = refuse(function);
	return NULL;
}

static int refuse_minus_one(const char *function)
{
	errno = refuse(function);
	return -1;
}

static int refuse_rereg(const char *function)
{
	errno = refuse(function);
	return IBV_REREG_MR_ERR_INPUT;
}

/* --- devices --- */

static struct ibv_device **stub_get_device_list(int *num_devices)
{
	return refuse_pointer(__func__);
}

static void stub_free_device_list(struct ibv_device **list)
{
	errno = refuse(__func__);
}

static const char *stub_get_device_name(struct ibv_device *device)
{
	return refuse_pointer(__func__);
}

static int stub_get_device_index(struct ibv_device *device)
{
	return refuse_minus_one(__func__);
}

static __be64 stub_get_device_guid(struct ibv_device *device)
{
	errno = refuse(__func__);
	return 0;
}

static struct ibv_context *stub_open_device(struct ibv_device *device)
{
	return refuse_pointer(__func__);
}

static int stub_close_device(struct ibv_context *context)
{
	return refuse_minus_one(__func__);
}

static struct ibv_context *stub_import_device(int cmd_fd)
{
	return refuse_pointer(__func__);
}

static int stub_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	return refuse(__func__);
}

static int stub_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size)
{
	return refuse(__func__);
}

static int stub_query_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *port_attr, size_t port_attr_size)
{
	return refuse(__func__);
}

static int stub_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			  union ibv_gid *gid)
{
	return refuse_minus_one(__func__);
}

static int stub_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	return refuse(__func__);
}

static ssize_t stub_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				    size_t max_entries, uint32_t flags, size_t entry_size)
{
	return -refuse(__func__);
}

static int stub_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	return refuse_minus_one(__func__);
}

static int stub_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	return refuse_minus_one(__func__);
}

static int stub_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values)
{
	return refuse(__func__);
}

static int stub_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return refuse_minus_one(__func__);
}

static void stub_ack_async_event(struct ibv_async_event *event)
{
	errno = refuse(__func__);
}

static int stub_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return refuse_minus_one(__func__);
}

static int stub_fork_init(void)
{
	return refuse(__func__);
}

static enum ibv_fork_status stub_is_fork_initialized(void)
{
	errno = refuse(__func__);
	return IBV_FORK_DISABLED;
}

/* --- protection domains, thread domains and XRC domains --- */

static struct ibv_pd *stub_alloc_pd(struct ibv_context *context)
{
	return refuse_pointer(__func__);
}

static int stub_dealloc_pd(struct ibv_pd *pd)
{
	return refuse(__func__);
}

static struct ibv_pd *stub_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return refuse_pointer(__func__);
}

static void stub_unimport_pd(struct ibv_pd *pd)
{
	errno = refuse(__func__);
}

static struct ibv_td *stub_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	return refuse_pointer(__func__);
}

static int stub_dealloc_td(struct ibv_td *td)
{
	return refuse(__func__);
}

static struct ibv_pd *stub_alloc_parent_domain(struct ibv_context *context,
					       struct ibv_parent_domain_init_attr *attr)
{
	return refuse_pointer(__func__);
}

static struct ibv_xrcd *stub_open_xrcd(struct ibv_context *context,
				       struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	return refuse_pointer(__func__);
}

static int stub_close_xrcd(struct ibv_xrcd *xrcd)
{
	return refuse(__func__);
}

/* --- memory regions, windows and device memory --- */

static struct ibv_mr *stub_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return refuse_pointer(__func__);
}

static struct ibv_mr *stub_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       int access)
{
	return refuse_pointer(__func__);
}

static struct ibv_mr *stub_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
					unsigned int access)
{
	return refuse_pointer(__func__);
}

static struct ibv_mr *stub_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					 uint64_t iova, int fd, int access)
{
	return refuse_pointer(__func__);
}

static int stub_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			 int access)
{
	return refuse_rereg(__func__);
}

static int stub_dereg_mr(struct ibv_mr *mr)
{
	return refuse(__func__);
}

static struct ibv_mr *stub_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return refuse_pointer(__func__);
}

static void stub_unimport_mr(struct ibv_mr *mr)
{
	errno = refuse(__func__);
}

static struct ibv_mr *stub_alloc_null_mr(struct ibv_pd *pd)
{
	return refuse_pointer(__func__);
}

static struct ibv_mr *stub_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				     size_t length, unsigned int access)
{
	return refuse_pointer(__func__);
}

static int stub_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			  struct ibv_sge *sg_list, uint32_t num_sge)
{
	return refuse(__func__);
}

static struct ibv_mw *stub_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return refuse_pointer(__func__);
}

static int stub_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	return refuse(__func__);
}

static int stub_dealloc_mw(struct ibv_mw *mw)
{
	return refuse(__func__);
}

static struct ibv_dm *stub_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	return refuse_pointer(__func__);
}

static int stub_free_dm(struct ibv_dm *dm)
{
	return refuse(__func__);
}

static struct ibv_dm *stub_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return refuse_pointer(__func__);
}

static void stub_unimport_dm(struct ibv_dm *dm)
{
	errno = refuse(__func__);
}

/* --- completion channels and queues --- */

static struct ibv_comp_channel *stub_create_comp_channel(struct ibv_context *context)
{
	return refuse_pointer(__func__);
}

static int stub_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return refuse(__func__);
}

static struct ibv_cq *stub_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				     struct ibv_comp_channel *channel, int comp_vector)
{
	return refuse_pointer(__func__);
}

static struct ibv_cq_ex *stub_create_cq_ex(struct ibv_context *context,
					   struct ibv_cq_init_attr_ex *cq_attr)
{
	return refuse_pointer(__func__);
}

static int stub_resize_cq(struct ibv_cq *cq, int cqe)
{
	return refuse(__func__);
}

static int stub_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return refuse(__func__);
}

static int stub_destroy_cq(struct ibv_cq *cq)
{
	return refuse(__func__);
}

static int stub_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			     void **cq_context)
{
	return refuse_minus_one(__func__);
}

static void stub_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	errno = refuse(__func__);
}

static int stub_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return refuse_minus_one(__func__);
}

static int stub_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return refuse(__func__);
}

/* --- shared receive queues --- */

static struct ibv_srq *stub_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	return refuse_pointer(__func__);
}

static struct ibv_srq *stub_create_srq_ex(struct ibv_context *context,
					  struct ibv_srq_init_attr_ex *srq_init_attr_ex)
{
	return refuse_pointer(__func__);
}

static int stub_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return refuse(__func__);
}

static int stub_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return refuse(__func__);
}

static int stub_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return refuse(__func__);
}

static int stub_destroy_srq(struct ibv_srq *srq)
{
	return refuse(__func__);
}

static int stub_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			      struct ibv_recv_wr **bad_recv_wr)
{
	*bad_recv_wr = recv_wr;
	return refuse(__func__);
}

static int stub_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	*bad_op = op;
	return refuse(__func__);
}

/* --- queue pairs --- */

static struct ibv_qp *stub_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return refuse_pointer(__func__);
}

static struct ibv_qp *stub_create_qp_ex(struct ibv_context *context,
					struct ibv_qp_init_attr_ex *qp_init_attr_ex)
{
	return refuse_pointer(__func__);
}

static struct ibv_qp_ex *stub_qp_to_qp_ex(struct ibv_qp *qp)
{
	return refuse_pointer(__func__);
}

static struct ibv_qp *stub_open_qp(struct ibv_context *context,
				   struct ibv_qp_open_attr *qp_open_attr)
{
	return refuse_pointer(__func__);
}

static int stub_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return refuse(__func__);
}

static int stub_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			 struct ibv_qp_init_attr *init_attr)
{
	return refuse(__func__);
}

static int stub_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	errno = refuse(__func__);
	return 0;
}

static int stub_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	return refuse(__func__);
}

static int stub_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return refuse(__func__);
}

static int stub_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return refuse(__func__);
}

static int stub_destroy_qp(struct ibv_qp *qp)
{
	return refuse(__func__);
}

static int stub_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse(__func__);
}

static int stub_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse(__func__);
}

static int stub_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return refuse(__func__);
}

static int stub_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return refuse(__func__);
}

/* --- address handles --- */

static struct ibv_ah *stub_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return refuse_pointer(__func__);
}

static int stub_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
				struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	return refuse_minus_one(__func__);
}

static struct ibv_ah *stub_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
					     struct ibv_grh *grh, uint8_t port_num)
{
	return refuse_pointer(__func__);
}

static int stub_destroy_ah(struct ibv_ah *ah)
{
	return refuse(__func__);
}

/* --- work queues and receive side scaling --- */

static struct ibv_wq *stub_create_wq(struct ibv_context *context,
				     struct ibv_wq_init_attr *wq_init_attr)
{
	return refuse_pointer(__func__);
}

static int stub_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr)
{
	return refuse(__func__);
}

static int stub_destroy_wq(struct ibv_wq *wq)
{
	return refuse(__func__);
}

static struct ibv_rwq_ind_table *stub_create_rwq_ind_table(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *init_attr)
{
	return refuse_pointer(__func__);
}

static int stub_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	return refuse(__func__);
}

/* --- flows and counters --- */

static struct ibv_flow *stub_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	return refuse_pointer(__func__);
}

static int stub_destroy_flow(struct ibv_flow *flow_id)
{
	return refuse(__func__);
}

static struct ibv_flow_action *stub_create_flow_action_esp(struct ibv_context *context,
							   struct ibv_flow_action_esp_attr *esp)
{
	return refuse_pointer(__func__);
}

static int stub_modify_flow_action_esp(struct ibv_flow_action *action,
				       struct ibv_flow_action_esp_attr *esp)
{
	return refuse(__func__);
}

static int stub_destroy_flow_action(struct ibv_flow_action *action)
{
	return refuse(__func__);
}

static struct ibv_counters *stub_create_counters(struct ibv_context *context,
						 struct ibv_counters_init_attr *init_attr)
{
	return refuse_pointer(__func__);
}

static int stub_destroy_counters(struct ibv_counters *counters)
{
	return refuse(__func__);
}

static int stub_attach_counters_point_flow(struct ibv_counters *counters,
					   struct ibv_counter_attach_attr *attr,
					   struct ibv_flow *flow)
{
	return refuse(__func__);
}

static int stub_read_counters(struct ibv_counters *counters, uint64_t *counters_value,
			      uint32_t ncounters, uint32_t flags)
{
	return refuse(__func__);
}

const struct vb_backend stubs = {
	.name = "none",
	.description = "what a backend does not have",
	.get_device_list = stub_get_device_list,
	.free_device_list = stub_free_device_list,
	.get_device_name = stub_get_device_name,
	.get_device_index = stub_get_device_index,
	.get_device_guid = stub_get_device_guid,
	.open_device = stub_open_device,
	.close_device = stub_close_device,
	.import_device = stub_import_device,
	.query_device = stub_query_device,
	.query_device_ex = stub_query_device_ex,
	.query_port = stub_query_port,
	.query_gid = stub_query_gid,
	.query_gid_ex = stub_query_gid_ex,
	.query_gid_table = stub_query_gid_table,
	.query_pkey = stub_query_pkey,
	.get_pkey_index = stub_get_pkey_index,
	.query_rt_values_ex = stub_query_rt_values_ex,
	.get_async_event = stub_get_async_event,
	.ack_async_event = stub_ack_async_event,
	.resolve_eth_l2_from_gid = stub_resolve_eth_l2_from_gid,
	.fork_init = stub_fork_init,
	.is_fork_initialized = stub_is_fork_initialized,
	.alloc_pd = stub_alloc_pd,
	.dealloc_pd = stub_dealloc_pd,
	.import_pd = stub_import_pd,
	.unimport_pd = stub_unimport_pd,
	.alloc_td = stub_alloc_td,
	.dealloc_td = stub_dealloc_td,
	.alloc_parent_domain = stub_alloc_parent_domain,
	.open_xrcd = stub_open_xrcd,
	.close_xrcd = stub_close_xrcd,
	.reg_mr = stub_reg_mr,
	.reg_mr_iova = stub_reg_mr_iova,
	.reg_mr_iova2 = stub_reg_mr_iova2,
	.reg_dmabuf_mr = stub_reg_dmabuf_mr,
	.rereg_mr = stub_rereg_mr,
	.dereg_mr = stub_dereg_mr,
	.import_mr = stub_import_mr,
	.unimport_mr = stub_unimport_mr,
	.alloc_null_mr = stub_alloc_null_mr,
	.reg_dm_mr = stub_reg_dm_mr,
	.advise_mr = stub_advise_mr,
	.alloc_mw = stub_alloc_mw,
	.bind_mw = stub_bind_mw,
	.dealloc_mw = stub_dealloc_mw,
	.alloc_dm = stub_alloc_dm,
	.free_dm = stub_free_dm,
	.import_dm = stub_import_dm,
	.unimport_dm = stub_unimport_dm,
	.create_comp_channel = stub_create_comp_channel,
	.destroy_comp_channel = stub_destroy_comp_channel,
	.create_cq = stub_create_cq,
	.create_cq_ex = stub_create_cq_ex,
	.resize_cq = stub_resize_cq,
	.modify_cq = stub_modify_cq,
	.destroy_cq = stub_destroy_cq,
	.get_cq_event = stub_get_cq_event,
	.ack_cq_events = stub_ack_cq_events,
	.poll_cq = stub_poll_cq,
	.req_notify_cq = stub_req_notify_cq,
	.create_srq = stub_create_srq,
	.create_srq_ex = stub_create_srq_ex,
	.modify_srq = stub_modify_srq,
	.query_srq = stub_query_srq,
	.get_srq_num = stub_get_srq_num,
	.destroy_srq = stub_destroy_srq,
	.post_srq_recv = stub_post_srq_recv,
	.post_srq_ops = stub_post_srq_ops,
	.create_qp = stub_create_qp,
	.create_qp_ex = stub_create_qp_ex,
	.qp_to_qp_ex = stub_qp_to_qp_ex,
	.open_qp = stub_open_qp,
	.modify_qp = stub_modify_qp,
	.query_qp = stub_query_qp,
	.query_qp_data_in_order = stub_query_qp_data_in_order,
	.modify_qp_rate_limit = stub_modify_qp_rate_limit,
	.set_ece = stub_set_ece,
	.query_ece = stub_query_ece,
	.destroy_qp = stub_destroy_qp,
	.post_send = stub_post_send,
	.post_recv = stub_post_recv,
	.attach_mcast = stub_attach_mcast,
	.detach_mcast = stub_detach_mcast,
	.create_ah = stub_create_ah,
	.init_ah_from_wc = stub_init_ah_from_wc,
	.create_ah_from_wc = stub_create_ah_from_wc,
	.destroy_ah = stub_destroy_ah,
	.create_wq = stub_create_wq,
	.modify_wq = stub_modify_wq,
	.destroy_wq = stub_destroy_wq,
	.create_rwq_ind_table = stub_create_rwq_ind_table,
	.destroy_rwq_ind_table = stub_destroy_rwq_ind_table,
	.create_flow = stub_create_flow,
	.destroy_flow = stub_destroy_flow,
	.create_flow_action_esp = stub_create_flow_action_esp,
	.modify_flow_action_esp = stub_modify_flow_action_esp,
	.destroy_flow_action = stub_destroy_flow_action,
	.create_counters = stub_create_counters,
	.destroy_counters = stub_destroy_counters,
	.attach_counters_point_flow = stub_attach_counters_point_flow,
	.read_counters = stub_read_counters,
};

void stubs_fill(struct vb_backend *backend)
{
	for (size_t at = FIRST_VERB; at < sizeof(*backend); at += sizeof(any_function)) {
		char *place = (char *)backend + at;
		any_function verb;

		memcpy(&verb, place, sizeof(verb));
		if (!verb)
			memcpy(place, (const char *)&stubs + at, sizeof(verb));
	}
}
