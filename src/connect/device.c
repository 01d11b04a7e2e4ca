/* SPDX-License-Identifier: MIT */
#include "src/connect/device.h"

#include "src/connect/object.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_PORT 1
/* choose_gid() looks at this many GIDs of a port. */
#define GIDS_MAX 256

struct vb_devices {
	struct ibv_device **list;
	unsigned int count;
	struct vb_device_info info[];
};

/* --- the list --- */

static void describe(struct ibv_device *device, struct vb_device_info *info)
{
	const char *name = vb_get_device_name(device);

	*info = (struct vb_device_info){
		.guid = be64toh(vb_get_device_guid(device)),
		.index = vb_get_device_index(device),
		.device = device,
	};
	snprintf(info->name, sizeof(info->name), "%s", name ? name : "");
}

struct vb_devices *vb_devices_get(const char *backend)
{
	struct vb_devices *devices;
	struct ibv_device **list;
	int count = 0;

	list = vb_get_device_list(backend, &count);
	if (!list) {
		fail_because(errno, "devices");
		return NULL;
	}
	devices =
		object_new(sizeof(*devices) + (size_t)count * sizeof(devices->info[0]), "devices");
	if (!devices) {
		vb_free_device_list(list);
		return NULL;
	}
	devices->list = list;
	devices->count = (unsigned int)count;
	for (int i = 0; i < count; i++)
		describe(list[i], &devices->info[i]);
	return devices;
}

void vb_devices_put(struct vb_devices *devices)
{
	if (!devices)
		return;
	vb_free_device_list(devices->list);
	free(devices);
}

unsigned int vb_devices_count(const struct vb_devices *devices)
{
	return devices->count;
}

const struct vb_device_info *vb_devices_at(const struct vb_devices *devices, unsigned int index)
{
	if (index < devices->count)
		return &devices->info[index];
	fail(ENODEV, "devices: there is no device %u; there are %u", index, devices->count);
	return NULL;
}

const struct vb_device_info *vb_devices_named(const struct vb_devices *devices, const char *name)
{
	char known[384] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < devices->count; i++) {
		if (strcmp(devices->info[i].name, name) == 0)
			return &devices->info[i];
		if (used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 i ? ", " : "", devices->info[i].name);
	}
	fail(ENODEV, "devices: there is no device \"%.64s\"; there are: %s", name,
	     used ? known : "none");
	return NULL;
}

/* --- opening --- */

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static bool is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof(zero)) == 0;
}

static int choose_gid(const struct vb_device *device)
{
	int length = device->port_attr.gid_tbl_len;
	int chosen = -1;

	for (int i = 0; i < length && i < GIDS_MAX; i++) {
		struct ibv_gid_entry entry;

		if (vb_query_gid_ex(device->context, device->port_num, (uint32_t)i, &entry, 0,
				    sizeof(entry)))
			continue;
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || is_zero(&entry.gid))
			continue;
		if (is_ipv4(&entry.gid))
			return i;
		if (chosen < 0)
			chosen = i;
	}
	return chosen < 0 ? 0 : chosen;
}

int port_read(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port)
{
	int err = vb_query_port(context, port_num, port, sizeof(*port));

	if (err)
		return fail_because(err, "port %u", port_num);
	if (port->state != IBV_PORT_ACTIVE && port->state != IBV_PORT_ARMED)
		return fail(ENETDOWN, "port %u is %s, not ACTIVE or ARMED; bring the port up",
			    port_num, vb_port_state_str(port->state));
	return 0;
}

int port_read_gid(struct ibv_context *context, uint8_t port_num, int gid_index, union ibv_gid *gid)
{
	if (vb_query_gid(context, port_num, gid_index, gid))
		return fail_because(errno, "port %u: GID %d", port_num, gid_index);
	return 0;
}

/* Reads attributes, port and GID of an open device. Returns 0 or errno. */
static int read_device(struct vb_device *device, int gid_index)
{
	int err = vb_query_device(device->context, &device->attr);

	if (err)
		return fail_because(err, "reading its attributes");
	err = port_read(device->context, device->port_num, &device->port_attr);
	if (err)
		return err;
	device->gid_index = gid_index == VB_GID_INDEX_ANY ? choose_gid(device) : gid_index;
	err = port_read_gid(device->context, device->port_num, device->gid_index, &device->gid);
	if (!err && is_zero(&device->gid))
		err = fail(ENODATA, "port %u: GID %d is empty; choose another GID index",
			   device->port_num, device->gid_index);
	return err;
}

struct vb_device *vb_device_open(struct ibv_device *from, uint8_t port_num, int gid_index)
{
	struct vb_device *device = object_new(sizeof(*device), "device");
	const char *name = vb_get_device_name(from);
	int err;

	if (!device)
		return NULL;
	if (!name)
		return object_drop(device, fail_because(errno, "device"));
	device->port_num = port_num ? port_num : DEFAULT_PORT;
	device->context = vb_open_device(from);
	if (!device->context)
		return object_drop(device, fail_because(errno, "device %s: opening it", name));
	err = read_device(device, gid_index);
	if (!err)
		return device;
	fail_because(err, "device %s", name);
	vb_close_device(device->context);
	return object_drop(device, err);
}

/* name NULL is the first device of the list. */
struct vb_device *vb_device_open_named(const char *backend, const char *name, uint8_t port_num,
				       int gid_index)
{
	struct vb_devices *devices = vb_devices_get(backend);
	const struct vb_device_info *info;
	struct vb_device *device = NULL;
	int err;

	if (!devices)
		return NULL;
	info = name ? vb_devices_named(devices, name) : vb_devices_at(devices, 0);
	if (info)
		device = vb_device_open(info->device, port_num, gid_index);
	err = errno;
	vb_devices_put(devices);
	errno = err;
	return device;
}

int vb_device_close(struct vb_device *device)
{
	if (!device)
		return 0;
	if (vb_close_device(device->context))
		return fail_because(errno, "device: closing it");
	free(device);
	return 0;
}
