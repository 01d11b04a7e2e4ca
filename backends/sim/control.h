/* SPDX-License-Identifier: MIT */
/*
 * The verbs that make, change, ask and end things. Each is ibv_<name>(3) with that page's way of
 * telling of failure; one function takes the world's lock once.
 */
#ifndef BACKENDS_SIM_CONTROL_H
#define BACKENDS_SIM_CONTROL_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct context;
struct cq;
struct qp;

/* context.c */
struct ibv_context *control_open_device(struct ibv_device *device);
int control_close_device(struct ibv_context *context);

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

/* control_ah.c */
struct ibv_ah *control_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int control_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			    struct ibv_grh *grh, struct ibv_ah_attr *attr);
struct ibv_ah *control_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					 uint8_t port_num);
int control_destroy_ah(struct ibv_ah *ah);

/* control_cq.c */
struct ibv_cq *control_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				 struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *control_create_cq_ex(struct ibv_context *context,
				       struct ibv_cq_init_attr_ex *attr);
int control_resize_cq(struct ibv_cq *cq, int cqe);
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

#endif
