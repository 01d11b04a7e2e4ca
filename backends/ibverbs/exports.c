/* SPDX-License-Identifier: MIT */
/*
 * Verbs that libibverbs exports: each goes to the library as it came, and its answer comes back as
 * it is. One that the loaded release does not export answers EOPNOTSUPP in its own convention.
 */
#include "backends/ibverbs/library.h"
#include "backends/ibverbs/real.h"

#include <stdbool.h>

/* As libibverbs answers when the kernel has no RDMA support: man ibv_get_device_list(3), ENOSYS. */
static void *not_loaded(void)
{
	errno = ENOSYS;
	return NULL;
}

/* Whether this thread's last list failed for want of the kernel's support. */
static _Thread_local bool no_kernel_support;

struct ibv_device **real_get_device_list(int *num_devices)
{
	struct ibv_device **list;

	if (!library_loaded())
		return not_loaded();
	list = library()->get_device_list(num_devices);
	no_kernel_support = !list && errno == ENOSYS;
	return list;
}

const char *real_last_error(void)
{
	if (no_kernel_support)
		return "get_device_list: the kernel has no RDMA support loaded "
		       "(there is no /sys/class/infiniband_verbs)";
	return library_error();
}

struct ibv_context *real_import_device(int cmd_fd)
{
	if (!library_loaded())
		return not_loaded();
	if (!library()->import_device)
		return no_pointer();
	return library()->import_device(cmd_fd);
}

int real_fork_init(void)
{
	if (!library_loaded())
		return ENOSYS;
	if (!library()->fork_init)
		return EOPNOTSUPP;
	return library()->fork_init();
}

/* The header's macro turns to reg_mr_iova2 for the flags that older exports do not know. */
struct ibv_mr *real_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	const struct library *lib = library();

	if (access & IBV_ACCESS_OPTIONAL_RANGE)
		return real_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
	if (!lib->reg_mr)
		return no_pointer();
	return lib->reg_mr(pd, addr, length, access);
}

struct ibv_mr *real_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				int access)
{
	const struct library *lib = library();

	if (access & IBV_ACCESS_OPTIONAL_RANGE)
		return real_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
	if (!lib->reg_mr_iova)
		return no_pointer();
	return lib->reg_mr_iova(pd, addr, length, iova, access);
}

/* --- devices --- */

void real_free_device_list(struct ibv_device **list)
{
	const struct library *lib = library();

	if (lib->free_device_list)
		lib->free_device_list(list);
}

const char *real_get_device_name(struct ibv_device *device)
{
	const struct library *lib = library();

	if (!lib->get_device_name)
		return no_pointer();
	return lib->get_device_name(device);
}

int real_get_device_index(struct ibv_device *device)
{
	const struct library *lib = library();

	if (!lib->get_device_index)
		return minus_one();
	return lib->get_device_index(device);
}

__be64 real_get_device_guid(struct ibv_device *device)
{
	const struct library *lib = library();

	if (!lib->get_device_guid)
		return 0;
	return lib->get_device_guid(device);
}

struct ibv_context *real_open_device(struct ibv_device *device)
{
	const struct library *lib = library();

	if (!lib->open_device)
		return no_pointer();
	return lib->open_device(device);
}

int real_close_device(struct ibv_context *context)
{
	const struct library *lib = library();

	if (!lib->close_device)
		return minus_one();
	return lib->close_device(context);
}

int real_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	const struct library *lib = library();

	if (!lib->query_device)
		return EOPNOTSUPP;
	return lib->query_device(context, device_attr);
}

int real_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	const struct library *lib = library();

	if (!lib->query_gid)
		return minus_one();
	return lib->query_gid(context, port_num, index, gid);
}

int real_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	const struct library *lib = library();

	if (!lib->query_gid_ex)
		return EOPNOTSUPP;
	return lib->query_gid_ex(context, port_num, gid_index, entry, flags, entry_size);
}

ssize_t real_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct library *lib = library();

	if (!lib->query_gid_table)
		return -EOPNOTSUPP;
	return lib->query_gid_table(context, entries, max_entries, flags, entry_size);
}

