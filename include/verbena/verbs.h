/* SPDX-License-Identifier: MIT */
/*
 * The verbs, on the backend of their object.
 *
 * vb_<name>() has the arguments, the structures and the error convention of ibv_<name>() of
 * libibverbs, and finds the backend by the context of its object. A function without an object
 * takes the backend's name. A program may use objects of several backends at the same time, but not
 * in one call.
 *
 * Functions of <infiniband/verbs.h> that call through an object work on every backend and have no
 * counterpart here: ibv_start_poll(), the ibv_wc_read_* functions, and ibv_wr_*(). All other
 * functions of that header belong to the real library, and must not get an object of another
 * backend.
 *
 * Ownership. An object lives until the caller destroys it with the function that the comment of its
 * creator names; destroy the objects that were created from it first. A structure passed by pointer
 * is read or filled before the call returns, and is not kept, unless the comment says so.
 *
 * Threads. Any thread may call any function, also on the same object at the same time. While a
 * thread destroys an object, no other thread may use it.
 *
 * Sources. The comment of a verb sums up its man page, ibv_<name>(3), or names another source.
 *
 * Errors. "Returns 0 or errno" means 0 or an errno value, which errno then has, too. errno values are
 * those of the function's man page; the comments name a few. Besides, every verb except the inline
 * ones answers EINVAL for a NULL object and for an object of an unknown context, ENOENT for an object
 * that has been destroyed or whose handle the program has changed, and EOPNOTSUPP if the backend does
 * not have the verb, all in the verb's convention. A verb that fails changes nothing and leaves a
 * sentence for vb_last_error() (<verbena/error.h>). A verb that succeeds may change errno.
 */
#ifndef VERBENA_VERBS_H
#define VERBENA_VERBS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <verbena/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- backends --- */

/*
 * Returns the backend of the name @name, or NULL with errno EINVAL if there is none;
 * vb_last_error() then lists the known backends. NULL or "" stands for the backend that the
 * environment variable VERBENA_BACKEND names, and for "sim" if the variable is unset or empty. The
 * backend is constant and has no NULL verb.
 */
const struct vb_backend *vb_find_backend(const char *name);

/*
 * Returns backend number @index, counted from 0, or NULL past the last backend. For listing the
 * backends.
 */
const struct vb_backend *vb_backend_at(unsigned int index);

/*
 * Return the backend of an open context, or of a device, which must be open or in a list that has
 * not been freed. Return NULL with errno EINVAL if no backend owns the context or the device.
 */
const struct vb_backend *vb_context_backend(const struct ibv_context *context);
const struct vb_backend *vb_device_backend(const struct ibv_device *device);

/* --- devices --- */

/*
 * Lists the devices of the backend @backend; NULL and "" are as for vb_find_backend(). Returns a
 * NULL-terminated array, which is empty if there are no devices, and sets *@num_devices, unless it
 * is NULL, to the number of devices. The caller frees the array with vb_free_device_list() and
 * opens the devices that it needs before that. free(3) frees the array as well, and its devices then
 * live on, as with libibverbs. Errors: NULL with errno EINVAL (there is no such
 * backend; vb_last_error() lists the known ones), ENOSYS (the backend cannot work on this
 * machine), ENOMEM, or another value of the backend.
 */
struct ibv_device **vb_get_device_list(const char *backend, int *num_devices);

/*
 * Frees an array of vb_get_device_list(). The array's devices become invalid, except those that
 * are open. NULL is ignored. An array that no backend owns is left alone, and vb_last_error()
 * names it.
 */
void vb_free_device_list(struct ibv_device **list);

/*
 * Returns the name of @device, such as "sim0" or "mlx5_0". The device owns the string. Errors:
 * NULL with errno EINVAL (no backend owns @device).
 */
const char *vb_get_device_name(struct ibv_device *device);

/*
 * Returns the kernel's index of @device, or -1 if the device has none. Errors: -1 with errno
 * EINVAL (no backend owns @device).
 */
int vb_get_device_index(struct ibv_device *device);

/*
 * Returns the node GUID of @device in network byte order. Errors: 0 with errno EINVAL (no backend
 * owns @device).
 */
__be64 vb_get_device_guid(struct ibv_device *device);

