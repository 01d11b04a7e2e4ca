/* SPDX-License-Identifier: MIT */
/*
 * The verbs, on whichever backend an object came from.
 *
 * vb_X() is ibv_X() of libibverbs with the same arguments, structures and way of telling of
 * failure; it finds the backend from the object's context. Only what has no object takes the
 * backend's name. Objects of several backends may be in use at the same time, but not in one call.
 *
 * What goes through an object's own pointers needs no counterpart and is used as it is:
 * ibv_start_poll and the ibv_wc_read_* functions, and ibv_wr_*. The rest of <infiniband/verbs.h>'s
 * functions belong to the real library alone and must not be given an object of another backend.
 *
 * Ownership. An object lives until the caller destroys it with the function named beside its
 * creator, and not before what was made from it. Structures passed in by pointer are read or filled
 * before the call returns and are not kept, unless it is said.
 *
 * Threads. Every function may be called from any thread, also on the same object at the same time,
 * except that nobody may use an object which another thread is destroying.
 *
 * Errors. errno values are those of the function's man page; a few are named beside it. In
 * addition, all verbs answer, each in its own convention: EINVAL for a NULL object or one of an
 * unknown context, EOPNOTSUPP for a verb that the backend does not have. A verb that fails changes
 * nothing and leaves a sentence for vb_last_error() (<verbena/error.h>). Success does not touch
 * errno on purpose, but may.
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
 * Finds a backend by name; NULL or "" stands for VERBENA_BACKEND, and that unset or empty for
 * "sim". The answer is constant and has no NULL verb. NULL and errno EINVAL if there is no such
 * backend; vb_last_error() then lists the known ones.
 */
const struct vb_backend *vb_find_backend(const char *name);

/* The backend number @index, counted from 0, or NULL past the last one. For listing them. */
const struct vb_backend *vb_backend_at(unsigned int index);

/*
 * The backend of an open context, or of a device of a list not yet freed or open. NULL and errno
 * EINVAL if there is none.
 */
const struct vb_backend *vb_context_backend(const struct ibv_context *context);
const struct vb_backend *vb_device_backend(const struct ibv_device *device);

/* --- devices --- */

/*
 * Lists the devices of @backend (NULL: VERBENA_BACKEND, else "sim").
 *
 * Returns a NULL-terminated array; @num_devices, when not NULL, is set to its length. An empty
 * array is an answer, not an error. The caller frees the array with vb_free_device_list() and must
 * open what it wants to use before that. Errors: NULL and errno EINVAL (no such backend;
 * vb_last_error() lists the known ones), ENOSYS (the backend cannot work on this machine), ENOMEM,
 * or the backend's own.
 * Source: man ibv_get_device_list(3).
 */
struct ibv_device **vb_get_device_list(const char *backend, int *num_devices);

/*
 * Frees an array of vb_get_device_list(). Devices of it that are not open become invalid. NULL is
 * ignored; an array that is not ours is left alone and named by vb_last_error().
 * Source: man ibv_free_device_list(3).
 */
void vb_free_device_list(struct ibv_device **list);

/*
 * Returns the name of @device, such as "sim0" or "mlx5_0"; it belongs to the device. NULL and errno
 * EINVAL for a device that no backend owns.
 * Source: man ibv_get_device_name(3).
 */
const char *vb_get_device_name(struct ibv_device *device);

/*
 * Returns the kernel's index of @device, or -1 when there is none (errno EINVAL if no backend owns
 * @device).
 * Source: man ibv_get_device_index(3).
 */
int vb_get_device_index(struct ibv_device *device);

/*
 * Returns the node GUID in network byte order; 0 with errno EINVAL if no backend owns @device.
 * Source: man ibv_get_device_guid(3).
 */
__be64 vb_get_device_guid(struct ibv_device *device);

/*
 * Opens @device. The context stays valid until vb_close_device() and keeps @device valid too.
 * Errors: NULL and errno EINVAL (no backend owns @device), ENOMEM, or the backend's own.
 * Source: man ibv_open_device(3).
 */
