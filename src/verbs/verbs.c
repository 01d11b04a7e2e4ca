/* SPDX-License-Identifier: MIT */
/*
 * The verbs: each finds the backend of its object and hands the call on. Those that make or end
 * what a backend is found by are in devices.c; the data path is inline in <verbena/verbs.h>.
 */
#include <verbena/verbs.h>

#include "src/verbs/dispatch.h"

/* --- devices --- */

const char *vb_get_device_name(struct ibv_device *device)
{
	const struct vb_backend *backend = enter_device(__func__, device);

	return leave_pointer(backend->get_device_name(device));
}

int vb_get_device_index(struct ibv_device *device)
{
	const struct vb_backend *backend = enter_device(__func__, device);

	return leave_signed(backend->get_device_index(device));
}

__be64 vb_get_device_guid(struct ibv_device *device)
{
	const struct vb_backend *backend = enter_device(__func__, device);
	__be64 answer = backend->get_device_guid(device);

	leave();
	return answer;
}

int vb_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_errno(backend->query_device(context, device_attr));
}

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_errno(backend->query_device_ex(context, input, attr, attr_size));
}

int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		  size_t port_attr_size)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_errno(backend->query_port(context, port_num, port_attr, port_attr_size));
}

int vb_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->query_gid(context, port_num, index, gid));
}

int vb_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_errno(
		backend->query_gid_ex(context, port_num, gid_index, entry, flags, entry_size));
}

ssize_t vb_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			   size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_negated(
		backend->query_gid_table(context, entries, max_entries, flags, entry_size));
}

int vb_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->query_pkey(context, port_num, index, pkey));
}

int vb_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->get_pkey_index(context, port_num, pkey));
}

int vb_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_errno(backend->query_rt_values_ex(context, values));
}

int vb_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->get_async_event(context, event));
}

int vb_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
			       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->resolve_eth_l2_from_gid(context, attr, eth_mac, vid));
}

int vb_fork_init(const char *backend)
{
	const struct vb_backend *b = enter_backend(__func__, backend);

	return leave_errno(b->fork_init());
}

enum ibv_fork_status vb_is_fork_initialized(const char *backend)
{
	const struct vb_backend *b = enter_backend(__func__, backend);
	enum ibv_fork_status answer = b->is_fork_initialized();

	leave();
	return answer;
}

/* --- protection domains, thread domains and XRC domains --- */

struct ibv_pd *vb_alloc_pd(struct ibv_context *context)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->alloc_pd(context));
}

int vb_dealloc_pd(struct ibv_pd *pd)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_errno(backend->dealloc_pd(pd));
}

struct ibv_pd *vb_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->import_pd(context, pd_handle));
}

void vb_unimport_pd(struct ibv_pd *pd)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	backend->unimport_pd(pd);
	leave();
}

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->alloc_td(context, init_attr));
}

int vb_dealloc_td(struct ibv_td *td)
{
	const struct vb_backend *backend = enter(__func__, td ? td->context : NULL);

	return leave_errno(backend->dealloc_td(td));
}

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->alloc_parent_domain(context, attr));
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->open_xrcd(context, xrcd_init_attr));
}

int vb_close_xrcd(struct ibv_xrcd *xrcd)
{
	const struct vb_backend *backend = enter(__func__, xrcd ? xrcd->context : NULL);

	return leave_errno(backend->close_xrcd(xrcd));
}

/* --- memory regions, windows and device memory --- */

struct ibv_mr *vb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->reg_mr(pd, addr, length, access));
}

struct ibv_mr *vb_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			      int access)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->reg_mr_iova(pd, addr, length, iova, access));
}

struct ibv_mr *vb_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       unsigned int access)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->reg_mr_iova2(pd, addr, length, iova, access));
}

struct ibv_mr *vb_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				int fd, int access)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->reg_dmabuf_mr(pd, offset, length, iova, fd, access));
}

int vb_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		int access)
{
	const struct vb_backend *backend = enter(__func__, mr ? mr->context : NULL);

	return leave_signed(backend->rereg_mr(mr, flags, pd, addr, length, access));
}

int vb_dereg_mr(struct ibv_mr *mr)
{
	const struct vb_backend *backend = enter(__func__, mr ? mr->context : NULL);

	return leave_errno(backend->dereg_mr(mr));
}