/*
 * Opens @device. The context is valid until vb_close_device(), and so is @device. Errors: NULL
 * with errno EINVAL (no backend owns @device), ENOMEM, or another value of the backend.
 */
struct ibv_context *vb_open_device(struct ibv_device *device);

/*
 * Closes @context, which is invalid afterwards. Destroy the context's objects first: this function
 * does not. Returns 0, or -1 with errno (EINVAL: no backend owns @context).
 */
int vb_close_device(struct ibv_context *context);

/*
 * Creates a context in the backend @backend from @cmd_fd, a duplicate of another context's cmd_fd;
 * NULL and "" are as for vb_find_backend(). The new context owns @cmd_fd. vb_close_device() closes
 * the context. The other context may be of another process; on simulated devices both processes
 * have the wire shared and the same world. Errors: NULL with errno.
 */
struct ibv_context *vb_import_device(const char *backend, int cmd_fd);

/* Fills *@device_attr with the limits and the identity of the device. Returns 0 or errno. */
int vb_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/*
 * Fills the first @attr_size bytes of *@attr; callers pass sizeof(*attr). Fields that the device
 * does not know are 0. @input may be NULL. Returns 0 or errno (EINVAL: input->comp_mask is not 0).
 */
int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);

/*
 * Fills the first @port_attr_size bytes of *@port_attr for port @port_num, counted from 1. Callers
 * pass sizeof(*port_attr), so that no byte is written past the end of the shorter structure of an
 * older program. Returns 0 or errno (EINVAL: no such port).
 */
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		  size_t port_attr_size);

/* Reads entry @index of the GID table of port @port_num. Returns 0, or -1 with errno. */
int vb_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

/*
 * Reads entry @gid_index of the GID table of port @port_num, with its type and network interface,
 * into the first @entry_size bytes of *@entry. @flags must be 0. Returns 0 or errno (ENODATA: the
 * entry is empty; EINVAL: no such port or index, or bad flags).
 */
int vb_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

/*
 * Reads the valid entries of the GID tables of all ports, at most @max_entries, to places
 * @entry_size bytes apart. @flags must be 0. Returns the number of entries, or a negated errno value.
 */
ssize_t vb_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			   size_t max_entries, uint32_t flags, size_t entry_size);

/*
 * Reads entry @index of the P_Key table of port @port_num, in network byte order. Returns 0, or -1
 * with errno.
 */
int vb_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

/*
 * Returns the index of @pkey, which is in network byte order, in the P_Key table of port
 * @port_num, or -1 with errno.
 */
int vb_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);

/*
 * Reads the values that values->comp_mask selects, and clears the bits of the values that were not
 * read. IBV_VALUES_MASK_RAW_CLOCK is the clock of completion timestamps, in device ticks, although
 * the field is a timespec. Returns 0 or errno.
 */
int vb_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);

/*
 * Waits for the next asynchronous event of @context. With O_NONBLOCK on context->async_fd it does
 * not wait. The caller acknowledges each event with vb_ack_async_event(): until then, destroying
 * the event's object waits. Returns 0, or -1 with errno (EAGAIN: no event, and O_NONBLOCK is set;
 * EDEADLK: under a virtual clock no event can ever happen).
 */
int vb_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/*
 * Acknowledges an event of vb_get_async_event(), once. Any thread may call it. Events of ports and
 * devices name no object and need no acknowledgement.
 */
void vb_ack_async_event(struct ibv_async_event *event);

/*
 * Finds the Ethernet address of the destination GID in @attr, and its VLAN, or 0xffff if it has
 * none. Returns 0, or a negative value.
 * Source: <infiniband/verbs.h>; there is no man page.
 */
int vb_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
			       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

/*
 * Makes fork() safe for memory that is registered with the backend @backend; NULL and "" are as
 * for vb_find_backend(). Call it before any registration. Returns 0 or errno (EINVAL: memory is
 * registered already).
 */
int vb_fork_init(const char *backend);

/*
 * Returns whether fork() is safe with the backend @backend: IBV_FORK_DISABLED, IBV_FORK_ENABLED or
 * IBV_FORK_UNNEEDED. Errors: IBV_FORK_DISABLED with errno EINVAL (there is no such backend).
 */
enum ibv_fork_status vb_is_fork_initialized(const char *backend);