struct ibv_context *vb_open_device(struct ibv_device *device);

/*
 * Closes @context, which is invalid afterwards. It does not destroy what was made in it: destroy
 * that first. Returns 0, or -1 with errno (EINVAL: no backend owns @context).
 * Source: man ibv_close_device(3).
 */
int vb_close_device(struct ibv_context *context);

/*
 * Makes a context in @backend (NULL: the default one) from a duplicate of another context's cmd_fd.
 * The new context owns @cmd_fd. Ended by vb_close_device(). Errors: NULL and errno.
 * Source: man ibv_import_device(3).
 */
struct ibv_context *vb_import_device(const char *backend, int cmd_fd);

/*
 * Fills *@device_attr with the limits and identity of the device. Returns 0 or errno.
 * Source: man ibv_query_device(3).
 */
int vb_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr);

/*
 * Fills the first @attr_size bytes of *@attr, zeroing what the device does not know. @input may be
 * NULL; bits in its comp_mask answer EINVAL. Callers pass sizeof(*attr). Returns 0 or errno.
 * Source: man ibv_query_device_ex(3).
 */
int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);

/*
 * Fills the first @port_attr_size bytes of *@port_attr for port @port_num, counted from 1. Callers
 * pass sizeof(*port_attr), so that a program built on an older, shorter structure is not written
 * past its end. Returns 0 or errno (EINVAL: no such port).
 * Source: man ibv_query_port(3).
 */
int vb_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		  size_t port_attr_size);

/*
 * Reads entry @index of the GID table of port @port_num. Returns 0, or -1 with errno.
 * Source: man ibv_query_gid(3).
 */
int vb_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid);

/*
 * Reads entry @gid_index of the GID table of port @port_num with its type and network interface
 * into the first @entry_size bytes of *@entry. @flags must be 0. Returns 0 or errno (ENODATA: empty
 * entry; EINVAL: no such port or index, or flags).
 * Source: man ibv_query_gid_ex(3).
 */
int vb_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		    struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size);

/*
 * Reads the valid entries of the GID tables of all ports, at most @max_entries, each @entry_size
 * bytes apart. @flags must be 0. Returns the number written, or a negative errno (errno itself is
 * not set).
 * Source: man ibv_query_gid_table(3).
 */
ssize_t vb_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			   size_t max_entries, uint32_t flags, size_t entry_size);

/*
 * Reads entry @index of the P_Key table of port @port_num, in network byte order. Returns 0, or -1
 * with errno.
 * Source: man ibv_query_pkey(3).
 */
int vb_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey);

/*
 * Returns the index of @pkey (network byte order) in the P_Key table of port @port_num, or -1 with
 * errno.
 * Source: man ibv_get_pkey_index(3).
 */
int vb_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey);

/*
 * Reads the values that values->comp_mask asks for (IBV_VALUES_MASK_RAW_CLOCK: the clock of
 * completion timestamps, in device ticks, despite the timespec) and leaves in comp_mask what was
 * read. Returns 0 or errno.
 * Source: man ibv_query_rt_values_ex(3).
 */
int vb_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values);

/*
 * Waits for the next asynchronous event of @context; with O_NONBLOCK on context->async_fd it does
 * not wait. Every event got must be acknowledged with vb_ack_async_event(), or destroying its
 * object never ends. Returns 0, or -1 with errno (EAGAIN: nothing there and O_NONBLOCK; EDEADLK:
 * under a virtual clock nothing can ever happen).
 * Source: man ibv_get_async_event(3).
 */
int vb_get_async_event(struct ibv_context *context, struct ibv_async_event *event);

/*
 * Acknowledges an event of vb_get_async_event(), once. It may be called by another thread than the
 * one that got the event. The events of ports and devices name no object and need no
 * acknowledgement.
 * Source: man ibv_ack_async_event(3).
 */
void vb_ack_async_event(struct ibv_async_event *event);

