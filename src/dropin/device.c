/* SPDX-License-Identifier: MIT */
#include "src/dropin/dropin.h"

#include <errno.h>
#include <stddef.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

struct ibv_device **dropin_get_device_list(int *num_devices)
{
	struct ibv_device **list = vb_get_device_list(BACKEND, num_devices);
	int err = errno;

	if (!list)
		dropin_tell(vb_last_error());
	errno = err;
	return list;
}

void dropin_free_device_list(struct ibv_device **list)
{
	vb_free_device_list(list);
}

const char *dropin_get_device_name(struct ibv_device *device)
{
	return vb_get_device_name(device);
}

int dropin_get_device_index(struct ibv_device *device)
{
	return vb_get_device_index(device);
}

__be64 dropin_get_device_guid(struct ibv_device *device)
{
	return vb_get_device_guid(device);
}

struct ibv_context *dropin_open_device(struct ibv_device *device)
{
	return vb_open_device(device);
}

int dropin_close_device(struct ibv_context *context)
{
	return vb_close_device(context);
}

struct ibv_context *dropin_import_device(int cmd_fd)
{
	return vb_import_device(BACKEND, cmd_fd);
}

int dropin_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	return vb_query_device(context, device_attr);
}

/* Programs call it for a context without query_port of its own, with the structure of IBVERBS_1.1,
 * which ended here. */
int dropin_query_port(struct ibv_context *context, uint8_t port_num,
		      struct ibv_port_attr *port_attr)
{
	return vb_query_port(context, port_num, port_attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

int dropin_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	return vb_query_gid(context, port_num, index, gid);
}

int dropin_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	return vb_query_gid_ex(context, port_num, gid_index, entry, flags, entry_size);
}

ssize_t dropin_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
			       size_t max_entries, uint32_t flags, size_t entry_size)
{
	return vb_query_gid_table(context, entries, max_entries, flags, entry_size);
}

int dropin_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
			  enum dropin_gid_type *type)
{
	struct ibv_gid_entry entry;
	int err = vb_query_gid_ex(context, port_num, index, &entry, 0, sizeof(entry));

	if (err) {
		errno = err == ENODATA ? EINVAL : err;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? DROPIN_GID_ROCE_V2
						       : DROPIN_GID_IB_OR_ROCE_V1;
	return 0;
}

int dropin_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	return vb_query_pkey(context, port_num, index, pkey);
}

int dropin_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	return vb_get_pkey_index(context, port_num, pkey);
}

int dropin_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return vb_get_async_event(context, event);
}

void dropin_ack_async_event(struct ibv_async_event *event)
{
	vb_ack_async_event(event);
}

int dropin_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				   uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return vb_resolve_eth_l2_from_gid(context, attr, eth_mac, vid);
}

int dropin_fork_init(void)
{
	return vb_fork_init(BACKEND);
}

enum ibv_fork_status dropin_is_fork_initialized(void)
{
	return vb_is_fork_initialized(BACKEND);
}
