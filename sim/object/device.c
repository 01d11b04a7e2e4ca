/* SPDX-License-Identifier: MIT */
#include "sim/object/device.h"

#include "sim/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* QPNs 0 and 1 are management's; Wireshark reads them so. */
#define FIRST_QPN	     16
#define QPN_PLACE_BITS	     18
#define SRQN_PLACE_BITS	     18
#define SRQN_GENERATION_BITS 6
#define QPN_GENERATION_BITS  6

static void set_link_local(union ibv_gid *gid, const uint8_t mac[6])
{
	/* RFC 4291, appendix A: the MAC with ff:fe in its middle and the universal bit turned. */
	const uint8_t raw[16] = {0xfe,	     0x80,   0,	     0,	   0,	 0,	 0,	 0,
				 mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(gid->raw, raw, sizeof(raw));
}

/* All that have an entry are of the port's own type; with RoCE v1, each again of that type. */
static void set_gid_types(struct sim_port *port, const struct sim_profile *profile)
{
	const unsigned int count = port->gid_count;

	for (unsigned int i = 0; i < count; i++)
		port->gid_types[i] = (uint8_t)sim_port_gid_type(port);
	if (sim_port_is_infiniband(port) || !profile->roce_v1)
		return;
	for (unsigned int i = 0; i < count; i++) {
		port->gids[count + i] = port->gids[i];
		port->gid_types[count + i] = IBV_GID_TYPE_ROCE_V1;
	}
	port->gid_count = (uint16_t)(2 * count);
}

/* One more than the ports of InfiniBand that there are. */
static uint16_t next_lid(const struct sim_engine *engine)
{
	unsigned int count = 0;

	for (const struct sim_device *device = engine->devices; device; device = device->next)
		if (sim_port_is_infiniband(&device->ports[0]))
			count += device->port_count;
	return (uint16_t)(count + 1);
}

static void init_port(struct sim_port *port, struct sim_device *device, unsigned int number,
		      const struct sim_device_config *config)
{
	*port = (struct sim_port){
		.device = device,
		.number = (uint8_t)number,
		.link_layer = config->link_layer,
		.state = IBV_PORT_ACTIVE,
		.mtu = (uint8_t)config->mtu,
		.mac = {0x02, 0, 0, (uint8_t)(device->index >> 8), (uint8_t)(number - 1),
			(uint8_t)(device->index + 1)},
		.gid_count = 1,
		.pkey_count = 1,
		.pkeys = {0xffff},
	};
	set_link_local(&port->gids[0], port->mac);
	if (sim_port_is_infiniband(port)) {
		port->lid = (uint16_t)(next_lid(device->engine) + number - 1);
		port->sm_lid = 1;
	}
	if (number == 1) {
		if (config->gid_count)
			memcpy(&port->gids[1], config->gids,
			       config->gid_count * sizeof(port->gids[0]));
		port->gid_count = (uint16_t)(config->gid_count + 1);
	}
	set_gid_types(port, config->profile);
	if (config->pkey_count) {
		memcpy(port->pkeys, config->pkeys, config->pkey_count * sizeof(port->pkeys[0]));
		port->pkey_count = (uint16_t)config->pkey_count;
	}
}

static bool config_fits(const struct sim_device_config *config)
{
	return config->port_count >= 1 && config->port_count <= SIM_PORTS_MAX &&
	       (config->link_layer == IBV_LINK_LAYER_ETHERNET ||
		config->link_layer == IBV_LINK_LAYER_INFINIBAND) &&
	       config->mtu >= IBV_MTU_256 && config->mtu <= IBV_MTU_4096 &&
	       config->gid_count < SIM_GIDS_MAX / 2 && config->pkey_count <= SIM_PKEYS_MAX &&
	       strlen(config->name) < SIM_NAME_MAX;
}

int sim_device_create(struct sim_engine *engine, const struct sim_device_config *config, void *user,
		      struct sim_device **out)
{
	struct sim_device **end = &engine->devices;
	struct sim_device *device;

	if (!config_fits(config))
		return EINVAL;
	device = calloc(1, sizeof(*device));
	if (!device)
		return ENOMEM;
	device->engine = engine;
	device->profile = config->profile;
	device->quirks = config->profile->quirks;
	device->user = user;
	device->index = engine->device_count++;
	device->port_count = config->port_count;
	device->memory_epoch = 1;
	strcpy(device->name, config->name);
	sim_table_init(&device->qps, QPN_PLACE_BITS, QPN_GENERATION_BITS, FIRST_QPN,
		       (uint32_t)config->profile->limits.max_qp);
	sim_table_init(&device->srqs, SRQN_PLACE_BITS, SRQN_GENERATION_BITS, 1,
		       (uint32_t)config->profile->limits.max_srq);
	sim_table_init(&device->regions, SIM_KEY_PLACE_BITS, SIM_KEY_GENERATION_BITS, 1,
		       (1u << SIM_KEY_PLACE_BITS) - 1);
	for (unsigned int i = 0; i < config->port_count; i++)
		init_port(&device->ports[i], device, i + 1, config);
	device->node_guid = be64toh(device->ports[0].gids[0].global.interface_id);
	while (*end)
		end = &(*end)->next;
	*end = device;
	*out = device;
	return 0;
}

int sim_device_lower_limit(struct sim_device *device, const char *name, int value)
{
	struct sim_profile lowered = *device->profile;
	int *limit = sim_limit_find(&lowered.limits, name);

	if (!limit || value < 0 || value > *limit)
		return EINVAL;
	*limit = value;
	device->own_profile = lowered;
	device->profile = &device->own_profile;
	device->qps.limit = (uint32_t)lowered.limits.max_qp;
	device->srqs.limit = (uint32_t)lowered.limits.max_srq;
	return 0;
}

struct sim_port *sim_device_port(struct sim_device *device, unsigned int number)
{
	return number >= 1 && number <= device->port_count ? &device->ports[number - 1] : NULL;
}

void sim_device_query(const struct sim_device *device, struct ibv_device_attr *attr)
{
	*attr = device->profile->limits;
	attr->node_guid = htobe64(device->node_guid);
	attr->sys_image_guid = attr->node_guid;
	attr->phys_port_cnt = (uint8_t)device->port_count;
}

void sim_port_query(const struct sim_port *port, struct ibv_port_attr *attr)
{
	const bool infiniband = sim_port_is_infiniband(port);

	*attr = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = port->mtu,
		.active_mtu = port->mtu,
		.gid_tbl_len = port->device->profile->gid_table,
		.port_cap_flags = IBV_PORT_CM_SUP |
				  (infiniband ? IBV_PORT_CLIENT_REG_SUP : IBV_PORT_IP_BASED_GIDS),
		.max_msg_sz = port->device->profile->max_message_bytes,
		.pkey_tbl_len = port->pkey_count,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR: 25 Gbit/s a lane, 100 in all */
		.phys_state = port->state == IBV_PORT_ACTIVE ? 5 /* LinkUp */ : 3 /* Disabled */,
		.link_layer = port->link_layer,
		.flags = infiniband ? 0 : IBV_QPF_GRH_REQUIRED,
	};
}

