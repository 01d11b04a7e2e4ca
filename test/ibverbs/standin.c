/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libibverbs.so.1. It exports the same verbs under the same version nodes
 * (standin.map), and fills a context with all operations. Each function records its name and its
 * arguments and returns the answer that the test has set; no function reads an argument.
 */
#include "test/ibverbs/standin.h"

#include <errno.h>
#include <string.h>

/* The header's macros would rename these exported functions. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct standin_call last;
static unsigned int calls;
static uint64_t scripted_answer;
static int scripted_errno;

void standin_script(uint64_t answer, int err)
{
	memset(&last, 0, sizeof(last));
	calls = 0;
	scripted_answer = answer;
	scripted_errno = err;
}

const struct standin_call *standin_last(void)
{
	return &last;
}

unsigned int standin_calls(void)
{
	return calls;
}

static uint64_t record(const char *target, unsigned int count, const uintptr_t *args)
{
	last.target = target;
	last.count = count;
	memset(last.args, 0, sizeof(last.args));
	for (unsigned int i = 0; i < count; i++)
		last.args[i] = args[i];
	calls++;
	if (scripted_errno)
		errno = scripted_errno;
	return scripted_answer;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	return (struct ibv_device **)record("ibv_get_device_list", 1,
					    (uintptr_t[]){(uintptr_t)num_devices});
}

void ibv_free_device_list(struct ibv_device **list)
{
	record("ibv_free_device_list", 1, (uintptr_t[]){(uintptr_t)list});
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return (const char *)record("ibv_get_device_name", 1, (uintptr_t[]){(uintptr_t)device});
}

int ibv_get_device_index(struct ibv_device *device)
{
	return (int)record("ibv_get_device_index", 1, (uintptr_t[]){(uintptr_t)device});
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return (__be64)record("ibv_get_device_guid", 1, (uintptr_t[]){(uintptr_t)device});
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	return (struct ibv_context *)record("ibv_open_device", 1, (uintptr_t[]){(uintptr_t)device});
}

int ibv_close_device(struct ibv_context *context)
{
	return (int)record("ibv_close_device", 1, (uintptr_t[]){(uintptr_t)context});
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	return (struct ibv_context *)record("ibv_import_device", 1,
					    (uintptr_t[]){(uintptr_t)cmd_fd});
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	return (int)record("ibv_query_device", 2,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)device_attr});
}

int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	return (int)record(
		"ibv_query_port", 3,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num, (uintptr_t)port_attr});
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	return (int)record("ibv_query_gid", 4,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num, (uintptr_t)index,
					 (uintptr_t)gid});
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	return (int)record("_ibv_query_gid_ex", 6,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num,
					 (uintptr_t)gid_index, (uintptr_t)entry, (uintptr_t)flags,
					 (uintptr_t)entry_size});
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	return (ssize_t)record("_ibv_query_gid_table", 5,
			       (uintptr_t[]){(uintptr_t)context, (uintptr_t)entries,
					     (uintptr_t)max_entries, (uintptr_t)flags,
					     (uintptr_t)entry_size});
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	return (int)record("ibv_query_pkey", 4,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num, (uintptr_t)index,
					 (uintptr_t)pkey});
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	return (int)record("ibv_get_pkey_index", 3,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num, (uintptr_t)pkey});
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return (int)record("ibv_get_async_event", 2,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)event});
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	record("ibv_ack_async_event", 1, (uintptr_t[]){(uintptr_t)event});
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return (int)record("ibv_resolve_eth_l2_from_gid", 4,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)attr, (uintptr_t)eth_mac,
					 (uintptr_t)vid});
}

int ibv_fork_init(void)
{
	return (int)record("ibv_fork_init", 0, NULL);
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return (enum ibv_fork_status)record("ibv_is_fork_initialized", 0, NULL);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	return (struct ibv_pd *)record("ibv_alloc_pd", 1, (uintptr_t[]){(uintptr_t)context});
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return (int)record("ibv_dealloc_pd", 1, (uintptr_t[]){(uintptr_t)pd});
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return (struct ibv_pd *)record("ibv_import_pd", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)pd_handle});
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	record("ibv_unimport_pd", 1, (uintptr_t[]){(uintptr_t)pd});
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return (struct ibv_mr *)record("ibv_reg_mr", 4,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)addr,
						     (uintptr_t)length, (uintptr_t)access});
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return (struct ibv_mr *)record("ibv_reg_mr_iova", 5,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)addr,
						     (uintptr_t)length, (uintptr_t)iova,
						     (uintptr_t)access});
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return (struct ibv_mr *)record("ibv_reg_mr_iova2", 5,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)addr,
						     (uintptr_t)length, (uintptr_t)iova,
						     (uintptr_t)access});
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	return (struct ibv_mr *)record("ibv_reg_dmabuf_mr", 6,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)offset,
						     (uintptr_t)length, (uintptr_t)iova,
						     (uintptr_t)fd, (uintptr_t)access});
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	return (int)record("ibv_rereg_mr", 6,
			   (uintptr_t[]){(uintptr_t)mr, (uintptr_t)flags, (uintptr_t)pd,
					 (uintptr_t)addr, (uintptr_t)length, (uintptr_t)access});
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return (int)record("ibv_dereg_mr", 1, (uintptr_t[]){(uintptr_t)mr});
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return (struct ibv_mr *)record("ibv_import_mr", 2,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)mr_handle});
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	record("ibv_unimport_mr", 1, (uintptr_t[]){(uintptr_t)mr});
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return (struct ibv_dm *)record("ibv_import_dm", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)dm_handle});
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	record("ibv_unimport_dm", 1, (uintptr_t[]){(uintptr_t)dm});
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	return (struct ibv_comp_channel *)record("ibv_create_comp_channel", 1,
						 (uintptr_t[]){(uintptr_t)context});
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return (int)record("ibv_destroy_comp_channel", 1, (uintptr_t[]){(uintptr_t)channel});
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	return (struct ibv_cq *)record("ibv_create_cq", 5,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)cqe,
						     (uintptr_t)cq_context, (uintptr_t)channel,
						     (uintptr_t)comp_vector});
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return (int)record("ibv_resize_cq", 2, (uintptr_t[]){(uintptr_t)cq, (uintptr_t)cqe});
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return (int)record("ibv_destroy_cq", 1, (uintptr_t[]){(uintptr_t)cq});
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	return (int)record("ibv_get_cq_event", 3,
			   (uintptr_t[]){(uintptr_t)channel, (uintptr_t)cq, (uintptr_t)cq_context});
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	record("ibv_ack_cq_events", 2, (uintptr_t[]){(uintptr_t)cq, (uintptr_t)nevents});
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	return (struct ibv_srq *)record("ibv_create_srq", 2,
					(uintptr_t[]){(uintptr_t)pd, (uintptr_t)srq_init_attr});
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return (int)record(
		"ibv_modify_srq", 3,
		(uintptr_t[]){(uintptr_t)srq, (uintptr_t)srq_attr, (uintptr_t)srq_attr_mask});
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return (int)record("ibv_query_srq", 2, (uintptr_t[]){(uintptr_t)srq, (uintptr_t)srq_attr});
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return (int)record("ibv_destroy_srq", 1, (uintptr_t[]){(uintptr_t)srq});
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return (struct ibv_qp *)record("ibv_create_qp", 2,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)qp_init_attr});
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return (struct ibv_qp_ex *)record("ibv_qp_to_qp_ex", 1, (uintptr_t[]){(uintptr_t)qp});
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return (int)record("ibv_modify_qp", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)attr, (uintptr_t)attr_mask});
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	return (int)record("ibv_query_qp", 4,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)attr, (uintptr_t)attr_mask,
					 (uintptr_t)init_attr});
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return (int)record("ibv_query_qp_data_in_order", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)op, (uintptr_t)flags});
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return (int)record("ibv_set_ece", 2, (uintptr_t[]){(uintptr_t)qp, (uintptr_t)ece});
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return (int)record("ibv_query_ece", 2, (uintptr_t[]){(uintptr_t)qp, (uintptr_t)ece});
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return (int)record("ibv_destroy_qp", 1, (uintptr_t[]){(uintptr_t)qp});
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return (int)record("ibv_attach_mcast", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)gid, (uintptr_t)lid});
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return (int)record("ibv_detach_mcast", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)gid, (uintptr_t)lid});
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return (struct ibv_ah *)record("ibv_create_ah", 2,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)attr});
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	return (int)record("ibv_init_ah_from_wc", 5,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num, (uintptr_t)wc,
					 (uintptr_t)grh, (uintptr_t)ah_attr});
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	return (struct ibv_ah *)record(
		"ibv_create_ah_from_wc", 4,
		(uintptr_t[]){(uintptr_t)pd, (uintptr_t)wc, (uintptr_t)grh, (uintptr_t)port_num});
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return (int)record("ibv_destroy_ah", 1, (uintptr_t[]){(uintptr_t)ah});
}

static int vctx_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size)
{
	return (int)record("verbs_context.query_device_ex", 4,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)input, (uintptr_t)attr,
					 (uintptr_t)attr_size});
}

static int vctx_query_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *port_attr, size_t port_attr_size)
{
	return (int)record("verbs_context.query_port", 4,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)port_num,
					 (uintptr_t)port_attr, (uintptr_t)port_attr_size});
}

static int vctx_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	return (int)record("verbs_context.query_rt_values", 2,
			   (uintptr_t[]){(uintptr_t)context, (uintptr_t)values});
}

static struct ibv_td *vctx_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	return (struct ibv_td *)record("verbs_context.alloc_td", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)init_attr});
}

static int vctx_dealloc_td(struct ibv_td *td)
{
	return (int)record("verbs_context.dealloc_td", 1, (uintptr_t[]){(uintptr_t)td});
}

static struct ibv_pd *vctx_alloc_parent_domain(struct ibv_context *context,
					       struct ibv_parent_domain_init_attr *attr)
{
	return (struct ibv_pd *)record("verbs_context.alloc_parent_domain", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)attr});
}

static struct ibv_xrcd *vctx_open_xrcd(struct ibv_context *context,
				       struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	return (struct ibv_xrcd *)record(
		"verbs_context.open_xrcd", 2,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)xrcd_init_attr});
}

static int vctx_close_xrcd(struct ibv_xrcd *xrcd)
{
	return (int)record("verbs_context.close_xrcd", 1, (uintptr_t[]){(uintptr_t)xrcd});
}

static struct ibv_mr *vctx_alloc_null_mr(struct ibv_pd *pd)
{
	return (struct ibv_mr *)record("verbs_context.alloc_null_mr", 1,
				       (uintptr_t[]){(uintptr_t)pd});
}

static struct ibv_mr *vctx_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				     size_t length, unsigned int access)
{
	return (struct ibv_mr *)record("verbs_context.reg_dm_mr", 5,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)dm,
						     (uintptr_t)dm_offset, (uintptr_t)length,
						     (uintptr_t)access});
}

static int vctx_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			  struct ibv_sge *sg_list, uint32_t num_sge)
{
	return (int)record("verbs_context.advise_mr", 5,
			   (uintptr_t[]){(uintptr_t)pd, (uintptr_t)advice, (uintptr_t)flags,
					 (uintptr_t)sg_list, (uintptr_t)num_sge});
}

static struct ibv_mw *ops_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return (struct ibv_mw *)record("ops.alloc_mw", 2,
				       (uintptr_t[]){(uintptr_t)pd, (uintptr_t)type});
}

static int ops_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	return (int)record("ops.bind_mw", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)mw, (uintptr_t)mw_bind});
}

static int ops_dealloc_mw(struct ibv_mw *mw)
{
	return (int)record("ops.dealloc_mw", 1, (uintptr_t[]){(uintptr_t)mw});
}

static struct ibv_dm *vctx_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	return (struct ibv_dm *)record("verbs_context.alloc_dm", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)attr});
}

static int vctx_free_dm(struct ibv_dm *dm)
{
	return (int)record("verbs_context.free_dm", 1, (uintptr_t[]){(uintptr_t)dm});
}

static struct ibv_cq_ex *vctx_create_cq_ex(struct ibv_context *context,
					   struct ibv_cq_init_attr_ex *cq_attr)
{
	return (struct ibv_cq_ex *)record("verbs_context.create_cq_ex", 2,
					  (uintptr_t[]){(uintptr_t)context, (uintptr_t)cq_attr});
}

static int vctx_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return (int)record("verbs_context.modify_cq", 2,
			   (uintptr_t[]){(uintptr_t)cq, (uintptr_t)attr});
}

static int ops_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return (int)record("ops.poll_cq", 3,
			   (uintptr_t[]){(uintptr_t)cq, (uintptr_t)num_entries, (uintptr_t)wc});
}

static int ops_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return (int)record("ops.req_notify_cq", 2,
			   (uintptr_t[]){(uintptr_t)cq, (uintptr_t)solicited_only});
}

static struct ibv_srq *vctx_create_srq_ex(struct ibv_context *context,
					  struct ibv_srq_init_attr_ex *srq_init_attr_ex)
{
	return (struct ibv_srq *)record(
		"verbs_context.create_srq_ex", 2,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)srq_init_attr_ex});
}

static int vctx_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return (int)record("verbs_context.get_srq_num", 2,
			   (uintptr_t[]){(uintptr_t)srq, (uintptr_t)srq_num});
}

static int ops_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			     struct ibv_recv_wr **bad_recv_wr)
{
	return (int)record(
		"ops.post_srq_recv", 3,
		(uintptr_t[]){(uintptr_t)srq, (uintptr_t)recv_wr, (uintptr_t)bad_recv_wr});
}

static int vctx_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	return (int)record("verbs_context.post_srq_ops", 3,
			   (uintptr_t[]){(uintptr_t)srq, (uintptr_t)op, (uintptr_t)bad_op});
}

static struct ibv_qp *vctx_create_qp_ex(struct ibv_context *context,
					struct ibv_qp_init_attr_ex *qp_init_attr_ex)
{
	return (struct ibv_qp *)record(
		"verbs_context.create_qp_ex", 2,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)qp_init_attr_ex});
}

static struct ibv_qp *vctx_open_qp(struct ibv_context *context,
				   struct ibv_qp_open_attr *qp_open_attr)
{
	return (struct ibv_qp *)record("verbs_context.open_qp", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)qp_open_attr});
}

static int vctx_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	return (int)record("verbs_context.modify_qp_rate_limit", 2,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)attr});
}

static int ops_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return (int)record("ops.post_send", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)wr, (uintptr_t)bad_wr});
}

static int ops_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	return (int)record("ops.post_recv", 3,
			   (uintptr_t[]){(uintptr_t)qp, (uintptr_t)wr, (uintptr_t)bad_wr});
}

static struct ibv_wq *vctx_create_wq(struct ibv_context *context,
				     struct ibv_wq_init_attr *wq_init_attr)
{
	return (struct ibv_wq *)record("verbs_context.create_wq", 2,
				       (uintptr_t[]){(uintptr_t)context, (uintptr_t)wq_init_attr});
}

static int vctx_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr)
{
	return (int)record("verbs_context.modify_wq", 2,
			   (uintptr_t[]){(uintptr_t)wq, (uintptr_t)wq_attr});
}

static int vctx_destroy_wq(struct ibv_wq *wq)
{
	return (int)record("verbs_context.destroy_wq", 1, (uintptr_t[]){(uintptr_t)wq});
}

static struct ibv_rwq_ind_table *vctx_create_rwq_ind_table(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *init_attr)
{
	return (struct ibv_rwq_ind_table *)record(
		"verbs_context.create_rwq_ind_table", 2,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)init_attr});
}

static int vctx_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	return (int)record("verbs_context.destroy_rwq_ind_table", 1,
			   (uintptr_t[]){(uintptr_t)rwq_ind_table});
}

static struct ibv_flow *vctx_ibv_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	return (struct ibv_flow *)record("verbs_context.ibv_create_flow", 2,
					 (uintptr_t[]){(uintptr_t)qp, (uintptr_t)flow_attr});
}

static int vctx_ibv_destroy_flow(struct ibv_flow *flow_id)
{
	return (int)record("verbs_context.ibv_destroy_flow", 1, (uintptr_t[]){(uintptr_t)flow_id});
}

static struct ibv_flow_action *vctx_create_flow_action_esp(struct ibv_context *context,
							   struct ibv_flow_action_esp_attr *esp)
{
	return (struct ibv_flow_action *)record("verbs_context.create_flow_action_esp", 2,
						(uintptr_t[]){(uintptr_t)context, (uintptr_t)esp});
}

static int vctx_modify_flow_action_esp(struct ibv_flow_action *action,
				       struct ibv_flow_action_esp_attr *esp)
{
	return (int)record("verbs_context.modify_flow_action_esp", 2,
			   (uintptr_t[]){(uintptr_t)action, (uintptr_t)esp});
}

static int vctx_destroy_flow_action(struct ibv_flow_action *action)
{
	return (int)record("verbs_context.destroy_flow_action", 1,
			   (uintptr_t[]){(uintptr_t)action});
}

static struct ibv_counters *vctx_create_counters(struct ibv_context *context,
						 struct ibv_counters_init_attr *init_attr)
{
	return (struct ibv_counters *)record(
		"verbs_context.create_counters", 2,
		(uintptr_t[]){(uintptr_t)context, (uintptr_t)init_attr});
}

static int vctx_destroy_counters(struct ibv_counters *counters)
{
	return (int)record("verbs_context.destroy_counters", 1, (uintptr_t[]){(uintptr_t)counters});
}

static int vctx_attach_counters_point_flow(struct ibv_counters *counters,
					   struct ibv_counter_attach_attr *attr,
					   struct ibv_flow *flow)
{
	return (int)record("verbs_context.attach_counters_point_flow", 3,
			   (uintptr_t[]){(uintptr_t)counters, (uintptr_t)attr, (uintptr_t)flow});
}

static int vctx_read_counters(struct ibv_counters *counters, uint64_t *counters_value,
			      uint32_t ncounters, uint32_t flags)
{
	return (int)record("verbs_context.read_counters", 4,
			   (uintptr_t[]){(uintptr_t)counters, (uintptr_t)counters_value,
					 (uintptr_t)ncounters, (uintptr_t)flags});
}

static void fill_operations(struct ibv_context_ops *ops)
{
	ops->alloc_mw = ops_alloc_mw;
	ops->bind_mw = ops_bind_mw;
	ops->dealloc_mw = ops_dealloc_mw;
	ops->poll_cq = ops_poll_cq;
	ops->req_notify_cq = ops_req_notify_cq;
	ops->post_srq_recv = ops_post_srq_recv;
	ops->post_send = ops_post_send;
	ops->post_recv = ops_post_recv;
}

void standin_fill_context(struct verbs_context *vctx)
{
	memset(vctx, 0, sizeof(*vctx));
	vctx->sz = sizeof(*vctx);
	vctx->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	fill_operations(&vctx->context.ops);
	vctx->query_device_ex = vctx_query_device_ex;
	vctx->query_port = vctx_query_port;
	vctx->query_rt_values = vctx_query_rt_values;
	vctx->alloc_td = vctx_alloc_td;
	vctx->dealloc_td = vctx_dealloc_td;
	vctx->alloc_parent_domain = vctx_alloc_parent_domain;
	vctx->open_xrcd = vctx_open_xrcd;
	vctx->close_xrcd = vctx_close_xrcd;
	vctx->alloc_null_mr = vctx_alloc_null_mr;
	vctx->reg_dm_mr = vctx_reg_dm_mr;
	vctx->advise_mr = vctx_advise_mr;
	vctx->alloc_dm = vctx_alloc_dm;
	vctx->free_dm = vctx_free_dm;
	vctx->create_cq_ex = vctx_create_cq_ex;
	vctx->modify_cq = vctx_modify_cq;
	vctx->create_srq_ex = vctx_create_srq_ex;
	vctx->get_srq_num = vctx_get_srq_num;
	vctx->post_srq_ops = vctx_post_srq_ops;
	vctx->create_qp_ex = vctx_create_qp_ex;
	vctx->open_qp = vctx_open_qp;
	vctx->modify_qp_rate_limit = vctx_modify_qp_rate_limit;
	vctx->create_wq = vctx_create_wq;
	vctx->modify_wq = vctx_modify_wq;
	vctx->destroy_wq = vctx_destroy_wq;
	vctx->create_rwq_ind_table = vctx_create_rwq_ind_table;
	vctx->destroy_rwq_ind_table = vctx_destroy_rwq_ind_table;
	vctx->ibv_create_flow = vctx_ibv_create_flow;
	vctx->ibv_destroy_flow = vctx_ibv_destroy_flow;
	vctx->create_flow_action_esp = vctx_create_flow_action_esp;
	vctx->modify_flow_action_esp = vctx_modify_flow_action_esp;
	vctx->destroy_flow_action = vctx_destroy_flow_action;
	vctx->create_counters = vctx_create_counters;
	vctx->destroy_counters = vctx_destroy_counters;
	vctx->attach_counters_point_flow = vctx_attach_counters_point_flow;
	vctx->read_counters = vctx_read_counters;
}
