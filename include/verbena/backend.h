/* SPDX-License-Identifier: MIT */
/*
 * A backend: the implementation behind the verbs.
 *
 * A backend is one constant object of this type: data first, then a pointer for every verb that
 * libibverbs 44 exports or wraps inline in <infiniband/verbs.h>. A backend creates libibverbs' own
 * structures. A NULL pointer means that the backend does not have the verb: the verbs layer puts a
 * stub in its place that answers EOPNOTSUPP in the verb's convention, so no caller tests for NULL.
 *
 * Some functions of <infiniband/verbs.h> have no pointer here:
 * - those that call through an object: ibv_start_poll and the ibv_wc_read_* functions, ibv_wr_*,
 *   ibv_memcpy_to_dm and ibv_memcpy_from_dm;
 * - those that need no device: rates, names of enum values, ibv_inc_rkey, and the ibv_copy_* of
 *   <infiniband/marshall.h>;
 * - those for providers: ibv_register_driver, ibv_get_sysfs_path, ibv_read_sysfs_file,
 *   ibv_dontfork_range and ibv_dofork_range.
 *
 * Unless its comment says otherwise, a verb reports a failure by its result: a verb that returns a
 * pointer returns NULL and sets errno, and a verb that returns int returns an errno value; 0 is
 * success. "-1 with errno" means that the verb returns -1 and sets errno. <verbena/verbs.def> has
 * the same as words for macros. The contracts are those of the man pages ibv_<name>(3), or of
 * <infiniband/verbs.h> if there is no page; <verbena/verbs.h> has the manual for callers.
 *
 * "Also in context->ops" means that ibv_<name>() and vb_<name>() are inline and call the pointer in
 * context->ops, which must be the same function.
 *
 * A backend may trust that an object it gets is its own, or comes from a program that wrote the
 * context pointer itself. It must not trust anything else in the object. Any thread may call any
 * function at any time. A call that fails changes nothing.
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

/* What a caller may want to know about a backend before using it. */
enum vb_backend_capability {
	VB_BACKEND_SIMULATED = 1 << 0,	   /* its devices are software in this process */
	VB_BACKEND_VIRTUAL_CLOCK = 1 << 1, /* it can simulate time: waiting moves its clock */
	VB_BACKEND_TRACE = 1 << 2,	   /* it can write its packets to a pcap file */
};

struct vb_backend {
	/* --- data --- */

	const char *name;	   /* a word, as in VERBENA_BACKEND */
	const char *description;   /* one line, no full stop */
	unsigned int capabilities; /* enum vb_backend_capability */

	/* --- the verbs layer's questions; each may be NULL --- */

	/*
	 * Returns one sentence on the calling thread's last failed call in this backend: the verb,
	 * the object and the cause. NULL or "" means that the backend has no sentence. The sentence
	 * stays valid until the thread's next call.
	 */
	const char *(*last_error)(void);

	/*
	 * Return true if a device or a context is this backend's. The structure may be another
	 * backend's, so only its public part may be read; comparing an operation in context->ops is
	 * enough. Without these, the verbs layer remembers the backend's devices and contexts.
	 */
	bool (*owns_device)(const struct ibv_device *device);
	bool (*owns_context)(const struct ibv_context *context);

	/*
	 * Returns true if @list is an array that the backend has handed out, by get_device_list or
	 * otherwise, and that has not been freed. @list may be any pointer: compare it, and do not
	 * follow it. Without this, the verbs layer remembers the arrays of get_device_list.
	 */
	bool (*owns_list)(struct ibv_device *const *list);

	/* --- devices --- */

	/*
	 * Returns a NULL-terminated array, empty without devices, which free_device_list frees.
	 * Sets *@num_devices, unless it is NULL, to the number of devices.
	 */
	struct ibv_device **(*get_device_list)(int *num_devices);

	/* Frees an array of get_device_list. Open devices stay valid. */
	void (*free_device_list)(struct ibv_device **list);

	/* Returns the device's name, which the device owns. */
	const char *(*get_device_name)(struct ibv_device *device);

	/* Returns the kernel's index of the device, or -1 if there is none. */
	int (*get_device_index)(struct ibv_device *device);

	/* Returns the node GUID in network byte order, or 0 if it is unknown. */
	__be64 (*get_device_guid)(struct ibv_device *device);

	/* Returns a new context, which close_device closes. */
	struct ibv_context *(*open_device)(struct ibv_device *device);

	/* Closes a context. Returns 0, or -1 with errno. */
	int (*close_device)(struct ibv_context *context);

	/* Returns a new context, which owns @cmd_fd and which close_device closes. */
	struct ibv_context *(*import_device)(int cmd_fd);