int sim_port_find_gid(const struct sim_port *port, const union ibv_gid *gid, enum ibv_gid_type type)
{
	for (int i = 0; i < port->gid_count; i++)
		if (port->gid_types[i] == type && memcmp(&port->gids[i], gid, sizeof(*gid)) == 0)
			return i;
	return -1;
}

/*
 * The MAC of a group: RFC 1112 for IPv4, RFC 2464 for IPv6. A GRH has no address family of its own:
 * the group's GID decides, as in Linux drivers/infiniband/core/verbs.c, ib_resolve_eth_dmac.
 */
static void set_group_mac(uint8_t mac[6], const union ibv_gid *sgid, const union ibv_gid *dgid,
			  bool roce_v1)
{
	const uint8_t *family = roce_v1 ? dgid->raw : sgid->raw;
	const uint8_t ipv4[6] = {0x01,		0x00,	      0x5e, dgid->raw[13] & 0x7f,
				 dgid->raw[14], dgid->raw[15]};
	const uint8_t ipv6[6] = {0x33,		0x33,	       dgid->raw[12],
				 dgid->raw[13], dgid->raw[14], dgid->raw[15]};

	memcpy(mac, sim_gid_is_ipv4(family) ? ipv4 : ipv6, 6);
}

static void fill_ethernet(struct sim_route *route, const struct sim_path *path,
			  const union ibv_gid *sgid, const struct ibv_global_route *grh,
			  bool roce_v1)
{
	*route = (struct sim_route){
		.roce_v1 = roce_v1,
		.traffic_class = grh->traffic_class,
		.hop_limit = grh->hop_limit ? grh->hop_limit : 64,
		.ip_fragment = 0x4000, /* DF, and the identification 0: the ICRC covers both */
		.flow_label = grh->flow_label & 0xfffff,
	};
	if (route->flow_label)
		route->udp_source_port = ibv_flow_label_to_udp_sport(route->flow_label);
	memcpy(route->source_mac, path->source->mac, sizeof(route->source_mac));
	if (path->multicast)
		set_group_mac(route->dest_mac, sgid, &grh->dgid, roce_v1);
	else if (path->dest)
		memcpy(route->dest_mac, path->dest->mac, sizeof(route->dest_mac));
	memcpy(route->source_gid, sgid->raw, sizeof(route->source_gid));
	memcpy(route->dest_gid, grh->dgid.raw, sizeof(route->dest_gid));
}