/*
 * Finds the Ethernet address (and VLAN, 0xffff if none) of the destination GID in @attr. Returns 0,
 * or a negative value. (No man page: infiniband/verbs.h.)
 */
int vb_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
			       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid);

/*
 * Makes fork() safe for memory registered with @backend (NULL: the default one). To be called
 * before any registration. Returns 0 or errno (EINVAL: something is registered already).
 * Source: man ibv_fork_init(3).
 */
int vb_fork_init(const char *backend);

/*
 * Says whether fork() is safe with @backend: IBV_FORK_DISABLED, IBV_FORK_ENABLED or
 * IBV_FORK_UNNEEDED. An unknown backend answers IBV_FORK_DISABLED with errno EINVAL.
 * Source: man ibv_is_fork_initialized(3).
 */
enum ibv_fork_status vb_is_fork_initialized(const char *backend);

/* --- protection domains, thread domains and XRC domains --- */

/*
 * Allocates a protection domain. Errors: NULL and errno.
 * Source: man ibv_alloc_pd(3).
 */
struct ibv_pd *vb_alloc_pd(struct ibv_context *context);

/*
 * Frees a protection domain, or a parent domain. Returns 0 or errno (EBUSY: something still uses
 * it).
 * Source: man ibv_dealloc_pd(3).
 */
int vb_dealloc_pd(struct ibv_pd *pd);

/*
 * Makes a second ibv_pd for the handle of a PD of the file that @context shares (see
 * vb_import_device()). Ended by vb_unimport_pd(). Errors: NULL and errno.
 * Source: man ibv_import_pd(3).
 */
struct ibv_pd *vb_import_pd(struct ibv_context *context, uint32_t pd_handle);

/*
 * Ends what vb_import_pd() made; the PD itself lives on.
 * Source: man ibv_unimport_pd(3).
 */
void vb_unimport_pd(struct ibv_pd *pd);

/*
 * Allocates a thread domain: the caller's promise that what is made in it is used by one thread at
 * a time. init_attr->comp_mask must be 0. Errors: NULL and errno.
 * Source: man ibv_alloc_td(3).
 */
struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr);

/*
 * Frees a thread domain. Returns 0 or errno (EBUSY: a parent domain uses it).
 * Source: man ibv_dealloc_td(3).
 */
int vb_dealloc_td(struct ibv_td *td);

/*
 * Makes a parent domain over attr->pd, with a thread domain or allocators as attr says. Freed by
 * vb_dealloc_pd(), before its PD and TD. Errors: NULL and errno (EINVAL: no PD, or unknown bits).
 * Source: man ibv_alloc_parent_domain(3).
 */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);

/*
 * Opens the XRC domain of the inode of xrcd_init_attr->fd (-1: a private one); oflags may hold
 * O_CREAT and O_EXCL. Errors: NULL and errno.
 * Source: man ibv_open_xrcd(3).
 */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *context,
			      struct ibv_xrcd_init_attr *xrcd_init_attr);

/*
 * Closes one reference to an XRC domain; the last ends it. Returns 0 or errno (EBUSY: it is in
 * use).
 * Source: man ibv_close_xrcd(3).
 */
int vb_close_xrcd(struct ibv_xrcd *xrcd);

/* --- memory regions, windows and device memory --- */

/*
 * Registers @length bytes at @addr with rights @access (enum ibv_access_flags). The memory stays
 * the caller's and must stay mapped until vb_dereg_mr(). Flags of IBV_ACCESS_OPTIONAL_RANGE are
 * dropped where they are not known. Errors: NULL and errno (EINVAL: bad rights, such as remote
 * write without local write; ENOMEM).
 * Source: man ibv_reg_mr(3).
 */
struct ibv_mr *vb_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);

/*
 * As vb_reg_mr(), but work requests name the first byte as @iova instead of @addr.
 * Source: man ibv_reg_mr(3).
 */
struct ibv_mr *vb_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			      int access);

/*
 * What vb_reg_mr() and vb_reg_mr_iova() come to when @access has flags of
 * IBV_ACCESS_OPTIONAL_RANGE. (No man page: infiniband/verbs.h.)
 */