int real_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	const struct library *lib = library();

	if (!lib->query_pkey)
		return minus_one();
	return lib->query_pkey(context, port_num, index, pkey);
}

int real_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	const struct library *lib = library();

	if (!lib->get_pkey_index)
		return minus_one();
	return lib->get_pkey_index(context, port_num, pkey);
}

int real_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	const struct library *lib = library();

	if (!lib->get_async_event)
		return minus_one();
	return lib->get_async_event(context, event);
}

void real_ack_async_event(struct ibv_async_event *event)
{
	const struct library *lib = library();

	if (lib->ack_async_event)
		lib->ack_async_event(event);
}

int real_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const struct library *lib = library();

	if (!lib->resolve_eth_l2_from_gid)
		return minus_one();
	return lib->resolve_eth_l2_from_gid(context, attr, eth_mac, vid);
}

enum ibv_fork_status real_is_fork_initialized(void)
{
	const struct library *lib = library();

	if (!lib->is_fork_initialized)
		return IBV_FORK_DISABLED;
	return lib->is_fork_initialized();
}

/* --- protection domains, thread domains and XRC domains --- */

struct ibv_pd *real_alloc_pd(struct ibv_context *context)
{
	const struct library *lib = library();

	if (!lib->alloc_pd)
		return no_pointer();
	return lib->alloc_pd(context);
}

int real_dealloc_pd(struct ibv_pd *pd)
{
	const struct library *lib = library();

	if (!lib->dealloc_pd)
		return EOPNOTSUPP;
	return lib->dealloc_pd(pd);
}

struct ibv_pd *real_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	const struct library *lib = library();

	if (!lib->import_pd)
		return no_pointer();
	return lib->import_pd(context, pd_handle);
}

void real_unimport_pd(struct ibv_pd *pd)
{
	const struct library *lib = library();

	if (lib->unimport_pd)
		lib->unimport_pd(pd);
}

/* --- memory regions, windows and device memory --- */

struct ibv_mr *real_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				 unsigned int access)
{
	const struct library *lib = library();

	if (!lib->reg_mr_iova2)
		return no_pointer();
	return lib->reg_mr_iova2(pd, addr, length, iova, access);
}

struct ibv_mr *real_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				  int fd, int access)
{
	const struct library *lib = library();

	if (!lib->reg_dmabuf_mr)
		return no_pointer();
	return lib->reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}

int real_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		  int access)
{
	const struct library *lib = library();

	if (!lib->rereg_mr) {
		errno = EOPNOTSUPP;
		return IBV_REREG_MR_ERR_INPUT;
	}
	return lib->rereg_mr(mr, flags, pd, addr, length, access);
}

int real_dereg_mr(struct ibv_mr *mr)
{
	const struct library *lib = library();

	if (!lib->dereg_mr)
		return EOPNOTSUPP;
	return lib->dereg_mr(mr);
}

struct ibv_mr *real_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	const struct library *lib = library();

	if (!lib->import_mr)
		return no_pointer();
	return lib->import_mr(pd, mr_handle);
}

void real_unimport_mr(struct ibv_mr *mr)
{
	const struct library *lib = library();

	if (lib->unimport_mr)
		lib->unimport_mr(mr);
}

struct ibv_dm *real_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	const struct library *lib = library();

	if (!lib->import_dm)
		return no_pointer();
	return lib->import_dm(context, dm_handle);
}

void real_unimport_dm(struct ibv_dm *dm)
{
	const struct library *lib = library();

	if (lib->unimport_dm)
		lib->unimport_dm(dm);
}

/* --- completion channels and queues --- */

struct ibv_comp_channel *real_create_comp_channel(struct ibv_context *context)
{
	const struct library *lib = library();

	if (!lib->create_comp_channel)
		return no_pointer();
	return lib->create_comp_channel(context);
}

int real_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	const struct library *lib = library();

	if (!lib->destroy_comp_channel)
		return EOPNOTSUPP;
	return lib->destroy_comp_channel(channel);
}

struct ibv_cq *real_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	const struct library *lib = library();

	if (!lib->create_cq)
		return no_pointer();
	return lib->create_cq(context, cqe, cq_context, channel, comp_vector);
}

