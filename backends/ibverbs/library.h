/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of libibverbs, found at run time.
 */
#ifndef BACKENDS_IBVERBS_LIBRARY_H
#define BACKENDS_IBVERBS_LIBRARY_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/*
 * One pointer for every exported verb, NULL where the loaded library has none. The types are the
 * header's own (typeof of a function refers to no symbol). query_port is the export, which fills
 * the old, short structure; programs reach it through a macro.
 */
struct library {
	__typeof__(ibv_get_device_list) *get_device_list;
	__typeof__(ibv_free_device_list) *free_device_list;
	__typeof__(ibv_get_device_name) *get_device_name;
	__typeof__(ibv_get_device_index) *get_device_index;
	__typeof__(ibv_get_device_guid) *get_device_guid;
	__typeof__(ibv_open_device) *open_device;
	__typeof__(ibv_close_device) *close_device;
	__typeof__(ibv_import_device) *import_device;
	__typeof__(ibv_query_device) *query_device;
	__typeof__(ibv_query_port) *query_port;
	__typeof__(ibv_query_gid) *query_gid;
	__typeof__(_ibv_query_gid_ex) *query_gid_ex;
	__typeof__(_ibv_query_gid_table) *query_gid_table;
	__typeof__(ibv_query_pkey) *query_pkey;
	__typeof__(ibv_get_pkey_index) *get_pkey_index;
	__typeof__(ibv_get_async_event) *get_async_event;
	__typeof__(ibv_ack_async_event) *ack_async_event;
	__typeof__(ibv_resolve_eth_l2_from_gid) *resolve_eth_l2_from_gid;
	__typeof__(ibv_fork_init) *fork_init;
	__typeof__(ibv_is_fork_initialized) *is_fork_initialized;
	__typeof__(ibv_alloc_pd) *alloc_pd;
	__typeof__(ibv_dealloc_pd) *dealloc_pd;
	__typeof__(ibv_import_pd) *import_pd;
	__typeof__(ibv_unimport_pd) *unimport_pd;
	__typeof__(ibv_reg_mr) *reg_mr;
	__typeof__(ibv_reg_mr_iova) *reg_mr_iova;
	__typeof__(ibv_reg_mr_iova2) *reg_mr_iova2;
	__typeof__(ibv_reg_dmabuf_mr) *reg_dmabuf_mr;
	__typeof__(ibv_rereg_mr) *rereg_mr;
	__typeof__(ibv_dereg_mr) *dereg_mr;
	__typeof__(ibv_import_mr) *import_mr;
	__typeof__(ibv_unimport_mr) *unimport_mr;
	__typeof__(ibv_import_dm) *import_dm;
	__typeof__(ibv_unimport_dm) *unimport_dm;
	__typeof__(ibv_create_comp_channel) *create_comp_channel;
	__typeof__(ibv_destroy_comp_channel) *destroy_comp_channel;
	__typeof__(ibv_create_cq) *create_cq;
	__typeof__(ibv_resize_cq) *resize_cq;
	__typeof__(ibv_destroy_cq) *destroy_cq;
	__typeof__(ibv_get_cq_event) *get_cq_event;
	__typeof__(ibv_ack_cq_events) *ack_cq_events;
	__typeof__(ibv_create_srq) *create_srq;
	__typeof__(ibv_modify_srq) *modify_srq;
	__typeof__(ibv_query_srq) *query_srq;
	__typeof__(ibv_destroy_srq) *destroy_srq;
	__typeof__(ibv_create_qp) *create_qp;
	__typeof__(ibv_qp_to_qp_ex) *qp_to_qp_ex;
	__typeof__(ibv_modify_qp) *modify_qp;
	__typeof__(ibv_query_qp) *query_qp;
	__typeof__(ibv_query_qp_data_in_order) *query_qp_data_in_order;
	__typeof__(ibv_set_ece) *set_ece;
	__typeof__(ibv_query_ece) *query_ece;
	__typeof__(ibv_destroy_qp) *destroy_qp;
	__typeof__(ibv_attach_mcast) *attach_mcast;
	__typeof__(ibv_detach_mcast) *detach_mcast;
	__typeof__(ibv_create_ah) *create_ah;
	__typeof__(ibv_init_ah_from_wc) *init_ah_from_wc;
	__typeof__(ibv_create_ah_from_wc) *create_ah_from_wc;
	__typeof__(ibv_destroy_ah) *destroy_ah;
};

/*
 * The library, loaded at the first call by any thread. Never NULL: if it could not be loaded, all
 * its pointers are NULL.
 */
const struct library *library(void);

/* Whether the library is there, and if not, why: one sentence, else "". */
bool library_loaded(void);
const char *library_error(void);

#endif /* BACKENDS_IBVERBS_LIBRARY_H */
