/* SPDX-License-Identifier: MIT */
/*
 * The exported functions about devices that do more than the function of <verbena/verbs.h>: they
 * name the backend, or have other structures.
 */
#include "src/dropin/dropin.h"

#include <errno.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#undef ibv_get_device_list
#undef ibv_query_port

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	int err;

	dropin_begin();
	list = vb_get_device_list(BACKEND, num_devices);
	err = errno;
	if (!list)
		dropin_tell(vb_last_error());
	errno = err;
	return list;
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	dropin_begin();
	return vb_import_device(BACKEND, cmd_fd);
}

/*
 * Programs call it for a context that has no query_port of its own, with the structure of
 * IBVERBS_1.1, which ends before port_cap_flags2.
 */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
		   struct _compat_ibv_port_attr *port_attr)
{
	return vb_query_port(context, port_num, (struct ibv_port_attr *)port_attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
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

int ibv_fork_init(void)
{
	return vb_fork_init(BACKEND);
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return vb_is_fork_initialized(BACKEND);
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