/* --- protection domains, thread domains and XRC domains --- */

/* Allocates a protection domain; vb_dealloc_pd() frees it. Errors: NULL with errno. */
struct ibv_pd *vb_alloc_pd(struct ibv_context *context);

/*
 * Frees a protection domain or a parent domain. Returns 0 or errno (EBUSY: an object still uses
 * it).
 */
int vb_dealloc_pd(struct ibv_pd *pd);

/*
 * Creates a second ibv_pd for a PD of the file that @context shares; see vb_import_device().
 * @pd_handle is the handle in the first ibv_pd. vb_unimport_pd() frees the new one. Errors: NULL
 * with errno.
 */
struct ibv_pd *vb_import_pd(struct ibv_context *context, uint32_t pd_handle);

/* Frees an ibv_pd of vb_import_pd(). The PD stays. */
void vb_unimport_pd(struct ibv_pd *pd);

/*
 * Allocates a thread domain, with which the caller promises that one thread at a time uses the
 * objects that are created in it. init_attr->comp_mask must be 0. vb_dealloc_td() frees it.
 * Errors: NULL with errno.
 */
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);

/* Frees a thread domain. Returns 0 or errno (EBUSY: a parent domain uses it). */
int vb_dealloc_td(struct ibv_td *td);

/*
 * Creates a parent domain over attr->pd, with the thread domain or the allocators that @attr
 * names. Free it with vb_dealloc_pd(), before its PD and its TD. Errors: NULL with errno (EINVAL:
 * no PD, or unknown bits in comp_mask).
 */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);

/*
 * Opens the XRC domain of the file behind xrcd_init_attr->fd; -1 stands for a private domain.
 * oflags may hold O_CREAT and O_EXCL. vb_close_xrcd() closes it. Errors: NULL with errno.
 */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr);

/*
 * Closes an XRC domain; the last close frees the domain. Returns 0 or errno (EBUSY: an object uses
 * it).
 */
int vb_close_xrcd(struct ibv_xrcd *xrcd);

/* --- memory regions, windows and device memory --- */

/*
 * Registers @length bytes at @addr with the rights @access (enum ibv_access_flags). The memory
 * stays the caller's and must stay mapped until vb_dereg_mr(). Flags of IBV_ACCESS_OPTIONAL_RANGE
 * that are not known are ignored. Errors: NULL with errno (EINVAL: bad rights, such as remote
 * write without local write; ENOMEM).
 */
struct ibv_mr *vb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

/*
 * Like vb_reg_mr(), but work requests address the first byte as @iova instead of @addr.
 * Source: man ibv_reg_mr(3).
 */
struct ibv_mr *vb_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			      int access);

/*
 * Like vb_reg_mr_iova(). The real library sends vb_reg_mr() and vb_reg_mr_iova() here if @access
 * has flags of IBV_ACCESS_OPTIONAL_RANGE.
 * Source: <infiniband/verbs.h>; there is no man page.
 */
struct ibv_mr *vb_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       unsigned int access);

/*
 * Registers @length bytes from @offset of the dma-buf @fd; work requests address the first byte as
 * @iova. vb_dereg_mr() frees the MR. Errors: NULL with errno (EOPNOTSUPP: there are no dma-bufs).
 * Source: man ibv_reg_mr(3).
 */
struct ibv_mr *vb_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				int fd, int access);

/*
 * Changes the translation, the PD or the rights of @mr, as @flags (enum ibv_rereg_mr_flags)
 * select. The keys may change. Returns 0, or a value of enum ibv_rereg_mr_err_code with errno.
 * After IBV_REREG_MR_ERR_INPUT and _DONT_FORK_NEW the old MR is valid; after _DO_FORK_OLD the new
 * MR is valid; after the _CMD values neither is. A device without the verb answers
 * IBV_REREG_MR_ERR_INPUT with errno EOPNOTSUPP.
 */
int vb_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		int access);

/* Frees an MR of any kind. Returns 0 or errno (EBUSY: a memory window is bound to it). */
int vb_dereg_mr(struct ibv_mr *mr);

/*
 * Creates a second ibv_mr for an MR of a shared file; see vb_import_device(). The addr of the new
 * ibv_mr is NULL. vb_unimport_mr() frees it. Errors: NULL with errno.
 */