struct ibv_mr *vb_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->import_mr(pd, mr_handle));
}

void vb_unimport_mr(struct ibv_mr *mr)
{
	const struct vb_backend *backend = enter(__func__, mr ? mr->context : NULL);

	backend->unimport_mr(mr);
	leave();
}

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->alloc_null_mr(pd));
}

struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			    unsigned int access)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->reg_dm_mr(pd, dm, dm_offset, length, access));
}

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_errno(backend->advise_mr(pd, advice, flags, sg_list, num_sge));
}

struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->alloc_mw(pd, type));
}

int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->bind_mw(qp, mw, mw_bind));
}

int vb_dealloc_mw(struct ibv_mw *mw)
{
	const struct vb_backend *backend = enter(__func__, mw ? mw->context : NULL);

	return leave_errno(backend->dealloc_mw(mw));
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->alloc_dm(context, attr));
}

int vb_free_dm(struct ibv_dm *dm)
{
	const struct vb_backend *backend = enter(__func__, dm ? dm->context : NULL);

	return leave_errno(backend->free_dm(dm));
}

struct ibv_dm *vb_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->import_dm(context, dm_handle));
}

void vb_unimport_dm(struct ibv_dm *dm)
{
	const struct vb_backend *backend = enter(__func__, dm ? dm->context : NULL);

	backend->unimport_dm(dm);
	leave();
}

/* --- completion channels and queues --- */

struct ibv_comp_channel *vb_create_comp_channel(struct ibv_context *context)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_comp_channel(context));
}

int vb_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const struct vb_backend *backend = enter(__func__, channel ? channel->context : NULL);

	return leave_errno(backend->destroy_comp_channel(channel));
}

struct ibv_cq *vb_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			    struct ibv_comp_channel *channel, int comp_vector)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_cq(context, cqe, cq_context, channel, comp_vector));
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *cq_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_cq_ex(context, cq_attr));
}

int vb_resize_cq(struct ibv_cq *cq, int cqe)
{
	const struct vb_backend *backend = enter(__func__, cq ? cq->context : NULL);

	return leave_errno(backend->resize_cq(cq, cqe));
}

int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	const struct vb_backend *backend = enter(__func__, cq ? cq->context : NULL);

	return leave_errno(backend->modify_cq(cq, attr));
}

int vb_destroy_cq(struct ibv_cq *cq)
{
	const struct vb_backend *backend = enter(__func__, cq ? cq->context : NULL);

	return leave_errno(backend->destroy_cq(cq));
}

int vb_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	const struct vb_backend *backend = enter(__func__, channel ? channel->context : NULL);

	return leave_signed(backend->get_cq_event(channel, cq, cq_context));
}

void vb_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	const struct vb_backend *backend = enter(__func__, cq ? cq->context : NULL);

	backend->ack_cq_events(cq, nevents);
	leave();
}

/* --- shared receive queues --- */

struct ibv_srq *vb_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->create_srq(pd, srq_init_attr));
}

struct ibv_srq *vb_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *srq_init_attr_ex)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_srq_ex(context, srq_init_attr_ex));
}

int vb_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	const struct vb_backend *backend = enter(__func__, srq ? srq->context : NULL);

	return leave_errno(backend->modify_srq(srq, srq_attr, srq_attr_mask));
}

int vb_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	const struct vb_backend *backend = enter(__func__, srq ? srq->context : NULL);

	return leave_errno(backend->query_srq(srq, srq_attr));
}

int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	const struct vb_backend *backend = enter(__func__, srq ? srq->context : NULL);

	return leave_errno(backend->get_srq_num(srq, srq_num));
}

int vb_destroy_srq(struct ibv_srq *srq)
{
	const struct vb_backend *backend = enter(__func__, srq ? srq->context : NULL);

	return leave_errno(backend->destroy_srq(srq));
}

int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	const struct vb_backend *backend = enter(__func__, srq ? srq->context : NULL);

	return leave_errno(backend->post_srq_ops(srq, op, bad_op));
}

/* --- queue pairs --- */

struct ibv_qp *vb_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->create_qp(pd, qp_init_attr));
}