struct ibv_mr *vb_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       unsigned int access);

/*
 * Registers @length bytes from @offset of the dma-buf @fd, addressed from @iova. Errors: NULL and
 * errno (EOPNOTSUPP where there are no dma-bufs).
 * Source: man ibv_reg_mr(3).
 */
struct ibv_mr *vb_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				int fd, int access);

/*
 * Changes translation, PD or rights of @mr, as @flags (enum ibv_rereg_mr_flags) say; keys may
 * change. Returns 0 or a code of enum ibv_rereg_mr_err_code with errno: after
 * IBV_REREG_MR_ERR_INPUT and _DONT_FORK_NEW the old MR holds, after _DO_FORK_OLD the new one, after
 * the _CMD codes neither. A device without the verb answers IBV_REREG_MR_ERR_INPUT with errno
 * EOPNOTSUPP.
 * Source: man ibv_rereg_mr(3).
 */
int vb_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		int access);

/*
 * Ends a registration, however it was made. Returns 0 or errno (EBUSY: a memory window is bound).
 * Source: man ibv_dereg_mr(3).
 */
int vb_dereg_mr(struct ibv_mr *mr);

/*
 * Makes a second ibv_mr for the handle of an MR of a shared file. Its addr is NULL. Ended by
 * vb_unimport_mr(). Errors: NULL and errno.
 * Source: man ibv_import_mr(3).
 */
struct ibv_mr *vb_import_mr(struct ibv_pd *pd, uint32_t mr_handle);

/*
 * Ends what vb_import_mr() made; the MR lives on.
 * Source: man ibv_unimport_mr(3).
 */
void vb_unimport_mr(struct ibv_mr *mr);

/*
 * Allocates an MR whose lkey reads as zeros and discards what is written. Freed by vb_dereg_mr().
 * Errors: NULL and errno.
 * Source: man ibv_alloc_null_mr(3).
 */
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);

/*
 * Registers @length bytes from @dm_offset of device memory. Work requests count from 0 in it, so
 * @access needs IBV_ACCESS_ZERO_BASED. Freed by vb_dereg_mr(), before the DM. Errors: NULL and
 * errno.
 * Source: man ibv_alloc_dm(3).
 */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length,
			    unsigned int access);

/*
 * Advises about @num_sge ranges of MRs of @pd. Returns 0 or errno: EOPNOTSUPP (no such verb here),
 * ENOTSUP (not this advice), EFAULT, EINVAL, EPERM, ENOENT, ENOMEM as the man page tells them
 * apart.
 * Source: man ibv_advise_mr(3).
 */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge);

/*
 * Allocates an unbound memory window of @type. Errors: NULL and errno.
 * Source: man ibv_alloc_mw(3).
 */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);

/*
 * Posts a bind of a type 1 window to a range of an MR (length 0: unbinds). It completes on the send
 * CQ of @qp. Returns 0, with the new rkey in mw->rkey, or errno: EINVAL (a type 2 window, or a
 * range without an MR), EPERM (MR and window are of different PDs), ENOMEM (send queue full).
 * Source: man ibv_bind_mw(3).
 */
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind);

/*
 * Frees a memory window, unbinding it. Returns 0 or errno.
 * Source: man ibv_dealloc_mw(3).
 */
int vb_dealloc_mw(struct ibv_mw *mw);

/*
 * Allocates attr->length bytes of the device's own memory, aligned to 1 << attr->log_align_req.
 * Copied to and from with vb_memcpy_to_dm() and vb_memcpy_from_dm(). Errors: NULL and errno.
 * Source: man ibv_alloc_dm(3).
 */
struct ibv_dm *vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);

/*
 * Frees device memory. Returns 0 or errno (EBUSY: an MR uses it).
 * Source: man ibv_free_dm(3).
 */
int vb_free_dm(struct ibv_dm *dm);

/*
 * Makes a second ibv_dm for the handle of a DM of a shared file. Ended by vb_unimport_dm(). Errors:
 * NULL and errno.
 * Source: man ibv_import_dm(3).
 */
