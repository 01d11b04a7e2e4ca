/* SPDX-License-Identifier: MIT */
#include "sim/device.h"

#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* QPNs 0 and 1 are management's; Wireshark reads them so. */
#define FIRST_QPN	    16
#define QPN_PLACE_BITS	    18
#define QPN_GENERATION_BITS 6

static void set_link_local(union ibv_gid *gid, const uint8_t mac[6])
{
	/* RFC 4291, appendix A: the MAC with ff:fe in its middle and the universal bit turned. */
	const uint8_t raw[16] = {0xfe,	     0x80,   0,	     0,	   0,	 0,	 0,	 0,
				 mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(gid->raw, raw, sizeof(raw));
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
	if (number == 1) {
		if (config->gid_count)
			memcpy(&port->gids[1], config->gids,
			       config->gid_count * sizeof(port->gids[0]));
		port->gid_count = (uint16_t)(config->gid_count + 1);
	}
	if (config->pkey_count) {
		memcpy(port->pkeys, config->pkeys, config->pkey_count * sizeof(port->pkeys[0]));
		port->pkey_count = (uint16_t)config->pkey_count;
	}
}

static bool config_fits(const struct sim_device_config *config)
{
	return config->port_count >= 1 && config->port_count <= SIM_PORTS_MAX &&
	       config->mtu >= IBV_MTU_256 && config->mtu <= IBV_MTU_4096 &&
	       config->gid_count < SIM_GIDS_MAX && config->pkey_count <= SIM_PKEYS_MAX &&
	       strlen(config->name) < SIM_NAME_MAX;
}

int sim_device_create(struct sim_world *world, const struct sim_device_config *config, void *user,
		      struct sim_device **out)
{
	struct sim_device **end = &world->devices;
	struct sim_device *device;

	if (!config_fits(config))
		return EINVAL;
	if (config->link_layer != IBV_LINK_LAYER_ETHERNET)
		return ENOTSUP;
	device = calloc(1, sizeof(*device));
	if (!device)
		return ENOMEM;
	device->world = world;
	device->profile = config->profile;
	device->user = user;
	device->index = world->device_count++;
	device->port_count = config->port_count;
	device->memory_epoch = 1;
	strcpy(device->name, config->name);
	sim_table_init(&device->qps, QPN_PLACE_BITS, QPN_GENERATION_BITS, FIRST_QPN,
		       (uint32_t)config->profile->limits.max_qp);
	sim_table_init(&device->regions, SIM_KEY_PLACE_BITS, SIM_KEY_GENERATION_BITS, 1,
		       (uint32_t)config->profile->limits.max_mr);
	for (unsigned int i = 0; i < config->port_count; i++)
		init_port(&device->ports[i], device, i + 1, config);
	device->node_guid = be64toh(device->ports[0].gids[0].global.interface_id);
	while (*end)
		end = &(*end)->next;
	*end = device;
	*out = device;
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
	*attr = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = port->mtu,
		.active_mtu = port->mtu,
		.gid_tbl_len = SIM_GIDS_MAX,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = port->device->profile->max_message_bytes,
		.pkey_tbl_len = port->pkey_count,
		.lid = port->lid,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR: 25 Gbit/s a lane, 100 in all */
		.phys_state = port->state == IBV_PORT_ACTIVE ? 5 /* LinkUp */ : 3 /* Disabled */,
		.link_layer = port->link_layer,
	};
}

static void fill_route(struct sim_route *route, const struct sim_path *path,
		       const union ibv_gid *sgid, const struct ibv_global_route *grh)
{
	*route = (struct sim_route){
		.traffic_class = grh->traffic_class,
		.hop_limit = grh->hop_limit ? grh->hop_limit : 64,
		.ip_fragment = 0x4000, /* DF, and the identification 0: the ICRC covers both */
		.flow_label = grh->flow_label & 0xfffff,
	};
	if (route->flow_label)
		route->udp_source_port = ibv_flow_label_to_udp_sport(route->flow_label);
	memcpy(route->source_mac, path->source->mac, sizeof(route->source_mac));
	if (path->dest)
		memcpy(route->dest_mac, path->dest->mac, sizeof(route->dest_mac));
	memcpy(route->source_gid, sgid->raw, sizeof(route->source_gid));
	memcpy(route->dest_gid, grh->dgid.raw, sizeof(route->dest_gid));
}

int sim_path_resolve(struct sim_device *device, const struct ibv_ah_attr *attr,
		     struct sim_path *path)
{
	static const union ibv_gid zero;
	struct sim_port *port = sim_device_port(device, attr->port_num);
	const union ibv_gid *sgid;

	/* RoCE has no LIDs: without a GRH there is no address. */
	if (!port || !attr->is_global || attr->grh.sgid_index >= port->gid_count)
		return EINVAL;
	sgid = &port->gids[attr->grh.sgid_index];
	if (memcmp(&attr->grh.dgid, &zero, sizeof(zero)) == 0 ||
	    sim_gid_is_ipv4(sgid->raw) != sim_gid_is_ipv4(attr->grh.dgid.raw))
		return EINVAL;
	path->source = port;
	path->dest = sim_fabric_find(device->world, &attr->grh.dgid);
	path->link = path->dest ? sim_fabric_link(device->world, port, path->dest) : NULL;
	path->sgid_index = attr->grh.sgid_index;
	path->service_level = attr->sl;
	fill_route(&path->route, path, sgid, &attr->grh);
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