struct ibv_mr *vb_import_mr(struct ibv_pd *pd, uint32_t mr_handle);

/* Frees an ibv_mr of vb_import_mr(). The MR stays. */
void vb_unimport_mr(struct ibv_mr *mr);

/*
 * Allocates an MR whose lkey reads as zeros and discards writes. vb_dereg_mr() frees it. Errors:
 * NULL with errno.
 */
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);

/*
 * Registers @length bytes from @dm_offset of device memory. Work requests address its first byte
 * as 0, so @access needs IBV_ACCESS_ZERO_BASED. Free the MR with vb_dereg_mr(), before the device
 * memory. Errors: NULL with errno.
 * Source: man ibv_alloc_dm(3).
 */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			    unsigned int access);

/*
 * Gives advice on @num_sge ranges of MRs of @pd. Returns 0 or errno: EOPNOTSUPP (no such verb),
 * ENOTSUP (no such advice), EFAULT, EINVAL, EPERM, ENOENT, ENOMEM (see the man page).
 */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge);

/*
 * Allocates an unbound memory window of @type; vb_dealloc_mw() frees it. Errors: NULL with errno.
 */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);

/*
 * Posts a bind of a type 1 window to a range of an MR; a length of 0 unbinds the window. The bind
 * completes on the send CQ of @qp. Returns 0, with the new rkey in mw->rkey, or errno: EINVAL (a
 * type 2 window, or a range without an MR), EPERM (the MR and the window have different PDs),
 * ENOMEM (the send queue is full).
 */
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

/* Unbinds a memory window and frees it. Returns 0 or errno. */
int vb_dealloc_mw(struct ibv_mw *mw);

/*
 * Allocates attr->length bytes of the device's own memory, aligned to 1 << attr->log_align_req
 * bytes. vb_memcpy_to_dm() and vb_memcpy_from_dm() copy to and from it; vb_free_dm() frees it.
 * Errors: NULL with errno.
 */
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);

/* Frees device memory. Returns 0 or errno (EBUSY: an MR uses it). */
int vb_free_dm(struct ibv_dm *dm);

/*
 * Creates a second ibv_dm for device memory of a shared file; see vb_import_device().
 * vb_unimport_dm() frees it. Errors: NULL with errno.
 */
struct ibv_dm *vb_import_dm(struct ibv_context *context, uint32_t dm_handle);

/* Frees an ibv_dm of vb_import_dm(). The device memory stays. */
void vb_unimport_dm(struct ibv_dm *dm);

/* --- completion channels and queues --- */

/*
 * Creates a completion channel. Its fd works with poll(2), epoll(7) and O_NONBLOCK.
 * vb_destroy_comp_channel() destroys it. Errors: NULL with errno.
 */
struct ibv_comp_channel *vb_create_comp_channel(struct ibv_context *context);

/* Destroys a channel. Returns 0 or errno (EBUSY: a CQ still uses it). */
int vb_destroy_comp_channel(struct ibv_comp_channel *channel);

/*
 * Creates a CQ of at least @cqe entries; cq->cqe has the true number. Completion events go to
 * @channel, unless it is NULL. cq->cq_context is @cq_context. vb_destroy_cq() destroys the CQ.
 * Errors: NULL with errno (EINVAL: @cqe below 1 or above the device's limit, or a bad vector;
 * ENOMEM).
 */
struct ibv_cq *vb_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			    struct ibv_comp_channel *channel, int comp_vector);

/*
 * Creates a CQ that ibv_start_poll(), ibv_next_poll() and ibv_end_poll() read; cq_attr->wc_flags
 * names the fields that can be read. Destroy it with vb_destroy_cq(ibv_cq_ex_to_cq(cq)). Errors:
 * NULL with errno (EINVAL; ENOMEM; EOPNOTSUPP: flags that the device does not know).
 */
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *cq_attr);

/*
 * Resizes @cq to at least @cqe entries and keeps its completions. Returns 0 or errno (EINVAL: @cqe
 * is above the limit, below 1, or below the number of waiting completions).
 */
int vb_resize_cq(struct ibv_cq *cq, int cqe);