struct ibv_dm *vb_import_dm(struct ibv_context *context, uint32_t dm_handle);

/*
 * Ends what vb_import_dm() made; the device memory lives on.
 * Source: man ibv_unimport_dm(3).
 */
void vb_unimport_dm(struct ibv_dm *dm);

/* --- completion channels and queues --- */

/*
 * Creates a completion channel; its fd works with poll(2), epoll(7) and O_NONBLOCK. Errors: NULL
 * and errno.
 * Source: man ibv_create_comp_channel(3).
 */
struct ibv_comp_channel *vb_create_comp_channel(struct ibv_context *context);

/*
 * Destroys a channel. Returns 0 or errno (EBUSY: a CQ still uses it).
 * Source: man ibv_destroy_comp_channel(3).
 */
int vb_destroy_comp_channel(struct ibv_comp_channel *channel);

/*
 * Creates a CQ of at least @cqe entries (cq->cqe has the true number), telling of completions
 * through @channel when it is not NULL. Errors: NULL and errno (EINVAL: @cqe below 1 or above the
 * device's limit, or a bad vector; ENOMEM).
 * Source: man ibv_create_cq(3).
 */
struct ibv_cq *vb_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			    struct ibv_comp_channel *channel, int comp_vector);

/*
 * Creates a CQ that is read with ibv_start_poll(), ibv_next_poll() and ibv_end_poll(); the fields
 * that wc_flags names can be read. Destroyed with vb_destroy_cq(ibv_cq_ex_to_cq(cq)). Errors: NULL
 * and errno (EINVAL, ENOMEM, EOPNOTSUPP: flags the device does not know).
 * Source: man ibv_create_cq_ex(3).
 */
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *cq_attr);

/*
 * Resizes @cq to at least @cqe entries, keeping what waits in it. Returns 0 or errno (EINVAL: above
 * the limit, below 1 or below what waits).
 * Source: man ibv_resize_cq(3).
 */
int vb_resize_cq(struct ibv_cq *cq, int cqe);

/*
 * Changes the moderation of completion events: moderate.cq_count completions or moderate.cq_period
 * microseconds. Returns 0 or errno.
 * Source: man ibv_modify_cq(3).
 */
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);

/*
 * Destroys a CQ, once all its events are acknowledged, for which it waits. Returns 0 or errno
 * (EBUSY: a QP or SRQ uses it; EDEADLK: under a virtual clock, events that nobody can acknowledge).
 * Source: man ibv_destroy_cq(3).
 */
int vb_destroy_cq(struct ibv_cq *cq);

/*
 * Waits for the next completion event of @channel and tells its CQ; with O_NONBLOCK on channel->fd
 * it does not wait. Every event got must be acknowledged with vb_ack_cq_events(). Returns 0, or -1
 * with errno (EAGAIN: nothing there and O_NONBLOCK; EDEADLK: under a virtual clock nothing can ever
 * come).
 * Source: man ibv_get_cq_event(3).
 */
int vb_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);

/*
 * Acknowledges @nevents events of @cq at once. It takes a lock: cheaper for many than for one.
 * Source: man ibv_get_cq_event(3).
 */
void vb_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);

/*
 * Takes at most @num_entries completions into @wc. Returns how many, or a negative value on failure
 * (a CQ that has overrun).
 * Source: man ibv_poll_cq(3).
 */
static inline int vb_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/*
 * Asks for one event on the CQ's channel at the next completion; with @solicited_only, at the next
 * solicited or failed one. Returns 0 or errno.
 * Source: man ibv_req_notify_cq(3).
 */
static inline int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/* --- shared receive queues --- */

/*
 * Creates an SRQ and writes its true sizes back to srq_init_attr->attr. Errors: NULL and errno
 * (EINVAL: above the device's limits).
 * Source: man ibv_create_srq(3).
 */
struct ibv_srq *vb_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr);

