/* SPDX-License-Identifier: MIT */
/*
 * usage: devices
 * Lists the devices of VERBENA_BACKEND (by default the simulator), with port and address of each
 * device that can be opened.
 */
#include "say.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <verbena/connect.h>

static void show(const struct vb_device_info *info)
{
	struct vb_device *device = vb_device_open(info->device, 0, VB_GID_INDEX_ANY);
	char gid[INET6_ADDRSTRLEN];

	printf("%s: GUID %016" PRIx64 ", index %d\n", info->name, info->guid, info->index);
	if (!device) {
		printf("  not opened: %s\n", vb_last_error());
		return;
	}
	inet_ntop(AF_INET6, device->gid.raw, gid, sizeof(gid));
	printf("  port %u: %s, MTU %u, LID %u, GID %d %s\n", device->port_num,
	       vb_port_state_str(device->port_attr.state),
	       vb_mtu_to_bytes(device->port_attr.active_mtu), device->port_attr.lid,
	       device->gid_index, gid);
	must(vb_device_close(device));
}

int main(void)
{
	struct vb_devices *devices = need(vb_devices_get(NULL));

	printf("%u devices\n", vb_devices_count(devices));
	for (unsigned int i = 0; i < vb_devices_count(devices); i++)
		show(vb_devices_at(devices, i));
	vb_devices_put(devices);
}