/* An empty place of the table is ENODATA: Linux drivers/infiniband/core/cache.c, rdma_get_gid_attr. */
static int check_gids(const struct sim_port *port, const struct ibv_global_route *grh)
{
	static const union ibv_gid zero;

	if (grh->sgid_index >= port->device->profile->gid_table ||
	    memcmp(&grh->dgid, &zero, sizeof(zero)) == 0)
		return EINVAL;
	if (grh->sgid_index >= port->gid_count ||
	    memcmp(&port->gids[grh->sgid_index], &zero, sizeof(zero)) == 0)
		return ENODATA;
	return 0;
}

static int resolve_ethernet(struct sim_port *port, const struct ibv_ah_attr *attr,
			    struct sim_path *path)
{
	const struct ibv_global_route *grh = &attr->grh;
	const union ibv_gid *sgid;
	enum ibv_gid_type type;
	/* RoCE has no LIDs: without a GRH there is no address. */
	int err = attr->is_global ? check_gids(port, grh) : EINVAL;

	if (err)
		return err;
	sgid = &port->gids[grh->sgid_index];
	type = port->gid_types[grh->sgid_index];
	path->multicast = sim_gid_is_multicast(grh->dgid.raw);
	if (type == IBV_GID_TYPE_ROCE_V2 && !path->multicast &&
	    sim_gid_is_ipv4(sgid->raw) != sim_gid_is_ipv4(grh->dgid.raw))
		return EINVAL;
	path->dest = sim_fabric_find(port->device->engine, &grh->dgid, type);
	fill_ethernet(&path->route, path, sgid, grh, type == IBV_GID_TYPE_ROCE_V1);
	return 0;
}

/*
 * The checks are those of qib_check_ah in Linux drivers/infiniband/hw/qib/qib_verbs.c; that a
 * multicast LID wants a multicast GID besides the GRH is unsourced.
 */
static int resolve_infiniband(struct sim_port *port, const struct ibv_ah_attr *attr,
			      struct sim_path *path)
{
	const struct ibv_global_route *grh = &attr->grh;
	int err = attr->is_global ? check_gids(port, grh) : 0;

	if (err)
		return err;
	path->multicast = sim_lid_is_multicast(attr->dlid);
	if (attr->dlid == 0 || attr->sl > 15 ||
	    (path->multicast && !(attr->is_global && sim_gid_is_multicast(grh->dgid.raw))))
		return EINVAL;
	path->dest = sim_fabric_find_lid(port->device->engine, attr->dlid);
	path->route = (struct sim_route){
		.infiniband = true,
		.has_grh = attr->is_global,
		.sl = attr->sl,
		.slid = port->lid,
		.dlid = attr->dlid,
	};
	if (!attr->is_global)
		return 0;
	path->route.traffic_class = grh->traffic_class;
	path->route.hop_limit = grh->hop_limit;
	path->route.flow_label = grh->flow_label & 0xfffff;
	memcpy(path->route.source_gid, port->gids[grh->sgid_index].raw, 16);
	memcpy(path->route.dest_gid, grh->dgid.raw, 16);
	return 0;
}

int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path)
{
	struct sim_port *port = sim_device_port(device, attr->port_num);
	int err;

	if (!port)
		return EINVAL;
	path->source = port;
	path->sgid_index = attr->is_global ? attr->grh.sgid_index : 0;
	path->service_level = attr->sl;
	path->address_epoch = device->engine->fabric.address_epoch;
	err = sim_port_is_infiniband(port) ? resolve_infiniband(port, attr, path)
					   : resolve_ethernet(port, attr, path);
	if (err)
		return err;
	path->link = path->dest ? sim_fabric_link(device->engine, port, path->dest) : NULL;
	return 0;
}

