/* SPDX-License-Identifier: MIT */
/*
 * A backend: what stands behind the verbs.
 *
 * A backend is one constant object of this type: data first, then one pointer for every verb that
 * libibverbs 44 exports or wraps inline in <infiniband/verbs.h>. It hands out libibverbs' own
 * structures. A NULL pointer is a verb that the backend does not have: the verbs layer puts a stub
 * in its place that answers EOPNOTSUPP in that verb's convention, so that nobody tests for NULL.
 *
 * Not here, because they go through an object's own pointers (ibv_start_poll and ibv_wc_read_*,
 * ibv_wr_*, ibv_memcpy_to_dm and ibv_memcpy_from_dm), because they need no device (rates, names of
 * enum values, ibv_inc_rkey, the ibv_copy_* of <infiniband/marshall.h>), or because they are no
 * verbs but parts of the driver interface (ibv_register_driver, ibv_get_sysfs_path,
 * ibv_read_sysfs_file, ibv_dontfork_range, ibv_dofork_range).
 *
 * The letter that begins each comment is how the verb tells of failure. Each is what the man page
 * of ibv_<name>(3) says, or <infiniband/verbs.h> where there is no page:
 *
 *	E	returns the errno value; 0 is success
 *	N	returns NULL and sets errno
 *	M	returns -1 and sets errno
 *	G	returns the negated errno value
 *	R	returns a code of enum ibv_rereg_mr_err_code and sets errno
 *	P	returns a negative value
 *	V	returns nothing and cannot fail
 *	Z	returns 0, "no", also on failure
 *	K	returns an enum value and cannot fail
 *
 * A backend may trust that the object it is given came from it, or from a program that wrote the
 * context pointer itself; it may not trust anything else in it. All functions may be called by
 * several threads at once. A refused call changes nothing.
 */
#ifndef VERBENA_BACKEND_H
#define VERBENA_BACKEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a caller may want to know of a backend before using it. */
enum vb_backend_capability {
	VB_BACKEND_SIMULATED = 1 << 0,	   /* its devices are software in this process */
	VB_BACKEND_VIRTUAL_CLOCK = 1 << 1, /* time can be simulated: waiting is what moves it */
	VB_BACKEND_TRACE = 1 << 2,	   /* it can write its packets to a pcap file */
};

struct vb_backend {
	/* --- data --- */

	const char *name;	   /* a word, as in VERBENA_BACKEND */
	const char *description;   /* one line, no full stop */
	unsigned int capabilities; /* enum vb_backend_capability */

	/* --- the verbs layer's questions; each may be NULL --- */

	/*
	 * One sentence on the calling thread's last failed call in this backend: the verb, the
	 * object and the cause. NULL or "" if there is nothing to say. It stays valid until the
	 * thread's next call.
	 */
	const char *(*last_error)(void);

	/*
	 * Whether a device or context is of this backend. The answer may read the public part of
	 * the structure and nothing else, since it may be another backend's; comparing an operation
	 * in context->ops is enough. Without it, the verbs layer remembers what the backend handed
	 * out.
	 */
	bool (*owns_device)(const struct ibv_device *device);
	bool (*owns_context)(const struct ibv_context *context);

	/*
	 * Whether an array is one that the backend handed out, by get_device_list or otherwise, and
	 * that is not freed. It may be anything: the answer may compare the pointer and not follow
	 * it. Without it, the verbs layer remembers what get_device_list handed out.
	 */
	bool (*owns_list)(struct ibv_device *const *list);

	/* --- devices --- */

	/*
	 * N: NULL-terminated array, freed by free_device_list. @num_devices may be NULL. No
	 * device: empty array.
	 */
	struct ibv_device **(*get_device_list)(int *num_devices);

	/* V: Frees an array of get_device_list; devices that are open stay valid. */
	void (*free_device_list)(struct ibv_device **list);

	/* N: Owned by the device. */
	const char *(*get_device_name)(struct ibv_device *device);

	/* M: The index, or -1 when there is none. */
	int (*get_device_index)(struct ibv_device *device);