/*
 * As vb_create_srq(), also for XRC and tag matching SRQs, as comp_mask and srq_type say. Errors:
 * NULL and errno (EOPNOTSUPP: a type or bit the device does not know).
 * Source: man ibv_create_srq_ex(3).
 */
struct ibv_srq *vb_create_srq_ex(struct ibv_context *context,
				 struct ibv_srq_init_attr_ex *srq_init_attr_ex);

/*
 * Resizes (IBV_SRQ_MAX_WR) or arms the limit event once (IBV_SRQ_LIMIT), as @srq_attr_mask says.
 * Returns 0 or errno.
 * Source: man ibv_modify_srq(3).
 */
int vb_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask);

/*
 * Fills *@srq_attr. Returns 0 or errno.
 * Source: man ibv_query_srq(3).
 */
int vb_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);

/*
 * Tells the number by which a remote XRC requester names @srq. Returns 0 or errno (EOPNOTSUPP, or
 * EINVAL for an SRQ without a number).
 * Source: man ibv_get_srq_num(3).
 */
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);

/*
 * Destroys an SRQ once its events are acknowledged. Returns 0 or errno (EBUSY: a QP uses it).
 * Source: man ibv_destroy_srq(3).
 */
int vb_destroy_srq(struct ibv_srq *srq);

/*
 * Posts a list of receives. Returns 0, or errno with the first one not posted in *@bad_recv_wr.
 * Source: man ibv_post_srq_recv(3).
 */
static inline int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
				   struct ibv_recv_wr **bad_recv_wr)
{
	return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/*
 * Posts a list of tag matching operations. Returns 0, or errno with the first one not posted in
 * *@bad_op.
 * Source: man ibv_post_srq_ops(3).
 */
int vb_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op);

/* --- queue pairs --- */

/*
 * Creates a QP in state RESET and writes the true capacities back to qp_init_attr->cap. Errors:
 * NULL and errno (EINVAL: above the device's limits, or a missing CQ; EOPNOTSUPP: a type the device
 * does not have; ENOMEM).
 * Source: man ibv_create_qp(3).
 */
struct ibv_qp *vb_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/*
 * As vb_create_qp(), with what comp_mask says: XRC domain, send operations of ibv_wr_*, RSS and
 * more. Errors: NULL and errno (EOPNOTSUPP: bits the device does not know).
 * Source: man ibv_create_qp_ex(3).
 */
struct ibv_qp *vb_create_qp_ex(struct ibv_context *context,
			       struct ibv_qp_init_attr_ex *qp_init_attr_ex);

/*
 * The ibv_qp_ex of a QP made with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, for ibv_wr_*(); it belongs to
 * @qp. NULL for any other QP, with or without errno. (Man page: ibv_wr_post.)
 */
struct ibv_qp_ex *vb_qp_to_qp_ex(struct ibv_qp *qp);

/*
 * Opens the shareable XRC receive QP of number qp_open_attr->qp_num. Ended by vb_destroy_qp().
 * Errors: NULL and errno.
 * Source: man ibv_open_qp(3).
 */
struct ibv_qp *vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *qp_open_attr);

/*
 * Changes attributes and state of @qp as @attr_mask (enum ibv_qp_attr_mask) says. A refused change
 * changes nothing. Returns 0 or errno (EINVAL: a transition or attribute that the state table does
 * not allow, or a value out of range; ENOMEM; ENETUNREACH, ETIMEDOUT: a path that cannot be
 * resolved).
 * Source: man ibv_modify_qp(3).
 */
int vb_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask);

/*
 * Fills *@attr, with at least what @attr_mask asks for, and *@init_attr. Returns 0 or errno.
 * Source: man ibv_query_qp(3).
 */
int vb_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		struct ibv_qp_init_attr *init_attr);

/*
 * Returns 1 if the data of operation @op is sure to be written in order, else 0. @flags must be 0.
 * Source: man ibv_query_qp_data_in_order(3).
 */
int vb_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);