	/* Fills *@device_attr. */
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *device_attr);

	/*
	 * Fills the first @attr_size bytes. EINVAL if @input is not NULL and its comp_mask not 0.
	 */
	int (*query_device_ex)(struct ibv_context *context,
			       const struct ibv_query_device_ex_input *input,
			       struct ibv_device_attr_ex *attr, size_t attr_size);

	/* Fills the first @port_attr_size bytes of *@port_attr. Ports count from 1. */
	int (*query_port)(struct ibv_context *context, uint8_t port_num,
			  struct ibv_port_attr *port_attr, size_t port_attr_size);

	/* Reads one entry of the GID table. Returns 0, or -1 with errno. */
	int (*query_gid)(struct ibv_context *context, uint8_t port_num, int index,
			 union ibv_gid *gid);

	/* Reads a GID table entry and its type. @flags must be 0. ENODATA for an empty entry. */
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

	/* Reads all valid entries of all ports. Returns their number, or a negated errno value. */
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
				   size_t max_entries, uint32_t flags, size_t entry_size);

	/* Reads a P_Key table entry, in network byte order. Returns 0, or -1 with errno. */
	int (*query_pkey)(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

	/* Returns the index of @pkey, which is in network byte order, or -1 with errno. */
	int (*get_pkey_index)(struct ibv_context *context, uint8_t port_num, __be16 pkey);

	/* Reads the values that values->comp_mask selects, and clears the bits of all others. */
	int (*query_rt_values_ex)(struct ibv_context *context, struct ibv_values_ex *values);

	/* Waits for an event, which ack_async_event acknowledges. Returns 0, or -1 with errno. */
	int (*get_async_event)(struct ibv_context *context, struct ibv_async_event *event);

	/* Acknowledges one event. Events of ports and devices need no acknowledgement. */
	void (*ack_async_event)(struct ibv_async_event *event);

	/* Finds MAC and VLAN of the destination in @attr. Returns 0, or negative with errno. */
	int (*resolve_eth_l2_from_gid)(struct ibv_context *context, struct ibv_ah_attr *attr,
				       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

	/* Makes fork() safe for registered memory. Must be called before any registration. */
	int (*fork_init)(void);

	/* Returns IBV_FORK_DISABLED, IBV_FORK_ENABLED or IBV_FORK_UNNEEDED. */
	enum ibv_fork_status (*is_fork_initialized)(void);

	/* --- protection domains, thread domains and XRC domains --- */

	/* Returns a new PD, which dealloc_pd frees. */
	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);

	/* Frees a PD or a parent domain. EBUSY while an object is in it. */
	int (*dealloc_pd)(struct ibv_pd *pd);

	/* Returns a second ibv_pd for a PD, which unimport_pd frees. */
	struct ibv_pd *(*import_pd)(struct ibv_context *context, uint32_t pd_handle);

	/* Frees the ibv_pd and keeps the PD. */
	void (*unimport_pd)(struct ibv_pd *pd);

	/* Returns a new thread domain, which dealloc_td frees. */
	struct ibv_td *(*alloc_td)(struct ibv_context *context, struct ibv_td_init_attr *init_attr);

	/* Frees a thread domain. EBUSY while a parent domain uses it. */
	int (*dealloc_td)(struct ibv_td *td);

	/* Returns a parent domain, which holds attr->pd and attr->td. dealloc_pd frees it. */
	struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *context,
					      struct ibv_parent_domain_init_attr *attr);

	/* Returns an open XRC domain, which close_xrcd closes. */
	struct ibv_xrcd *(*open_xrcd)(struct ibv_context *context,
				      struct ibv_xrcd_init_attr *xrcd_init_attr);

	/* Closes an XRC domain; the last close frees the domain. */
	int (*close_xrcd)(struct ibv_xrcd *xrcd);

	/* --- memory regions, windows and device memory --- */

	/* Registers memory, which stays the caller's. Returns an MR, which dereg_mr frees. */
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access);

	/* Like reg_mr, but work requests address the first byte as @iova. */
	struct ibv_mr *(*reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access);

	/* Like reg_mr_iova. Drops the flags of IBV_ACCESS_OPTIONAL_RANGE that it does not know. */
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned int access);

	/* Registers @length bytes from @offset of the dma-buf @fd. dereg_mr frees the MR. */
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);

	/*
	 * Changes an MR. Returns 0, or a value of enum ibv_rereg_mr_err_code with errno; each value
	 * says whether the old MR or the new MR is valid.
	 */
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access);

	/* Frees an MR. EBUSY while a window is bound to the MR. */
	int (*dereg_mr)(struct ibv_mr *mr);

	/* Returns a second ibv_mr for an MR, which unimport_mr frees. */
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t mr_handle);

	/* Frees the ibv_mr and keeps the MR. */
	void (*unimport_mr)(struct ibv_mr *mr);

	/* Returns an MR that reads as zeros and discards writes, which dereg_mr frees. */
	struct ibv_mr *(*alloc_null_mr)(struct ibv_pd *pd);

	/* Zero based: @access needs IBV_ACCESS_ZERO_BASED. dereg_mr frees the MR. */
	struct ibv_mr *(*reg_dm_mr)(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				    size_t length, unsigned int access);

	/* ENOTSUP: the backend lacks this advice. EOPNOTSUPP: the backend lacks the verb. */
	int (*advise_mr)(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			 struct ibv_sge *sg_list, uint32_t num_sge);

	/* Returns a new memory window, which dealloc_mw frees. */
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);

	/* Posts a bind. EINVAL for a type 2 window, EPERM if MR and window have different PDs. */
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

	/* Unbinds a window and frees it. */
	int (*dealloc_mw)(struct ibv_mw *mw);

	/* Returns attr->length bytes, aligned to 1 << attr->log_align_req. free_dm frees them. */
	struct ibv_dm *(*alloc_dm)(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);

	/* Frees device memory. EBUSY while an MR uses it. */
	int (*free_dm)(struct ibv_dm *dm);

	/* Returns a second ibv_dm for a DM, which unimport_dm frees. */
	struct ibv_dm *(*import_dm)(struct ibv_context *context, uint32_t dm_handle);

	/* Frees the ibv_dm and keeps the device memory. */
	void (*unimport_dm)(struct ibv_dm *dm);

	/* --- completion channels and queues --- */

	/* Returns a channel, whose fd works with poll(). destroy_comp_channel destroys it. */
	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);

	/* Destroys a channel. EBUSY while a CQ uses the channel. */
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);

	/*
	 * Returns a CQ of at least @cqe entries, which destroy_cq destroys. cq->cqe has the true
	 * number. @channel may be NULL.
	 */
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector);

	/* Like create_cq, read with ibv_start_poll. EOPNOTSUPP for flags that it does not know. */
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *cq_attr);

	/* Resizes a CQ to at least @cqe entries. EINVAL if more completions are waiting. */
	int (*resize_cq)(struct ibv_cq *cq, int cqe);

	/* Changes the moderation: a count, and a period in microseconds. */
	int (*modify_cq)(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

	/* Waits until all events are acknowledged. EBUSY while a QP, SRQ or WQ uses the CQ. */
	int (*destroy_cq)(struct ibv_cq *cq);

	/* Waits for an event, which ack_cq_events acknowledges. Returns 0, or -1 with errno. */
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);

	/* Acknowledges @nevents events. */
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int nevents);

	/* Returns the number of completions, or a negative value. Also in context->ops. */
	int (*poll_cq)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

	/* Requests one event for the next completion. Also in context->ops. */
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);

	/* --- shared receive queues --- */

	/* Returns an SRQ, which destroy_srq destroys. Writes the true sizes back. */
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

	/* Like create_srq, also for XRC and tag matching. With only a PD it is create_srq. */
	struct ibv_srq *(*create_srq_ex)(struct ibv_context *context,
					 struct ibv_srq_init_attr_ex *srq_init_attr_ex);

	/* IBV_SRQ_MAX_WR resizes the SRQ; IBV_SRQ_LIMIT arms one limit event. */
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

	/* Fills *@srq_attr. */
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

	/* Reads the number of an XRC SRQ. */
	int (*get_srq_num)(struct ibv_srq *srq, uint32_t *srq_num);

	/* Waits until all events are acknowledged. EBUSY while a QP uses the SRQ. */
	int (*destroy_srq)(struct ibv_srq *srq);

	/*
	 * On failure *@bad_recv_wr is the first receive that was not posted. Also in context->ops.
	 */
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			     struct ibv_recv_wr **bad_recv_wr);

	/* On any failure *@bad_op is the first tag matching operation that was not posted. */
	int (*post_srq_ops)(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

	/* --- queue pairs --- */

	/* Returns a QP, which destroy_qp destroys. Writes the true capacities back. */
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

	/* Like create_qp, with more attributes. With only a PD in comp_mask it is create_qp. */
	struct ibv_qp *(*create_qp_ex)(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *qp_init_attr_ex);

	/* Returns the extended view, or NULL if the QP was created without send operations. */
	struct ibv_qp_ex *(*qp_to_qp_ex)(struct ibv_qp *qp);

	/* Returns a second handle of a shareable QP, which destroy_qp destroys. */
	struct ibv_qp *(*open_qp)(struct ibv_context *context,
				  struct ibv_qp_open_attr *qp_open_attr);

	/* Changes a QP as the state table allows. */
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

	/* Fills *@attr, at least what @attr_mask selects, and *@init_attr. */
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
			struct ibv_qp_init_attr *init_attr);

	/* Returns 1 if data is written in order, or 0 if that is not sure, also on failure. */
	int (*query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

	/* Sets rate_limit in kbit/s, max_burst_sz and typical_pkt_sz in bytes. */
	int (*modify_qp_rate_limit)(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

	/* Sets the options of enhanced connection establishment, before RTR. */
	int (*set_ece)(struct ibv_qp *qp, struct ibv_ece *ece);

	/* Reads the options that are in force. */
	int (*query_ece)(struct ibv_qp *qp, struct ibv_ece *ece);

	/* Waits until all events are acknowledged. EBUSY while attached to a multicast group. */
	int (*destroy_qp)(struct ibv_qp *qp);

	/* On failure *@bad_wr is the first request that was not posted. Also in context->ops. */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

	/* On failure *@bad_wr is the first receive that was not posted. Also in context->ops. */
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

	/* Attaches a UD QP to a group; @lid is in host byte order. EINVAL for any other QP. */
	int (*attach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* Detaches a QP from a group. EINVAL if the QP is not attached. */
	int (*detach_mcast)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

	/* --- address handles --- */

	/* Returns an address handle, which destroy_ah destroys. */
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, struct ibv_ah_attr *attr);

	/* Fills *@ah_attr with the way back to the sender of @wc. Returns 0, or -1 with errno. */
	int (*init_ah_from_wc)(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

	/* init_ah_from_wc and create_ah in one. destroy_ah destroys the handle. */
	struct ibv_ah *(*create_ah_from_wc)(struct ibv_pd *pd, struct ibv_wc *wc,
					    struct ibv_grh *grh, uint8_t port_num);

	/* Destroys an address handle. The work that uses it must have completed. */
	int (*destroy_ah)(struct ibv_ah *ah);

	/* --- work queues and receive side scaling --- */

	/*
	 * Returns a WQ, which destroy_wq destroys. Initialises the whole ibv_wq, and writes the
	 * true sizes back.
	 */
	struct ibv_wq *(*create_wq)(struct ibv_context *context,
				    struct ibv_wq_init_attr *wq_init_attr);

	/* Changes the state and the flags that wq_attr->attr_mask selects. */
	int (*modify_wq)(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);

	/* Destroys a WQ. EBUSY while a table uses the WQ. */
	int (*destroy_wq)(struct ibv_wq *wq);

	/* Returns a table of 1 << log_ind_tbl_size WQs. destroy_rwq_ind_table destroys it. */
	struct ibv_rwq_ind_table *(*create_rwq_ind_table)(
		struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *init_attr);

	/* Destroys a table. EBUSY while a QP uses the table. */
	int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table *rwq_ind_table);

	/* --- flows and counters --- */

	/* Returns a flow, which steers matching packets to @qp. destroy_flow destroys it. */
	struct ibv_flow *(*create_flow)(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);

	/* Destroys a flow. */
	int (*destroy_flow)(struct ibv_flow *flow_id);

	/* Returns an ESP action, which destroy_flow_action destroys. */
	struct ibv_flow_action *(*create_flow_action_esp)(struct ibv_context *context,
							  struct ibv_flow_action_esp_attr *esp);

	/* Changes an ESP action. After a failure the old action is in force. */
	int (*modify_flow_action_esp)(struct ibv_flow_action *action,
				      struct ibv_flow_action_esp_attr *esp);

	/* Destroys an action. EBUSY while a flow uses the action. */
	int (*destroy_flow_action)(struct ibv_flow_action *action);

	/* Returns a set of counters, which destroy_counters destroys. */
	struct ibv_counters *(*create_counters)(struct ibv_context *context,
						struct ibv_counters_init_attr *init_attr);

	/* Destroys a set of counters. EBUSY while a flow uses the set. */
	int (*destroy_counters)(struct ibv_counters *counters);

	/* Adds a counter to a set, for @flow; NULL: for a flow that will name the set. */
	int (*attach_counters_point_flow)(struct ibv_counters *counters,
					  struct ibv_counter_attach_attr *attr,
					  struct ibv_flow *flow);

	/* Reads the first @ncounters values. */
	int (*read_counters)(struct ibv_counters *counters, uint64_t *counters_value,
			     uint32_t ncounters, uint32_t flags);
};

/*
 * For layers that stack on a backend. Returns the backend that vb_find_backend() returns, and lets
 * the caller write to it; NULL with errno EINVAL like vb_find_backend().
 *
 * The verbs of all threads call through this object. A layer keeps a copy of it, replaces the
 * functions that it wraps while no verb is being called, and later puts the old functions back in
 * the same way. The data and the verbs layer's questions must not be changed.
 */
struct vb_backend *vb_backend_slot(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_BACKEND_H */
