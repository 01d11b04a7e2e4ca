/* SPDX-License-Identifier: MIT */
/*
 * libibverbs.so.1 as programs know it, on the simulator: one function for each symbol that is
 * served, under the name that programs link (the string). Each is the verb of <verbena/verbs.h>
 * of the same name, whose contract holds. What the installed library exports beyond these is refused
 * (refused.txt); the script `generate` joins the two, with the version nodes of that library.
 */
#ifndef SRC_DROPIN_DROPIN_H
#define SRC_DROPIN_DROPIN_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The backend behind it; VERBENA_BACKEND means the programs that know Verbena. */
#define BACKEND "sim"

/* What ibv_query_gid_type() tells apart, as sysfs does. */
enum dropin_gid_type {
	DROPIN_GID_IB_OR_ROCE_V1,
	DROPIN_GID_ROCE_V2,
};

/*
 * Says on stderr, once in a process, why there is no simulated world: a program that was written for
 * adapters can only say that there are no devices.
 */
void dropin_tell(const char *sentence);

/* device.c: devices, ports and their tables, events */

struct ibv_device **dropin_get_device_list(int *num_devices) __asm__("ibv_get_device_list");
void dropin_free_device_list(struct ibv_device **list) __asm__("ibv_free_device_list");
const char *dropin_get_device_name(struct ibv_device *device) __asm__("ibv_get_device_name");
int dropin_get_device_index(struct ibv_device *device) __asm__("ibv_get_device_index");
__be64 dropin_get_device_guid(struct ibv_device *device) __asm__("ibv_get_device_guid");
struct ibv_context *dropin_open_device(struct ibv_device *device) __asm__("ibv_open_device");
int dropin_close_device(struct ibv_context *context) __asm__("ibv_close_device");
struct ibv_context *dropin_import_device(int cmd_fd) __asm__("ibv_import_device");
int dropin_query_device(struct ibv_context *context,
			struct ibv_device_attr *device_attr) __asm__("ibv_query_device");
int dropin_query_port(struct ibv_context *context, uint8_t port_num,
		      struct ibv_port_attr *port_attr) __asm__("ibv_query_port");
int dropin_query_gid(struct ibv_context *context, uint8_t port_num, int index,
		     union ibv_gid *gid) __asm__("ibv_query_gid");
int dropin_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
		      __be16 *pkey) __asm__("ibv_query_pkey");
int dropin_get_pkey_index(struct ibv_context *context, uint8_t port_num,
			  __be16 pkey) __asm__("ibv_get_pkey_index");
int dropin_get_async_event(struct ibv_context *context,
			   struct ibv_async_event *event) __asm__("ibv_get_async_event");
void dropin_ack_async_event(struct ibv_async_event *event) __asm__("ibv_ack_async_event");
int dropin_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				   uint8_t eth_mac[ETHERNET_LL_SIZE],
				   uint16_t *vid) __asm__("ibv_resolve_eth_l2_from_gid");
int dropin_fork_init(void) __asm__("ibv_fork_init");
enum ibv_fork_status dropin_is_fork_initialized(void) __asm__("ibv_is_fork_initialized");
int dropin_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			struct ibv_gid_entry *entry, uint32_t flags,
			size_t entry_size) __asm__("_ibv_query_gid_ex");
ssize_t dropin_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			       size_t max_entries, uint32_t flags,
			       size_t entry_size) __asm__("_ibv_query_gid_table");

/* 0, or -1 with errno. Exported for providers, and used by programs. */
int dropin_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			  enum dropin_gid_type *type) __asm__("ibv_query_gid_type");

/* memory.c: protection domains and memory */

struct ibv_pd *dropin_alloc_pd(struct ibv_context *context) __asm__("ibv_alloc_pd");
int dropin_dealloc_pd(struct ibv_pd *pd) __asm__("ibv_dealloc_pd");
struct ibv_pd *dropin_import_pd(struct ibv_context *context,
				uint32_t pd_handle) __asm__("ibv_import_pd");
void dropin_unimport_pd(struct ibv_pd *pd) __asm__("ibv_unimport_pd");
struct ibv_mr *dropin_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			     int access) __asm__("ibv_reg_mr");
struct ibv_mr *dropin_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				  int access) __asm__("ibv_reg_mr_iova");
struct ibv_mr *dropin_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				   unsigned int access) __asm__("ibv_reg_mr_iova2");
struct ibv_mr *dropin_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				    uint64_t iova, int fd, int access) __asm__("ibv_reg_dmabuf_mr");
int dropin_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		    int access) __asm__("ibv_rereg_mr");
int dropin_dereg_mr(struct ibv_mr *mr) __asm__("ibv_dereg_mr");
struct ibv_mr *dropin_import_mr(struct ibv_pd *pd, uint32_t mr_handle) __asm__("ibv_import_mr");
void dropin_unimport_mr(struct ibv_mr *mr) __asm__("ibv_unimport_mr");
struct ibv_dm *dropin_import_dm(struct ibv_context *context,
				uint32_t dm_handle) __asm__("ibv_import_dm");
void dropin_unimport_dm(struct ibv_dm *dm) __asm__("ibv_unimport_dm");

/* queue.c: completion queues, shared receive queues, queue pairs, address handles */

struct ibv_comp_channel *dropin_create_comp_channel(struct ibv_context *context) __asm__(
	"ibv_create_comp_channel");
