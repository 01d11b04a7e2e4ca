/* SPDX-License-Identifier: MIT */
/* Devices: the contexts, PDs and XRC domains that the connection manager makes for programs. */
#include "backends/sim/cm/infiniband.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct cm_device *cm_device_of(struct cm *cm, const struct sim_device *device)
{
	for (unsigned int i = 0; i < cm->world->device_count; i++)
		if (cm->devices[i].device->engine == device)
			return &cm->devices[i];
	return NULL;
}

/* Keeps the opened context for the device, or closes it if another thread was faster. Returns the device's
 * context. */
static struct ibv_context *keep_context(struct cm *cm, struct cm_device *device,
					struct ibv_context *context)
{
	HOLD hold = world_hold(cm->world);

	if (device->context)
		return context;
	context_of(context)->of_cm = true;
	device->context = context;
	return NULL;
}

int cm_device_open(struct cm *cm, struct cm_device *device, const char *call)
{
	struct ibv_context *context;

	if (device->context)
		return context_live(context_of(device->context))
			       ? 0
			       : refuse_plainly(call, VB_WHY_CONTEXT_CLOSED);
	context = verb_open_device(&device->device->ibv);
	if (!context)
		return errno;
	context = keep_context(cm, device, context);
	if (context)
		verb_close_device(context);
	return 0;
}

/* --- what the program sees of an identifier --- */

/* Keeps the PD for all identifiers of the device, or ends it if another thread was faster. Returns the
 * device's PD. */
static struct ibv_pd *keep_pd(struct cm_id *id, struct ibv_pd *pd)
{
	HOLD hold = world_hold(id->cm->world);
	struct cm_device *device = id->device;

	if (!device->pd && pd) {
		device->pd = pd;
		pd = NULL;
	}
	if (device->pd && !id->has_pd) {
		device->users++;
		id->has_pd = true;
		id->rdma.pd = device->pd;
	}
	return pd;
}

/* Gives the identifier the PD of its device. 0, or an errno with a sentence. */
static int share_pd(struct cm_id *id)
{
	struct ibv_pd *pd;

	keep_pd(id, NULL);
	if (id->has_pd)
		return 0;
	pd = verb_alloc_pd(id->device->context);
	if (!pd)
		return errno;
	pd = keep_pd(id, pd);
	if (pd)
		verb_dealloc_pd(pd);
	return 0;
}

static void fill_addresses(struct cm_id *id)
{
	struct rdma_addr *addr = &id->rdma.route.addr;
	HOLD hold = world_hold(id->cm->world);

	memcpy(&addr->src_storage, &id->source, sizeof(id->source));
	memcpy(&addr->dst_storage, &id->dest, sizeof(id->dest));
	if (!id->port)
		return;
	id->rdma.port_num = id->port->number;
	addr->addr.ibaddr.sgid = id->port->gids[id->path.attr.grh.sgid_index];
	addr->addr.ibaddr.dgid = id->dgid;
	addr->addr.ibaddr.pkey =
		htobe16(cm_is_infiniband(id) && id->routed
				? id->path.pkey
				: id->port->pkeys[sim_port_default_pkey(id->port)]);
}

/* rdma-core librdmacm/cma.c, ucma_convert_path: each selector says "exactly"; of the six bits of the life time, the
 * program sees five. */
static void fill_route(const struct cm_id *id, struct ibv_sa_path_rec *record)
{
	const struct sim_cm_path *path = &id->path;

	*record = (struct ibv_sa_path_rec){
		.dgid = id->dgid,
		.sgid = id->port->gids[path->attr.grh.sgid_index],
		.dlid = htobe16(path->attr.dlid),
		.slid = htobe16(id->port->lid),
		.flow_label = htobe32(path->attr.grh.flow_label),
		.hop_limit = path->attr.grh.hop_limit,
		.traffic_class = path->attr.grh.traffic_class,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htobe16(path->pkey),
		.sl = path->attr.sl,
		.mtu_selector = 2,
		.mtu = (uint8_t)path->mtu,
		.rate_selector = 2,
		.rate = IBV_RATE_100_GBPS,
		.packet_life_time_selector = 2,
		.packet_life_time = path->packet_life_time & 0x1f,
	};
}

static int publish_route(struct cm_id *id, const char *call)
{
	if (!id->routed || id->rdma.route.path_rec)
		return 0;
	id->rdma.route.path_rec = malloc(sizeof(*id->rdma.route.path_rec));
	if (!id->rdma.route.path_rec)
		return refuse_plainly(call, VB_WHY_NO_MEMORY);
	fill_route(id, id->rdma.route.path_rec);
	id->rdma.route.num_paths = 1;
	return 0;
}

int cm_publish(struct cm_id *id, const char *call)
{
	int err = 0;

	fill_addresses(id);
	if (!id->device)
		return 0;
	err = cm_device_open(id->cm, id->device, call);
	if (!err)
		err = share_pd(id);
	if (err)
		return err;
	id->rdma.verbs = id->device->context;
	return publish_route(id, call);
}

/* Releases the PD as librdmacm does, which forgets a PD in which the program has objects: rdma-core
 * librdmacm/cma.c, ucma_put_device. */
void cm_device_release(struct cm_id *id)
{
	struct cm_device *device = id->device;
	struct context *context;

	if (!id->has_pd)
		return;
	id->has_pd = false;
	if (--device->users)
		return;
	context = context_of(device->context);
	if (context_live(context) && object_live(KIND_PD, device->pd) &&
	    !((struct pd *)device->pd)->users)
		verb_end_pd(device->pd);
	if (device->xrcd && context_live(context) && object_live(KIND_XRCD, device->xrcd) &&
	    !((struct xrcd *)device->xrcd)->users)
		verb_end_xrcd(device->xrcd);
	device->pd = NULL;
	device->xrcd = NULL;
}

struct ibv_xrcd *cm_device_xrcd(struct cm_device *device)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	if (!device->xrcd)
		device->xrcd = verb_open_xrcd(device->context, &attr);
	return device->xrcd;
}

/* --- rdma_get_devices(3) --- */

/* Opens all devices and lists them. 0, or an errno with a sentence. */
static int open_all(struct cm *cm, struct ibv_context **list)
{
	const unsigned int count = cm->world->device_count;

	for (unsigned int i = 0; i < count; i++) {
		int err = cm_device_open(cm, &cm->devices[i], "get_devices");

		if (err)
			return err;
		list[i] = cm->devices[i].context;
	}
	list[count] = NULL;
	return 0;
}

struct ibv_context **cm_get_devices(int *num_devices)
{
	struct cm *cm = cm_default("get_devices");
	struct ibv_context **list;
	int err;

	if (num_devices)
		*num_devices = 0;
	if (!cm)
		return NULL;
	list = malloc((cm->world->device_count + 1) * sizeof(struct ibv_context *));
	if (!list)
		return null_errno(refuse_plainly("get_devices", VB_WHY_NO_MEMORY));
	err = open_all(cm, list);
	if (err) {
		free(list);
		return null_errno(err);
	}
	if (num_devices)
		*num_devices = (int)cm->world->device_count;
	return list;
}

void cm_free_devices(struct ibv_context **list)
{
	free(list);
}
