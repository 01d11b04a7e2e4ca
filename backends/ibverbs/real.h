/* SPDX-License-Identifier: MIT */
/*
 * The verbs of the backend. Those that libibverbs exports are in exports.c, those that its header
 * wraps inline, going through the context, in wrappers.c.
 */
#ifndef BACKENDS_IBVERBS_REAL_H
#define BACKENDS_IBVERBS_REAL_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

/* The answers of a verb that the library or the device's provider does not have. */
static inline void *no_pointer(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static inline int minus_one(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

/*
 * The library says nothing but an errno. A sentence is there only for what keeps it from being
 * used: it cannot be loaded, or the kernel has no support for it. Else "".
 */
const char *real_last_error(void);

struct ibv_device **real_get_device_list(int *num_devices);
void real_free_device_list(struct ibv_device **list);
const char *real_get_device_name(struct ibv_device *device);
int real_get_device_index(struct ibv_device *device);
__be64 real_get_device_guid(struct ibv_device *device);
struct ibv_context *real_open_device(struct ibv_device *device);
int real_close_device(struct ibv_context *context);
struct ibv_context *real_import_device(int cmd_fd);
int real_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);
int real_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int real_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		    size_t port_attr_size);
int real_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);
int real_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
ssize_t real_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);
int real_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);
int real_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);
int real_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);
int real_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void real_ack_async_event(struct ibv_async_event *event);
int real_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);
int real_fork_init(void);
enum ibv_fork_status real_is_fork_initialized(void);
struct ibv_pd *real_alloc_pd(struct ibv_context *context);
int real_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *real_import_pd(struct ibv_context *context, uint32_t pd_handle);
void real_unimport_pd(struct ibv_pd *pd);
struct ibv_td *real_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);
int real_dealloc_td(struct ibv_td *td);
struct ibv_pd *real_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
struct ibv_xrcd *real_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *xrcd_init_attr);
int real_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_mr *real_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *real_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				int access);
struct ibv_mr *real_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access);
struct ibv_mr *real_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access);
int real_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access);
int real_dereg_mr(struct ibv_mr *mr);
struct ibv_mr *real_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
void real_unimport_mr(struct ibv_mr *mr);
struct ibv_mr *real_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *real_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			      size_t length, unsigned int access);
int real_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mw *real_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int real_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);
int real_dealloc_mw(struct ibv_mw *mw);
struct ibv_dm *real_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int real_free_dm(struct ibv_dm *dm);
struct ibv_dm *real_import_dm(struct ibv_context *context, uint32_t dm_handle);
void real_unimport_dm(struct ibv_dm *dm);
struct ibv_comp_channel *real_create_comp_channel(struct ibv_context *context);
int real_destroy_comp_channel(struct ibv_comp_channel *channel);
struct ibv_cq *real_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *real_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *cq_attr);
int real_resize_cq(struct ibv_cq *cq, int cqe);
int real_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int real_destroy_cq(struct ibv_cq *cq);
int real_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void real_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
int real_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int real_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_srq *real_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);
struct ibv_srq *real_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *srq_init_attr_ex);
int real_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);
int real_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);
int real_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int real_destroy_srq(struct ibv_srq *srq);
int real_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
		       struct ibv_recv_wr **bad_recv_wr);
int real_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);
struct ibv_qp *real_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);
struct ibv_qp *real_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *qp_init_attr_ex);
struct ibv_qp_ex *real_qp_to_qp_ex(struct ibv_qp *qp);
struct ibv_qp *real_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *qp_open_attr);
int real_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int real_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int real_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
int real_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
int real_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int real_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);
int real_destroy_qp(struct ibv_qp *qp);
int real_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int real_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int real_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int real_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
struct ibv_ah *real_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int real_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);
struct ibv_ah *real_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num);
int real_destroy_ah(struct ibv_ah *ah);
struct ibv_wq *real_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);
int real_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);
int real_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *real_create_rwq_ind_table(struct ibv_context *context,
						    struct ibv_rwq_ind_table_init_attr *init_attr);
int real_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);
struct ibv_flow *real_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);
int real_destroy_flow(struct ibv_flow *flow_id);
struct ibv_flow_action *real_create_flow_action_esp(struct ibv_context *context,
						    struct ibv_flow_action_esp_attr *esp);
int real_modify_flow_action_esp(struct ibv_flow_action *action,
				struct ibv_flow_action_esp_attr *esp);
int real_destroy_flow_action(struct ibv_flow_action *action);
struct ibv_counters *real_create_counters(struct ibv_context *context,
					  struct ibv_counters_init_attr *init_attr);
int real_destroy_counters(struct ibv_counters *counters);
int real_attach_counters_point_flow(struct ibv_counters *counters,
				    struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int real_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		       uint32_t flags);

#endif /* BACKENDS_IBVERBS_REAL_H */