/*
 * Changes the moderation of completion events: one event for moderate.cq_count completions, or
 * after moderate.cq_period microseconds. Returns 0 or errno.
 */
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/*
 * Waits until all events of @cq are acknowledged, and destroys it. Returns 0 or errno (EBUSY: a
 * QP, an SRQ or a WQ uses it; EDEADLK: under a virtual clock nobody can acknowledge the events).
 */
int vb_destroy_cq(struct ibv_cq *cq);

/*
 * Waits for the next completion event of @channel, and sets *@cq and *@cq_context to the CQ and
 * its context pointer. With O_NONBLOCK on channel->fd it does not wait. The caller acknowledges
 * each event with vb_ack_cq_events(). Returns 0, or -1 with errno (EAGAIN: no event, and
 * O_NONBLOCK is set; EDEADLK: under a virtual clock no event can ever come).
 */
int vb_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);

/*
 * Acknowledges @nevents events of @cq. Each call takes a lock, so one call for many events is
 * cheaper than many calls.
 * Source: man ibv_get_cq_event(3).
 */
void vb_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

/*
 * Moves at most @num_entries completions to @wc. Returns their number, or a negative value on
 * failure (the CQ has overrun).
 */
static inline int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/*
 * Requests one event on the CQ's channel for the next completion or, with @solicited_only, for the
 * next solicited or failed completion. Returns 0 or errno.
 */
static inline int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/* --- shared receive queues --- */

/*
 * Creates an SRQ and writes its true sizes to srq_init_attr->attr. vb_destroy_srq() destroys it.
 * Errors: NULL with errno (EINVAL: above the device's limits).
 */
struct ibv_srq *vb_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

/*
 * Like vb_create_srq(), also for XRC and tag matching SRQs, as comp_mask and srq_type say. Errors:
 * NULL with errno (EOPNOTSUPP: a type or a bit that the device does not know).
 */
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *srq_init_attr_ex);

/*
 * Changes what @srq_attr_mask selects: IBV_SRQ_MAX_WR resizes the SRQ, IBV_SRQ_LIMIT arms one
 * limit event. Returns 0 or errno.
 */
int vb_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

/* Fills *@srq_attr. Returns 0 or errno. */
int vb_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

/*
 * Sets *@srq_num to the number by which a remote XRC requester names @srq. Returns 0 or errno
 * (EOPNOTSUPP; EINVAL: the SRQ has no number).
 */
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

/*
 * Waits until all events of @srq are acknowledged, and destroys it. Returns 0 or errno (EBUSY: a
 * QP uses it).
 */
int vb_destroy_srq(struct ibv_srq *srq);

/*
 * Posts a list of receives. Returns 0, or errno with the first receive that was not posted in
 * *@bad_recv_wr.
 */
static inline int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
				   struct ibv_recv_wr **bad_recv_wr)
{
	return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/*
 * Posts a list of tag matching operations. Returns 0, or errno with the first operation that was
 * not posted in *@bad_op.
 */
int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

/* --- queue pairs --- */

/*
 * Creates a QP in state RESET and writes its true capacities to qp_init_attr->cap. vb_destroy_qp()
 * destroys it. Errors: NULL with errno (EINVAL: above the device's limits, or no CQ; EOPNOTSUPP: a
 * type that the device does not have; ENOMEM).
 */
struct ibv_qp *vb_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/*
 * Like vb_create_qp(), with the attributes that comp_mask selects: an XRC domain, send operations
 * for ibv_wr_*(), RSS and others. Errors: NULL with errno (EOPNOTSUPP: bits that the device does
 * not know).
 */
struct ibv_qp *vb_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *qp_init_attr_ex);

/*
 * Returns the ibv_qp_ex of a QP that was created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, for
 * ibv_wr_*(). It belongs to @qp. Returns NULL for any other QP, with or without errno.
 * Source: man ibv_wr_post(3).
 */
struct ibv_qp_ex *vb_qp_to_qp_ex(struct ibv_qp *qp);

/*
 * Opens the shareable XRC receive QP number qp_open_attr->qp_num. vb_destroy_qp() closes it.
 * Errors: NULL with errno.
 */
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *qp_open_attr);

/*
 * Changes the attributes and the state of @qp that @attr_mask (enum ibv_qp_attr_mask) selects.
 * Returns 0 or errno (EINVAL: a transition or an attribute that the state table does not allow, or
 * a value out of range; ENOMEM; ENETUNREACH, ETIMEDOUT: a path that cannot be resolved).
 */