int sim_ah_create(struct sim_device *device, uint32_t pd, const struct ibv_ah_attr *attr,
		  struct sim_ah **out)
{
	struct sim_ah *ah;
	int err;

	if (device->ah_count >= (uint32_t)device->profile->limits.max_ah)
		return ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return ENOMEM;
	err = sim_path_resolve(device, attr, &ah->path);
	if (err) {
		free(ah);
		return err;
	}
	ah->device = device;
	ah->pd = pd;
	ah->holders = 1;
	ah->attr = *attr;
	device->ah_count++;
	*out = ah;
	return 0;
}

void sim_ah_release(struct sim_ah *ah)
{
	if (--ah->holders)
		return;
	ah->device->ah_count--;
	free(ah);
}

int sim_xrcd_create(struct sim_device *device, struct sim_xrcd **out)
{
	struct sim_xrcd *xrcd = calloc(1, sizeof(*xrcd));

	if (!xrcd)
		return ENOMEM;
	xrcd->device = device;
	device->xrcd_count++;
	*out = xrcd;
	return 0;
}

int sim_xrcd_destroy(struct sim_xrcd *xrcd)
{
	if (xrcd->users)
		return EBUSY;
	xrcd->device->xrcd_count--;
	free(xrcd);
	return 0;
}

void sim_port_event(struct sim_port *port, enum ibv_event_type type)
{
	const struct sim_host *host = &port->device->engine->host;
	const struct sim_event event = {.type = type, .port_num = port->number};

	host->async_event(host->arg, port->device, &event);
}

/* Addresses have moved: paths look again. */
static void moved(struct sim_port *port, enum ibv_event_type type)
{
	port->device->engine->fabric.address_epoch++;
	sim_engine_changed(port->device->engine);
	sim_port_event(port, type);
}

void sim_port_set_state(struct sim_port *port, enum ibv_port_state state)
{
	bool was_active = port->state == IBV_PORT_ACTIVE;
	bool is_active = state == IBV_PORT_ACTIVE;

	port->state = (uint8_t)state;
	sim_engine_changed(port->device->engine);
	if (was_active && !is_active)
		port->device->counters.links_downed++;
	if (was_active != is_active)
		sim_port_event(port, is_active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void sim_port_set_lid(struct sim_port *port, uint16_t lid)
{
	port->lid = lid;
	moved(port, IBV_EVENT_LID_CHANGE);
}

static bool speaks(const struct sim_port *port, enum ibv_gid_type type)
{
	return type == sim_port_gid_type(port) ||
	       (type == IBV_GID_TYPE_ROCE_V1 && !sim_port_is_infiniband(port) &&
		port->device->profile->roce_v1);
}

int sim_port_set_gid(struct sim_port *port, unsigned int index, const union ibv_gid *gid,
		     enum ibv_gid_type type)
{
	if (index >= SIM_GIDS_MAX || !speaks(port, type))
		return EINVAL;
	port->gids[index] = *gid;
	port->gid_types[index] = (uint8_t)type;
	if (index >= port->gid_count)
		port->gid_count = (uint16_t)(index + 1);
	moved(port, IBV_EVENT_GID_CHANGE);
	return 0;
}

int sim_port_set_pkey(struct sim_port *port, unsigned int index, uint16_t pkey)
{
	struct sim_qp *qp;
	uint32_t place = 0;

	if (index >= port->pkey_count)
		return EINVAL;
	port->pkeys[index] = pkey;
	while ((qp = sim_table_next(&port->device->qps, &place)))
		if (qp->port_num == port->number && qp->pkey_index == index)
			qp->pkey = pkey;
	sim_engine_changed(port->device->engine);
	sim_port_event(port, IBV_EVENT_PKEY_CHANGE);
	return 0;
}

void sim_device_kill(struct sim_device *device)
{
	const struct sim_host *host = &device->engine->host;
	const struct sim_event event = {.type = IBV_EVENT_DEVICE_FATAL};
	struct sim_qp *qp;
	uint32_t place = 0;

	if (device->dead)
		return;
	device->dead = true;
	sim_engine_changed(device->engine);
	while ((qp = sim_table_next(&device->qps, &place)))
		if (qp->state != IBV_QPS_RESET)
			sim_qp_fail(qp);
	host->async_event(host->arg, device, &event);
}