struct ibv_qp *vb_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *qp_init_attr_ex)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_qp_ex(context, qp_init_attr_ex));
}

struct ibv_qp_ex *vb_qp_to_qp_ex(struct ibv_qp *qp)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);
	struct ibv_qp_ex *answer = backend->qp_to_qp_ex(qp);

	leave();
	return answer;
}

struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *qp_open_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->open_qp(context, qp_open_attr));
}

int vb_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->modify_qp(qp, attr, attr_mask));
}

int vb_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		struct ibv_qp_init_attr *init_attr)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->query_qp(qp, attr, attr_mask, init_attr));
}

int vb_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);
	int answer = backend->query_qp_data_in_order(qp, op, flags);

	leave();
	return answer;
}

int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->modify_qp_rate_limit(qp, attr));
}

int vb_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->set_ece(qp, ece));
}

int vb_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->query_ece(qp, ece));
}

int vb_destroy_qp(struct ibv_qp *qp)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->destroy_qp(qp));
}

int vb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->attach_mcast(qp, gid, lid));
}

int vb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_errno(backend->detach_mcast(qp, gid, lid));
}

/* --- address handles --- */

struct ibv_ah *vb_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->create_ah(pd, attr));
}

int vb_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
		       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_signed(backend->init_ah_from_wc(context, port_num, wc, grh, ah_attr));
}

struct ibv_ah *vb_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				    uint8_t port_num)
{
	const struct vb_backend *backend = enter(__func__, pd ? pd->context : NULL);

	return leave_pointer(backend->create_ah_from_wc(pd, wc, grh, port_num));
}

int vb_destroy_ah(struct ibv_ah *ah)
{
	const struct vb_backend *backend = enter(__func__, ah ? ah->context : NULL);

	return leave_errno(backend->destroy_ah(ah));
}

/* --- work queues and receive side scaling --- */

struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_wq(context, wq_init_attr));
}

int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr)
{
	const struct vb_backend *backend = enter(__func__, wq ? wq->context : NULL);

	return leave_errno(backend->modify_wq(wq, wq_attr));
}

int vb_destroy_wq(struct ibv_wq *wq)
{
	const struct vb_backend *backend = enter(__func__, wq ? wq->context : NULL);

	return leave_errno(backend->destroy_wq(wq));
}

struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_rwq_ind_table(context, init_attr));
}

int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	const struct vb_backend *backend =
		enter(__func__, rwq_ind_table ? rwq_ind_table->context : NULL);

	return leave_errno(backend->destroy_rwq_ind_table(rwq_ind_table));
}

/* --- flows and counters --- */

struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	const struct vb_backend *backend = enter(__func__, qp ? qp->context : NULL);

	return leave_pointer(backend->create_flow(qp, flow_attr));
}

int vb_destroy_flow(struct ibv_flow *flow_id)
{
	const struct vb_backend *backend = enter(__func__, flow_id ? flow_id->context : NULL);

	return leave_errno(backend->destroy_flow(flow_id));
}

struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *esp)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_flow_action_esp(context, esp));
}

int vb_modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *esp)
{
	const struct vb_backend *backend = enter(__func__, action ? action->context : NULL);

	return leave_errno(backend->modify_flow_action_esp(action, esp));
}

int vb_destroy_flow_action(struct ibv_flow_action *action)
{
	const struct vb_backend *backend = enter(__func__, action ? action->context : NULL);

	return leave_errno(backend->destroy_flow_action(action));
}

struct ibv_counters *vb_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *init_attr)
{
	const struct vb_backend *backend = enter(__func__, context);

	return leave_pointer(backend->create_counters(context, init_attr));
}

int vb_destroy_counters(struct ibv_counters *counters)
{
	const struct vb_backend *backend = enter(__func__, counters ? counters->context : NULL);

	return leave_errno(backend->destroy_counters(counters));
}

int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	const struct vb_backend *backend = enter(__func__, counters ? counters->context : NULL);

	return leave_errno(backend->attach_counters_point_flow(counters, attr, flow));
}

int vb_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		     uint32_t flags)
{
	const struct vb_backend *backend = enter(__func__, counters ? counters->context : NULL);

	return leave_errno(backend->read_counters(counters, counters_value, ncounters, flags));
}