	/* Z: Node GUID in network byte order; 0 when unknown. */
	__be64 (*get_device_guid)(struct ibv_device *device);

	/* N: A new context, ended by close_device. */
	struct ibv_context *(*open_device)(struct ibv_device *device);

	/* M: Ends a context. 0, or -1 with errno. */
	int (*close_device)(struct ibv_context *context);

	/* N: A context sharing the file behind @cmd_fd, which it then owns. */
	struct ibv_context *(*import_device)(int cmd_fd);

	/* E: Fills *device_attr. */
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *device_attr);

	/*
	 * E: Fills the first @attr_size bytes of *attr; @input may be NULL, else its comp_mask
	 * must be 0 (EINVAL).
	 */
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t attr_size);

	/* E: Fills the first @port_attr_size bytes of *port_attr. Ports count from 1. */
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr, size_t port_attr_size);

	/* M: One entry of the GID table. 0, or -1 with errno. */
	int (*query_gid)(struct ibv_context *context, uint8_t port_num, int index,
			 union ibv_gid *gid);

	/* E: One entry with its type; @flags must be 0. ENODATA: the entry is empty. */
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

	/* G: All valid entries of all ports. The number written, or a negative errno. */
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
				   size_t max_entries, uint32_t flags, size_t entry_size);

	/* M: One entry of the P_Key table, network order. 0, or -1 with errno. */
	int (*query_pkey)(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

	/* M: The index of @pkey (network order), or -1 with errno. */
	int (*get_pkey_index)(struct ibv_context *context, uint8_t port_num, __be16 pkey);

	/* E: Reads what values->comp_mask asks for and leaves in it what was read. */
	int (*query_rt_values_ex)(struct ibv_context *context, struct ibv_values_ex *values);

	/* M: Waits for the next event. 0, or -1 with errno; acknowledged by ack_async_event. */
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);

	/* V: Acknowledges one event; events of ports and devices need nothing. */
	void (*ack_async_event)(struct ibv_async_event *event);

	/* M: MAC and VLAN of the destination of @attr. 0, or a negative value with errno. */
	int (*resolve_eth_l2_from_gid)(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

	/* E: Makes fork safe for registered memory. Before any registration. */
	int (*fork_init)(void);

	/* K: IBV_FORK_DISABLED, IBV_FORK_ENABLED or IBV_FORK_UNNEEDED. */
	enum ibv_fork_status (*is_fork_initialized)(void);

	/* --- protection domains, thread domains and XRC domains --- */

	/* N: Ended by dealloc_pd. */
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);

	/* E: EBUSY while something is in it. */
	int (*dealloc_pd)(struct ibv_pd *pd);

	/* N: Ended by unimport_pd. */
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t pd_handle);

	/* V: Ends the local ibv_pd, not the PD. */
	void (*unimport_pd)(struct ibv_pd *pd);

	/* N: Ended by dealloc_td. */
	struct ibv_td *(*alloc_td)(struct ibv_context *context, struct ibv_td_init_attr *init_attr);

	/* E: EBUSY while a parent domain uses it. */
	int (*dealloc_td)(struct ibv_td *td);

	/* N: Ended by dealloc_pd; holds attr->pd and attr->td. */
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context,
					      struct ibv_parent_domain_init_attr *attr);

	/* N: Ended by close_xrcd. */
	struct ibv_xrcd *(*open_xrcd)(struct ibv_context *context,
				      struct ibv_xrcd_init_attr *xrcd_init_attr);

	/* E: The last close ends the domain. */
	int (*close_xrcd)(struct ibv_xrcd *xrcd);

	/* --- memory regions, windows and device memory --- */

	/* N: [@addr, @addr + @length bytes); the memory stays the caller's. Ended by dereg_mr. */
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);

	/* N: As reg_mr, addressed from @iova by work requests. */
	struct ibv_mr *(*reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access);

	/* N: As reg_mr_iova; knows optional flags and drops the unknown ones of their range. */
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access);

	/* N: @length bytes from @offset of the dma-buf @fd. */
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);

	/* R: 0 or enum ibv_rereg_mr_err_code with errno; each code says which MR is valid. */
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access);

	/* E: EBUSY while a window is bound to it. */
	int (*dereg_mr)(struct ibv_mr *mr);

	/* N: Ended by unimport_mr. */
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t mr_handle);

	/* V: Ends the local ibv_mr, not the MR. */
	void (*unimport_mr)(struct ibv_mr *mr);

	/* N: Reads zeros, swallows writes. Ended by dereg_mr. */
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);

	/* N: Zero based: @access needs IBV_ACCESS_ZERO_BASED. Ended by dereg_mr. */
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				    size_t length, unsigned int access);

	/* E: ENOTSUP: this advice; EOPNOTSUPP: the verb. */
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 struct ibv_sge *sg_list, uint32_t num_sge);

	/* N: Ended by dealloc_mw. */
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);

	/* E: Type 1 only (EINVAL); EPERM: MR of another PD. Posts a bind on @qp. */
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

	/* E: Unbinds first. */
	int (*dealloc_mw)(struct ibv_mw *mw);

	/* N: attr->length bytes, aligned to 1 << attr->log_align_req. Ended by free_dm. */
	struct ibv_dm *(*alloc_dm)(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);

	/* E: EBUSY while an MR uses it. */
	int (*free_dm)(struct ibv_dm *dm);

	/* N: Ended by unimport_dm. */
	struct ibv_dm *(*import_dm)(struct ibv_context *context, uint32_t dm_handle);

	/* V: Ends the local ibv_dm, not the DM. */
	void (*unimport_dm)(struct ibv_dm *dm);

	/* --- completion channels and queues --- */

	/* N: Its fd works with poll and O_NONBLOCK. Ended by destroy_comp_channel. */
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);

	/* E: EBUSY while a CQ uses it. */
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);

	/*
	 * N: At least @cqe entries; cq->cqe has the true number. @channel may be NULL. Ended by
	 * destroy_cq.
	 */
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);

	/* N: As create_cq, read with ibv_start_poll; EOPNOTSUPP for flags it does not know. */
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *cq_attr);

	/* E: At least @cqe entries; EINVAL if fewer than are waiting. */
	int (*resize_cq)(struct ibv_cq *cq, int cqe);

	/* E: Moderation: count, and period in microseconds. */
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

	/* E: EBUSY while a QP, SRQ or WQ uses it; waits for acknowledgements. */
	int (*destroy_cq)(struct ibv_cq *cq);

	/* M: Waits for the next event. 0, or -1 with errno; acknowledged by ack_cq_events. */
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);

	/* V: @nevents events at once. */
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);

	/* P: Number of completions, or negative. The same function as in context->ops. */
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

	/* E: One event for the next completion. The same function as in context->ops. */
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);

	/* --- shared receive queues --- */

	/* N: True sizes are written back. Ended by destroy_srq. */
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

	/* N: Also XRC and tag matching; a basic one with only a PD is create_srq. */
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct ibv_srq_init_attr_ex *srq_init_attr_ex);

	/* E: IBV_SRQ_MAX_WR resizes, IBV_SRQ_LIMIT arms the limit event once. */
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

	/* E: Fills *srq_attr. */
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

	/* E: The number of an XRC SRQ. */
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *srq_num);

	/* E: EBUSY while a QP uses it; waits for acknowledgements. */
	int (*destroy_srq)(struct ibv_srq *srq);

	/* E: The first WR not posted goes to *bad_recv_wr. The same function as in context->ops. */
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			     struct ibv_recv_wr **bad_recv_wr);

	/* E: Tag matching. The first not posted goes to *bad_op, also for EOPNOTSUPP. */
	int (*post_srq_ops)(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

	/* --- queue pairs --- */

	/* N: True capacities are written back. Ended by destroy_qp. */
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

	/* N: With only a PD in comp_mask it is create_qp. */
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *qp_init_attr_ex);

	/* N: The extended view, or NULL when @qp was not made with send operations. */
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);

	/* N: A second handle of a shareable QP. Ended by destroy_qp. */
	struct ibv_qp *(*open_qp)(struct ibv_context *context,
				  struct ibv_qp_open_attr *qp_open_attr);

	/* E: The state table; a refused change changes nothing. */
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

	/* E: May fill more than @attr_mask asks for. */
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr);

	/* Z: 1: data is written in order; 0: no promise, and on any error. */
	int (*query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

	/* E: rate_limit in kbit/s, max_burst_sz and typical_pkt_sz in bytes. */
	int (*modify_qp_rate_limit)(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

	/* E: Enhanced connection establishment options, before RTR. */
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);

	/* E: The options in force. */
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);

	/* E: EBUSY while attached to a group; waits for acknowledgements. */
	int (*destroy_qp)(struct ibv_qp *qp);

	/* E: The first WR not posted goes to *bad_wr. The same function as in context->ops. */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

	/* E: The first WR not posted goes to *bad_wr. The same function as in context->ops. */
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

	/* E: UD QPs only (EINVAL). @lid in host order. */
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* E: EINVAL when it is not attached. */
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* --- address handles --- */

	/* N: Ended by destroy_ah. */
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);

	/* M: The way back to the sender of @wc. 0, or -1 with errno. */
	int (*init_ah_from_wc)(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

	/* N: init_ah_from_wc and create_ah. */
	struct ibv_ah *(*create_ah_from_wc)(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port_num);

	/* E: Work that still uses it must have completed. */
	int (*destroy_ah)(struct ibv_ah *ah);

	/* --- work queues and receive side scaling --- */

	/*
	 * N: True sizes are written back; the backend initialises the whole ibv_wq. Ended by
	 * destroy_wq.
	 */
	struct ibv_wq *(*create_wq)(struct ibv_context *context,
				    struct ibv_wq_init_attr *wq_init_attr);

	/* E: State and flags, as wq_attr->attr_mask says. */
	int (*modify_wq)(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);

	/* E: EBUSY while a table uses it. */
	int (*destroy_wq)(struct ibv_wq *wq);

	/* N: 1 << log_ind_tbl_size entries. Ended by destroy_rwq_ind_table. */
	struct ibv_rwq_ind_table *(*create_rwq_ind_table)(
		struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *init_attr);

	/* E: EBUSY while a QP uses it. */
	int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table *rwq_ind_table);

	/* --- flows and counters --- */

	/* N: Steers matching packets to @qp. Ended by destroy_flow. */
	struct ibv_flow *(*create_flow)(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);

	/* E: Ends a flow. */
	int (*destroy_flow)(struct ibv_flow *flow_id);

	/* N: Ended by destroy_flow_action. */
	struct ibv_flow_action *(*create_flow_action_esp)(struct ibv_context *context,
							  struct ibv_flow_action_esp_attr *esp);

	/* E: On failure the last action holds. */
	int (*modify_flow_action_esp)(struct ibv_flow_action *action,
				      struct ibv_flow_action_esp_attr *esp);

	/* E: EBUSY while a flow uses it. */
	int (*destroy_flow_action)(struct ibv_flow_action *action);

	/* N: Ended by destroy_counters. */
	struct ibv_counters *(*create_counters)(struct ibv_context *context,
						struct ibv_counters_init_attr *init_attr);

	/* E: EBUSY while a flow uses it. */
	int (*destroy_counters)(struct ibv_counters *counters);

	/* E: @flow NULL: for a flow to come. */
	int (*attach_counters_point_flow)(struct ibv_counters *counters,
					  struct ibv_counter_attach_attr *attr,
					  struct ibv_flow *flow);

	/* E: @ncounters values from place 0. */
	int (*read_counters)(struct ibv_counters *counters, uint64_t *counters_value,
			     uint32_t ncounters, uint32_t flags);
};

/*
 * For layers that stack on a backend: what vb_find_backend() answers, to be written to. The verbs
 * call through it, whichever thread they are called on. A layer keeps a copy, puts functions of its
 * own in place of some while no verb is being called, and later puts the old ones back in the same
 * way. The data and the questions are not to be changed. NULL and errno EINVAL as vb_find_backend().
 */
struct vb_backend *vb_backend_slot(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_BACKEND_H */