int real_resize_cq(struct ibv_cq *cq, int cqe)
{
	const struct library *lib = library();

	if (!lib->resize_cq)
		return EOPNOTSUPP;
	return lib->resize_cq(cq, cqe);
}

int real_destroy_cq(struct ibv_cq *cq)
{
	const struct library *lib = library();

	if (!lib->destroy_cq)
		return EOPNOTSUPP;
	return lib->destroy_cq(cq);
}

int real_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	const struct library *lib = library();

	if (!lib->get_cq_event)
		return minus_one();
	return lib->get_cq_event(channel, cq, cq_context);
}

void real_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	const struct library *lib = library();

	if (lib->ack_cq_events)
		lib->ack_cq_events(cq, nevents);
}

/* --- shared receive queues --- */

struct ibv_srq *real_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	const struct library *lib = library();

	if (!lib->create_srq)
		return no_pointer();
	return lib->create_srq(pd, srq_init_attr);
}

int real_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	const struct library *lib = library();

	if (!lib->modify_srq)
		return EOPNOTSUPP;
	return lib->modify_srq(srq, srq_attr, srq_attr_mask);
}

int real_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	const struct library *lib = library();

	if (!lib->query_srq)
		return EOPNOTSUPP;
	return lib->query_srq(srq, srq_attr);
}

int real_destroy_srq(struct ibv_srq *srq)
{
	const struct library *lib = library();

	if (!lib->destroy_srq)
		return EOPNOTSUPP;
	return lib->destroy_srq(srq);
}

/* --- queue pairs --- */

struct ibv_qp *real_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	const struct library *lib = library();

	if (!lib->create_qp)
		return no_pointer();
	return lib->create_qp(pd, qp_init_attr);
}

struct ibv_qp_ex *real_qp_to_qp_ex(struct ibv_qp *qp)
{
	const struct library *lib = library();

	if (!lib->qp_to_qp_ex)
		return no_pointer();
	return lib->qp_to_qp_ex(qp);
}

int real_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	const struct library *lib = library();

	if (!lib->modify_qp)
		return EOPNOTSUPP;
	return lib->modify_qp(qp, attr, attr_mask);
}

int real_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	const struct library *lib = library();

	if (!lib->query_qp)
		return EOPNOTSUPP;
	return lib->query_qp(qp, attr, attr_mask, init_attr);
}

int real_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	const struct library *lib = library();

	if (!lib->query_qp_data_in_order)
		return 0;
	return lib->query_qp_data_in_order(qp, op, flags);
}

int real_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	const struct library *lib = library();

	if (!lib->set_ece)
		return EOPNOTSUPP;
	return lib->set_ece(qp, ece);
}

int real_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	const struct library *lib = library();

	if (!lib->query_ece)
		return EOPNOTSUPP;
	return lib->query_ece(qp, ece);
}

int real_destroy_qp(struct ibv_qp *qp)
{
	const struct library *lib = library();

	if (!lib->destroy_qp)
		return EOPNOTSUPP;
	return lib->destroy_qp(qp);
}

int real_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct library *lib = library();

	if (!lib->attach_mcast)
		return EOPNOTSUPP;
	return lib->attach_mcast(qp, gid, lid);
}

int real_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct library *lib = library();

	if (!lib->detach_mcast)
		return EOPNOTSUPP;
	return lib->detach_mcast(qp, gid, lid);
}

/* --- address handles --- */

struct ibv_ah *real_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct library *lib = library();

	if (!lib->create_ah)
		return no_pointer();
	return lib->create_ah(pd, attr);
}

int real_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	const struct library *lib = library();

	if (!lib->init_ah_from_wc)
		return minus_one();
	return lib->init_ah_from_wc(context, port_num, wc, grh, ah_attr);
}

struct ibv_ah *real_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num)
{
	const struct library *lib = library();

	if (!lib->create_ah_from_wc)
		return no_pointer();
	return lib->create_ah_from_wc(pd, wc, grh, port_num);
}

int real_destroy_ah(struct ibv_ah *ah)
{
	const struct library *lib = library();

	if (!lib->destroy_ah)
		return EOPNOTSUPP;
	return lib->destroy_ah(ah);
}