int vb_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

/* Fills *@attr, at least what @attr_mask selects, and *@init_attr. Returns 0 or errno. */
int vb_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		struct ibv_qp_init_attr *init_attr);

/* Returns 1 if the data of operation @op is always written in order, else 0. @flags must be 0. */
int vb_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/*
 * Limits the rate of @qp: rate_limit in kbit/s, max_burst_sz and typical_pkt_sz in bytes. Returns
 * 0 or errno.
 */
int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

/*
 * Sets the options of enhanced connection establishment; call it before the QP goes to RTR.
 * Returns 0 or errno (EOPNOTSUPP, EINVAL).
 */
int vb_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/*
 * Reads the options of enhanced connection establishment that are in force. Returns 0 or errno
 * (EOPNOTSUPP, EINVAL).
 */
int vb_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/*
 * Waits until all events of @qp are acknowledged, and destroys it. Its completions vanish from the
 * CQs. Returns 0 or errno (EBUSY: the QP is attached to a multicast group).
 * Source: man ibv_create_qp(3).
 */
int vb_destroy_qp(struct ibv_qp *qp);

/*
 * Posts a list of work requests to the send queue. The caller must not touch a request's buffers
 * before its completion; with IBV_SEND_INLINE they are free at once. Returns 0, or errno with the
 * first request that was not posted in *@bad_wr (EINVAL: a bad request or state; ENOMEM: the queue
 * is full).
 */
static inline int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			       struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

/*
 * Posts a list of receives. Returns 0, or errno with the first receive that was not posted in
 * *@bad_wr (EINVAL: a bad request or state; ENOMEM: the queue is full).
 */
static inline int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/*
 * Attaches a UD QP to the multicast group of @gid and @lid; @lid is in host byte order, and 0 on
 * Ethernet. Attaching twice is the same as once. Returns 0 or errno (EINVAL: not a UD QP, or not a
 * multicast GID).
 */
int vb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* Detaches @qp from a multicast group. Returns 0 or errno (EINVAL: the QP is not attached). */
int vb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* --- address handles --- */

/*
 * Creates an address handle; vb_destroy_ah() destroys it. Errors: NULL with errno (EINVAL: a bad
 * port or GID index, or, on Ethernet, no GRH).
 */
struct ibv_ah *vb_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/*
 * Fills *@ah_attr with the way back to the sender of the datagram that @wc completes. @grh is the
 * first 40 bytes of the receive buffer, and is read only if the completion has IBV_WC_GRH. Returns
 * 0, or -1 with errno.
 */
int vb_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
		       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

/* Calls vb_init_ah_from_wc() and vb_create_ah(). Errors: NULL with errno. */
struct ibv_ah *vb_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				    uint8_t port_num);

/*
 * Destroys an address handle. The work requests that use it must have completed. Returns 0 or
 * errno.
 */
int vb_destroy_ah(struct ibv_ah *ah);

/* --- work queues and receive side scaling --- */

/*
 * Creates a receive work queue and writes its true sizes to @wq_init_attr. vb_destroy_wq()
 * destroys it. Errors: NULL with errno.
 */
struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);

/* Changes the state or the flags of @wq that wq_attr->attr_mask selects. Returns 0 or errno. */
int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);

/* Destroys a work queue. Returns 0 or errno (EBUSY: an indirection table uses it). */
int vb_destroy_wq(struct ibv_wq *wq);

/*
 * Creates an indirection table of 1 << init_attr->log_ind_tbl_size work queues.
 * vb_destroy_rwq_ind_table() destroys it. Errors: NULL with errno.
 */
struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr);

/* Destroys an indirection table. Returns 0 or errno (EBUSY: a QP uses it). */
int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);

/* --- flows and counters --- */

/*
 * Steers the packets that @flow_attr describes to @qp, a raw packet QP or a UD QP.
 * vb_destroy_flow() ends that. Errors: NULL with errno.
 */
struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);

/* Destroys a flow. Returns 0 or errno. */
int vb_destroy_flow(struct ibv_flow *flow_id);

