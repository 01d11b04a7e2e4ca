/* SPDX-License-Identifier: MIT */
/*
 * The verbs that make, change, ask and end things. Each is ibv_<name>(3) with that page's way of
 * telling of failure; one function takes the world's lock once.
 */
#ifndef BACKENDS_SIM_VERB_CONTROL_H
#define BACKENDS_SIM_VERB_CONTROL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ah;
struct context;
struct cq;
struct dm;
struct mr;
struct mw;
struct pd;
struct qp;
struct srq;
struct xrcd;
struct sim_mr_init;
struct sim_qp;

/* What a device has for ibv_alloc_dm(). */
#define DEVICE_MEMORY_BYTES (UINT64_C(1) << 20)

/* context.c */
struct ibv_context *control_open_device(struct ibv_device *device);
int control_close_device(struct ibv_context *context);
/* A context of the device that shares origin's file and owns cmd_fd, on success. */
struct context *control_share_device(struct context *origin, int cmd_fd);

/* query.c */
int query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t attr_size);
int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
	       size_t attr_size);
int query_port_compat(struct ibv_context *context, uint8_t port_num,
		      struct _compat_ibv_port_attr *attr);
int query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);
int query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		 struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
ssize_t query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			size_t max_entries, uint32_t flags, size_t entry_size);
int query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);
int query_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);
int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int query_eth_l2(struct ibv_context *context, struct ibv_ah_attr *attr,
		 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

/* control_memory.c */
struct ibv_pd *control_alloc_pd(struct ibv_context *context);
int control_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *control_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *control_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				   int access);
struct ibv_mr *control_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				    unsigned int access);
int control_dereg_mr(struct ibv_mr *mr);
int control_end_mr(struct context *context, struct mr *mr);
/* Its context is closed: an import ends, but not its root. */
void control_leave_mr(struct context *context, struct mr *mr);
void control_unimport_mr(struct ibv_mr *mr);
/* A region of init, whose pd is the PD's; NULL with errno and a sentence that names the verb. */
struct mr *control_new_mr(struct ibv_pd *pd, const struct sim_mr_init *init, const char *verb);
struct mr *control_new_mr_locked(struct ibv_pd *pd, const struct sim_mr_init *init,
				 const char *verb);

/* control_region.c */
int control_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		     int access);
struct ibv_mr *control_alloc_null_mr(struct ibv_pd *pd);
int control_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		      struct ibv_sge *sg_list, uint32_t num_sge);

/* device_memory.c */
struct ibv_dm *control_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int control_free_dm(struct ibv_dm *dm);
struct ibv_mr *control_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				 size_t length, unsigned int access);
void control_end_dm(struct context *context, struct dm *dm);
void control_fill_dm(struct dm *dm, struct ibv_context *context, uint32_t handle);

/* control_import.c: other contexts' objects, in this process and the default world */
struct ibv_context *control_import_device(int cmd_fd);
struct ibv_pd *control_import_pd(struct ibv_context *context, uint32_t pd_handle);
void control_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *control_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
struct ibv_dm *control_import_dm(struct ibv_context *context, uint32_t dm_handle);
void control_unimport_dm(struct ibv_dm *dm);

/* control_window.c */
struct ibv_mw *control_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int control_dealloc_mw(struct ibv_mw *mw);
int control_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void control_end_mw(struct context *context, struct mw *mw);
/* sim_host's; arg is the world. */
bool control_find_mw(void *arg, const struct sim_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
		     uint32_t *mw_number, uint32_t *region_lkey);

/* control_domain.c */
struct ibv_td *control_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int control_dealloc_td(struct ibv_td *td);
struct ibv_pd *control_alloc_parent_domain(struct ibv_context *context,
					   struct ibv_parent_domain_init_attr *attr);
void control_end_pd(struct context *context, struct pd *pd);

/* control_xrc.c */
struct ibv_xrcd *control_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int control_close_xrcd(struct ibv_xrcd *xrcd);
void control_end_xrcd(struct context *context, struct xrcd *xrcd);
struct ibv_qp *control_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
/* Takes a handle out of its QP's ring; true for the last one, with which the QP ends. */
bool control_leave_ring(struct qp *qp);

/* control_srq.c */
struct ibv_srq *control_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *control_create_srq_ex(struct ibv_context *context,
				      struct ibv_srq_init_attr_ex *attr);
int control_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int control_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int control_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int control_destroy_srq(struct ibv_srq *srq);
void control_end_srq(struct context *context, struct srq *srq);

/* control_multicast.c */
int control_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int control_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
void control_leave_groups(struct qp *qp);

/* control_ah.c */
struct ibv_ah *control_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int control_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			    struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *control_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					 uint8_t port_num);
int control_destroy_ah(struct ibv_ah *ah);
void control_end_ah(struct context *context, struct ah *ah);

/* control_cq.c */
struct ibv_cq *control_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				 struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *control_create_cq_ex(struct ibv_context *context,
				       struct ibv_cq_init_attr_ex *attr);
int control_resize_cq(struct ibv_cq *cq, int cqe);
int control_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int control_destroy_cq(struct ibv_cq *cq);
/* The lock is held, nothing uses the CQ, nobody waits. */
void control_end_cq(struct context *context, struct cq *cq);

/* control_qp.c */
struct ibv_qp *control_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *control_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int control_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int control_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr);
int control_destroy_qp(struct ibv_qp *qp);
void control_end_qp(struct context *context, struct qp *qp);
struct ibv_qp_ex *control_qp_to_qp_ex(struct ibv_qp *qp);
/* A QP's public fields, with the engine's QP made. */
void control_fill_qp(struct qp *qp, struct ibv_context *context, void *qp_context,
		     enum ibv_qp_type type, uint32_t handle);

#endif