/*
 * Limits the rate of @qp: rate_limit in kbit/s, max_burst_sz and typical_pkt_sz in bytes. Returns 0
 * or errno.
 * Source: man ibv_modify_qp_rate_limit(3).
 */
int vb_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);

/*
 * Sets the options of enhanced connection establishment, before the QP goes to RTR. Returns 0 or
 * errno (EOPNOTSUPP, EINVAL).
 * Source: man ibv_set_ece(3).
 */
int vb_set_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/*
 * Reads the options of enhanced connection establishment in force. Returns 0 or errno (EOPNOTSUPP,
 * EINVAL).
 * Source: man ibv_query_ece(3).
 */
int vb_query_ece(struct ibv_qp *qp, struct ibv_ece *ece);

/*
 * Destroys a QP once its events are acknowledged; its waiting completions vanish from the CQs.
 * Returns 0 or errno (EBUSY: attached to a multicast group).
 * Source: man ibv_create_qp(3).
 */
int vb_destroy_qp(struct ibv_qp *qp);

/*
 * Posts a list of work requests to the send queue. The buffers must not be touched before
 * completion, except with IBV_SEND_INLINE, where they are free at once. Returns 0, or errno with
 * the first one not posted in *@bad_wr (EINVAL: a bad request or state; ENOMEM: the queue is full).
 * Source: man ibv_post_send(3).
 */
static inline int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			       struct ibv_send_wr **bad_wr)
{
	return qp->context->ops.post_send(qp, wr, bad_wr);
}

/*
 * Posts a list of work requests to the receive queue. Returns 0, or errno with the first one not
 * posted in *@bad_wr (EINVAL, ENOMEM: the queue is full).
 * Source: man ibv_post_recv(3).
 */
static inline int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr)
{
	return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/*
 * Attaches a UD QP to the multicast group @gid, @lid (host byte order; 0 on Ethernet). Attaching
 * twice counts once. Returns 0 or errno (EINVAL: not UD, or not a multicast GID).
 * Source: man ibv_attach_mcast(3).
 */
int vb_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/*
 * Detaches @qp from a multicast group. Returns 0 or errno (EINVAL: it is not attached).
 * Source: man ibv_detach_mcast(3).
 */
int vb_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* --- address handles --- */

/*
 * Creates an address handle. Errors: NULL and errno (EINVAL: bad port, GID index or, on Ethernet,
 * no GRH).
 * Source: man ibv_create_ah(3).
 */
struct ibv_ah *vb_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);

/*
 * Fills *@ah_attr with the way back to the sender of the datagram completed by @wc; @grh is the
 * first 40 bytes of the receive buffer, read only if the completion says so. Returns 0, or -1 with
 * errno.
 * Source: man ibv_init_ah_from_wc(3).
 */
int vb_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
		       struct ibv_grh *grh, struct ibv_ah_attr *ah_attr);

/*
 * vb_init_ah_from_wc() and vb_create_ah() in one. Errors: NULL and errno.
 * Source: man ibv_create_ah_from_wc(3).
 */
struct ibv_ah *vb_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				    uint8_t port_num);

/*
 * Destroys an address handle; the work requests that use it must have completed. Returns 0 or
 * errno.
 * Source: man ibv_destroy_ah(3).
 */
int vb_destroy_ah(struct ibv_ah *ah);

/* --- work queues and receive side scaling --- */

/*
 * Creates a receive work queue and writes its true sizes back. Errors: NULL and errno.
 * Source: man ibv_create_wq(3).
 */
struct ibv_wq *vb_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr);

/*
 * Changes state or flags of @wq as wq_attr->attr_mask says. Returns 0 or errno.
 * Source: man ibv_modify_wq(3).
 */
int vb_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr);

/*
 * Destroys a work queue. Returns 0 or errno (EBUSY: an indirection table uses it).
 * Source: man ibv_destroy_wq(3).
 */
int vb_destroy_wq(struct ibv_wq *wq);

/*
 * Creates an indirection table of 1 << init_attr->log_ind_tbl_size work queues. Errors: NULL and
 * errno.
 * Source: man ibv_create_rwq_ind_table(3).
 */