int dropin_destroy_comp_channel(struct ibv_comp_channel *channel) __asm__(
	"ibv_destroy_comp_channel");
struct ibv_cq *dropin_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel,
				int comp_vector) __asm__("ibv_create_cq");
int dropin_resize_cq(struct ibv_cq *cq, int cqe) __asm__("ibv_resize_cq");
int dropin_destroy_cq(struct ibv_cq *cq) __asm__("ibv_destroy_cq");
int dropin_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			void **cq_context) __asm__("ibv_get_cq_event");
void dropin_ack_cq_events(struct ibv_cq *cq, unsigned int nevents) __asm__("ibv_ack_cq_events");
struct ibv_srq *dropin_create_srq(
	struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr) __asm__("ibv_create_srq");
int dropin_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
		      int srq_attr_mask) __asm__("ibv_modify_srq");
int dropin_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr) __asm__("ibv_query_srq");
int dropin_destroy_srq(struct ibv_srq *srq) __asm__("ibv_destroy_srq");
struct ibv_qp *dropin_create_qp(struct ibv_pd *pd,
				struct ibv_qp_init_attr *qp_init_attr) __asm__("ibv_create_qp");
struct ibv_qp_ex *dropin_qp_to_qp_ex(struct ibv_qp *qp) __asm__("ibv_qp_to_qp_ex");
int dropin_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		     int attr_mask) __asm__("ibv_modify_qp");
int dropin_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		    struct ibv_qp_init_attr *init_attr) __asm__("ibv_query_qp");
int dropin_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
				  uint32_t flags) __asm__("ibv_query_qp_data_in_order");
int dropin_set_ece(struct ibv_qp *qp, struct ibv_ece *ece) __asm__("ibv_set_ece");
int dropin_query_ece(struct ibv_qp *qp, struct ibv_ece *ece) __asm__("ibv_query_ece");
int dropin_destroy_qp(struct ibv_qp *qp) __asm__("ibv_destroy_qp");
int dropin_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			uint16_t lid) __asm__("ibv_attach_mcast");
int dropin_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			uint16_t lid) __asm__("ibv_detach_mcast");
struct ibv_ah *dropin_create_ah(struct ibv_pd *pd,
				struct ibv_ah_attr *attr) __asm__("ibv_create_ah");
int dropin_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			   struct ibv_grh *grh,
			   struct ibv_ah_attr *ah_attr) __asm__("ibv_init_ah_from_wc");
struct ibv_ah *dropin_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					uint8_t port_num) __asm__("ibv_create_ah_from_wc");
int dropin_destroy_ah(struct ibv_ah *ah) __asm__("ibv_destroy_ah");

/* names.c: the names and rates that need no device */

const char *dropin_wc_status_str(enum ibv_wc_status status) __asm__("ibv_wc_status_str");
const char *dropin_event_type_str(enum ibv_event_type event) __asm__("ibv_event_type_str");
const char *dropin_node_type_str(enum ibv_node_type node_type) __asm__("ibv_node_type_str");
const char *dropin_port_state_str(enum ibv_port_state port_state) __asm__("ibv_port_state_str");
int dropin_rate_to_mult(enum ibv_rate rate) __asm__("ibv_rate_to_mult");
enum ibv_rate dropin_mult_to_rate(int mult) __asm__("mult_to_ibv_rate");
int dropin_rate_to_mbps(enum ibv_rate rate) __asm__("ibv_rate_to_mbps");
enum ibv_rate dropin_mbps_to_rate(int mbps) __asm__("mbps_to_ibv_rate");

/* marshal.c: between the kernel's structures and the verbs', for the connection manager's library */

void dropin_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src) __asm__(
	"ibv_copy_ah_attr_from_kern");
void dropin_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src) __asm__(
	"ibv_copy_qp_attr_from_kern");
void dropin_copy_path_rec_from_kern(
	struct ibv_sa_path_rec *dst,
	struct ib_user_path_rec *src) __asm__("ibv_copy_path_rec_from_kern");
void dropin_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
				  struct ibv_sa_path_rec *src) __asm__("ibv_copy_path_rec_to_kern");

/* sysfs.c: the files that describe a device, of which a simulated one has none on disk */

/* Where sysfs is. The string is constant. */
const char *dropin_get_sysfs_path(void) __asm__("ibv_get_sysfs_path");

/*
 * The contents of dir/file without the newline, at most size bytes; a 0 follows where there is room.
 * Below the folder of a simulated device the answer is made from its attributes. Returns the number
 * of bytes, or -1 with errno (ENOENT: there is no such file).
 */
int dropin_read_sysfs_file(const char *dir, const char *file, char *buf,
			   size_t size) __asm__("ibv_read_sysfs_file");

/* fork.c: memory that a child is not to share */

int dropin_dontfork_range(void *base, size_t size) __asm__("ibv_dontfork_range");
int dropin_dofork_range(void *base, size_t size) __asm__("ibv_dofork_range");

/* refuse.c: what the thunks that `generate` makes of refused.txt call. Each leaves EOPNOTSUPP. */

void *dropin_refuse_null(const char *symbol);
int dropin_refuse_errno(const char *symbol);
int dropin_refuse_minus1(const char *symbol);

/* Of a program that was built for the structures of IBVERBS_1.0: says so once on standard error. */
void *dropin_old_null(const char *symbol);
int dropin_old_errno(const char *symbol);
int dropin_old_minus1(const char *symbol);

#endif