/*
 * Creates an IPsec ESP action for flows. vb_destroy_flow_action() destroys it. Errors: NULL with
 * errno.
 * Source: man ibv_create_flow_action(3).
 */
struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *esp);

/*
 * Changes an ESP action. Returns 0, or errno; the old action is then in force.
 * Source: man ibv_create_flow_action(3).
 */
int vb_modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *esp);

/*
 * Destroys a flow action. Returns 0 or errno (EBUSY: a flow uses it).
 * Source: man ibv_create_flow_action(3).
 */
int vb_destroy_flow_action(struct ibv_flow_action *action);

/* Creates a set of counters. vb_destroy_counters() destroys it. Errors: NULL with errno. */
struct ibv_counters *vb_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *init_attr);

/* Destroys a set of counters. Returns 0 or errno (EBUSY: a flow uses it). */
int vb_destroy_counters(struct ibv_counters *counters);

/*
 * Adds the counter attr->counter_desc to @counters as number attr->index. It counts for @flow or,
 * if @flow is NULL, for a flow that will name @counters. Returns 0 or errno.
 */
int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);

/*
 * Reads the first @ncounters values into @counters_value. @flags is of enum
 * ibv_read_counters_flags. Returns 0 or errno.
 */
int vb_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		     uint32_t flags);

/*
 * Copies @length bytes between the host and device memory at @dm_offset. Inline, through the
 * object. Returns 0 or errno.
 * Source: man ibv_alloc_dm(3).
 */
static inline int vb_memcpy_to_dm(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr,
				  size_t length)
{
	return dm->memcpy_to_dm(dm, dm_offset, host_addr, length);
}

static inline int vb_memcpy_from_dm(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset,
				    size_t length)
{
	return dm->memcpy_from_dm(host_addr, dm, dm_offset, length);
}

/* --- names and rates: they need no device and cannot fail --- */

/*
 * Return libibverbs' text for a value, such as "RNR retry counter exceeded", or "unknown" for a
 * value that libibverbs does not know. The string is constant.
 * Source: man ibv_event_type_str(3); ibv_wc_status_str() in <infiniband/verbs.h>.
 */
const char *vb_wc_status_str(enum ibv_wc_status status);
const char *vb_event_type_str(enum ibv_event_type event);
const char *vb_node_type_str(enum ibv_node_type node_type);
const char *vb_port_state_str(enum ibv_port_state port_state);

/*
 * Return the enumerator's name without its prefix, such as "RTR", "SEND", "RDMA_READ" or "RC", or
 * "unknown" for other values. The string is constant. libibverbs has no such functions; the names
 * are those of <infiniband/verbs.h>.
 */
const char *vb_qp_state_str(enum ibv_qp_state state);
const char *vb_qp_type_str(enum ibv_qp_type type);
const char *vb_wr_opcode_str(enum ibv_wr_opcode opcode);
const char *vb_wc_opcode_str(enum ibv_wc_opcode opcode);

/* The enumerator's whole name, such as "IBV_WC_RETRY_EXC_ERR"; "unknown" for other values. */
const char *vb_wc_status_name(enum ibv_wc_status status);
const char *vb_event_type_name(enum ibv_event_type event);
const char *vb_qp_state_name(enum ibv_qp_state state);

/*
 * Convert a path MTU to bytes and back. Return 0 for a value or a size that is no path MTU.
 * Source: enum ibv_mtu in <infiniband/verbs.h>.
 */
unsigned int vb_mtu_to_bytes(enum ibv_mtu mtu);
enum ibv_mtu vb_bytes_to_mtu(unsigned int size_bytes);

/*
 * Convert a static rate to a multiple of 2.5 Gbit/s or to Mbit/s, and back. Return -1, and
 * IBV_RATE_MAX on the way back, for a rate that libibverbs does not know, and for the rates to
 * which libibverbs gives no multiple (14, 25, 56, 100, ... Gbit/s).
 * Source: man ibv_rate_to_mult(3), ibv_rate_to_mbps(3).
 */
int vb_rate_to_mult(enum ibv_rate rate);
enum ibv_rate vb_mult_to_rate(int mult);
int vb_rate_to_mbps(enum ibv_rate rate);
enum ibv_rate vb_mbps_to_rate(int mbps);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_VERBS_H */
