/* SPDX-License-Identifier: MIT */
/*
 * The verbs. verb_X() is ibv_X(3) and reports a failure as that page says; each holds its world's
 * lock once. Functions that are not in libibverbs have a comment; their caller holds the world.
 */
#ifndef BACKENDS_SIM_VERB_VERBS_H
#define BACKENDS_SIM_VERB_VERBS_H

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
struct sim_device;
struct sim_mr_init;
struct srq;
struct vb_sim;
struct xrcd;

/* What ibv_alloc_dm() can give out on one device. */
#define DEVICE_MEMORY_BYTES (UINT64_C(1) << 20)

/* --- context.c --- */

struct ibv_context *verb_open_device(struct ibv_device *device);
int verb_close_device(struct ibv_context *context);
/* Returns a context of the device that shares origin's file, and owns cmd_fd on success. The lock is
 * held even if the process has one thread. */
struct context *verb_share_device(struct context *origin, int cmd_fd);

/* --- query.c --- */

int verb_query_device(struct ibv_context *context, struct ibv_device_attr *attr);
int verb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size);
int verb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t attr_size);
/* ibv_query_port() of programs that were built for libibverbs before 1.1. */
int verb_query_port_compat(struct ibv_context *context, uint8_t port_num,
			   struct _compat_ibv_port_attr *attr);
int verb_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);
int verb_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);
ssize_t verb_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size);
int verb_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);
int verb_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);
int verb_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);
int verb_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

/* --- event.c --- */

struct ibv_comp_channel *verb_create_comp_channel(struct ibv_context *context);
int verb_destroy_comp_channel(struct ibv_comp_channel *channel);
int verb_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void verb_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
int verb_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void verb_ack_async_event(struct ibv_async_event *event);

/* --- pd.c --- */

struct ibv_pd *verb_alloc_pd(struct ibv_context *context);
int verb_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *verb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int verb_dealloc_td(struct ibv_td *td);
struct ibv_pd *verb_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr);
/* Ends a PD, a parent domain, or an import without its root. */
void verb_end_pd(struct pd *pd);

/* --- mr.c --- */

struct ibv_mr *verb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_mr *verb_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				int access);
struct ibv_mr *verb_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access);
struct ibv_mr *verb_alloc_null_mr(struct ibv_pd *pd);
int verb_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access);
int verb_dereg_mr(struct ibv_mr *mr);
int verb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge);
/* Returns an MR made from init, whose pd is taken from the PD; NULL with errno and a sentence that
 * names the verb. */
struct mr *verb_new_mr(struct ibv_pd *pd, const struct sim_mr_init *init, const char *verb);
/* Ends the MR when its context is closed: of an import, the root stays. */
void verb_leave_mr(struct mr *mr);
/* Ends an import without its root. */
void verb_end_imported_mr(struct mr *mr);

/* --- dm.c --- */

struct ibv_dm *verb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int verb_free_dm(struct ibv_dm *dm);
struct ibv_mr *verb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			      size_t length, unsigned int access);
/* Ends a DM, or an import without its root. */
void verb_end_dm(struct dm *dm);
/* Fills the DM's public fields. */
void verb_fill_dm(struct dm *dm, struct ibv_context *context, uint32_t handle);

/* --- mw.c --- */

struct ibv_mw *verb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int verb_dealloc_mw(struct ibv_mw *mw);
int verb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void verb_end_mw(struct mw *mw);

/* --- xrcd.c --- */

struct ibv_xrcd *verb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int verb_close_xrcd(struct ibv_xrcd *xrcd);
void verb_end_xrcd(struct xrcd *xrcd);

/* --- import.c --- */

struct ibv_context *verb_import_device(int cmd_fd);
struct ibv_pd *verb_import_pd(struct ibv_context *context, uint32_t pd_handle);
void verb_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *verb_import_mr(struct ibv_pd *pd, uint32_t mr_handle);
void verb_unimport_mr(struct ibv_mr *mr);
struct ibv_dm *verb_import_dm(struct ibv_context *context, uint32_t dm_handle);
void verb_unimport_dm(struct ibv_dm *dm);

/* --- ah.c --- */

struct ibv_ah *verb_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int verb_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *verb_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num);
int verb_destroy_ah(struct ibv_ah *ah);
void verb_end_ah(struct ah *ah);

/* --- cq.c --- */

struct ibv_cq *verb_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *verb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int verb_resize_cq(struct ibv_cq *cq, int cqe);
int verb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int verb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verb_destroy_cq(struct ibv_cq *cq);
/* Ends a CQ that no queue uses, without waiting for acknowledgements. */
void verb_end_cq(struct cq *cq);

/* --- poll.c --- */

int verb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
/* Fills ibv_start_poll() to ibv_wc_read_*() of a CQ. */
void verb_fill_poll(struct cq *cq, uint64_t wc_flags);

/* --- srq.c --- */

struct ibv_srq *verb_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *verb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int verb_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask);
int verb_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int verb_get_srq_num(struct ibv_srq *srq, uint32_t *number);
int verb_destroy_srq(struct ibv_srq *srq);
int verb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Ends an SRQ, without waiting for acknowledgements. */
void verb_end_srq(struct srq *srq);

/* --- qp_create.c --- */

struct ibv_qp *verb_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *verb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp_ex *verb_qp_to_qp_ex(struct ibv_qp *qp);
struct ibv_qp *verb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/* --- qp.c --- */

int verb_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);
int verb_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr);
int verb_destroy_qp(struct ibv_qp *qp);
int verb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int verb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Ends a QP, or one handle of a shared QP, without waiting for acknowledgements. */
void verb_end_qp(struct qp *qp);

/* --- multicast.c --- */

int verb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int verb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* Takes the QP out of all its groups. */
void verb_leave_groups(struct qp *qp);

/* --- wr.c: ibv_wr_post(3) --- */

/* Returns true if the device's QPs of the type have all these operations (enum
 * ibv_qp_create_send_ops_flags). */
bool verb_wr_supports(const struct sim_device *device, enum ibv_qp_type type,
		      uint64_t send_ops_flags);
/* Fills ibv_wr_start() to ibv_wr_complete() of a QP; locks: only one thread at a time is between
 * these two. 0 or ENOMEM. */
int verb_wr_fill(struct qp *qp, uint64_t send_ops_flags, bool locks);

#endif