struct ibv_rwq_ind_table *vb_create_rwq_ind_table(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *init_attr);

/*
 * Destroys an indirection table. Returns 0 or errno (EBUSY: a QP uses it).
 * Source: man ibv_destroy_rwq_ind_table(3).
 */
int vb_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);

/* --- flows and counters --- */

/*
 * Steers the packets that @flow_attr describes to @qp (raw packet or UD). Errors: NULL and errno.
 * Source: man ibv_create_flow(3).
 */
struct ibv_flow *vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr);

/*
 * Ends a flow. Returns 0 or errno.
 * Source: man ibv_destroy_flow(3).
 */
int vb_destroy_flow(struct ibv_flow *flow_id);

/*
 * Creates an IPsec ESP action for flows. Errors: NULL and errno.
 * Source: man ibv_create_flow_action(3).
 */
struct ibv_flow_action *vb_create_flow_action_esp(struct ibv_context *context,
						  struct ibv_flow_action_esp_attr *esp);

/*
 * Changes an ESP action; on failure the last one holds. Returns 0 or errno.
 * Source: man ibv_create_flow_action(3).
 */
int vb_modify_flow_action_esp(struct ibv_flow_action *action, struct ibv_flow_action_esp_attr *esp);

/*
 * Destroys a flow action. Returns 0 or errno (EBUSY: a flow uses it).
 * Source: man ibv_create_flow_action(3).
 */
int vb_destroy_flow_action(struct ibv_flow_action *action);

/*
 * Creates a set of counters. Errors: NULL and errno.
 * Source: man ibv_create_counters(3).
 */
struct ibv_counters *vb_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *init_attr);

/*
 * Destroys a set of counters. Returns 0 or errno (EBUSY: a flow uses it).
 * Source: man ibv_destroy_counters(3).
 */
int vb_destroy_counters(struct ibv_counters *counters);

/*
 * Puts the counter attr->counter_desc at place attr->index of @counters, for @flow (NULL: for a
 * flow to come that names @counters). Returns 0 or errno.
 * Source: man ibv_attach_counters_point_flow(3).
 */
int vb_attach_counters_point_flow(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);

/*
 * Reads the first @ncounters values. @flags: enum ibv_read_counters_flags. Returns 0 or errno.
 * Source: man ibv_read_counters(3).
 */
int vb_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		     uint32_t flags);

/*
 * Copies @length bytes of the host to device memory at @dm_offset, or back. Returns 0 or the errno
 * value. They go through the object. Source: man ibv_alloc_dm(3).
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

/* --- names and rates: they need no device, are constant, and cannot fail --- */

/*
 * The text that libibverbs gives for a value, such as "RNR retry counter exceeded"; "unknown" for a
 * value that it does not know. The string is constant.
 * Source: man ibv_event_type_str(3); ibv_wc_status_str() of <infiniband/verbs.h>.
 */
const char *vb_wc_status_str(enum ibv_wc_status status);
const char *vb_event_type_str(enum ibv_event_type event);
const char *vb_node_type_str(enum ibv_node_type node_type);
const char *vb_port_state_str(enum ibv_port_state port_state);

/*
 * The enumerator's name without its prefix: "RTR", "SEND", "RDMA_READ", "RC", ...; "unknown" for
 * other values. libibverbs has no such functions; the names are those of <infiniband/verbs.h>.
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
 * The bytes of a path MTU, or 0 for a value that is none; and back: 0 for a size that is none.
 * Source: enum ibv_mtu of <infiniband/verbs.h>.
 */
unsigned int vb_mtu_to_bytes(enum ibv_mtu mtu);
enum ibv_mtu vb_bytes_to_mtu(unsigned int size_bytes);

/*
 * A static rate as a multiple of 2.5 Gbit/s, or in Mbit/s, and back. Where libibverbs knows no
 * multiple (14, 25, 56, 100, ... Gbit/s) or no rate, the answer is -1, and IBV_RATE_MAX on the way
 * back.
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
