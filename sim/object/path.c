/* SPDX-License-Identifier: MIT */
#include "sim/object/path.h"

#include "sim/base/refuse.h"
#include "sim/object/device.h"

#include <string.h>

/*
 * The MAC of a group: RFC 1112 for IPv4, RFC 2464 for IPv6. The source GID decides between the two
 * on RoCE v2; on RoCE v1 the group's GID does, as in Linux drivers/infiniband/core/verbs.c,
 * ib_resolve_eth_dmac.
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
	memcpy(route->source_gid, sgid->raw, sizeof(route->source_gid));
	memcpy(route->dest_gid, grh->dgid.raw, sizeof(route->dest_gid));
}

static int refuse(const struct sim_port *port, enum vb_reason reason, uint64_t first,
		  uint64_t second, uint64_t third)
{
	return sim_refuse(port->device->engine, (struct vb_why){reason, {first, second, third}});
}

/* ENODATA for an empty entry of the table: Linux drivers/infiniband/core/cache.c,
 * rdma_get_gid_attr. */
static int check_gids(const struct sim_port *port, const struct ibv_global_route *grh)
{
	static const union ibv_gid zero;
	const unsigned int index = grh->sgid_index, entries = port->device->profile->gid_table;

	if (index >= entries)
		return refuse(port, VB_WHY_PATH_SGID_INDEX, index, port->number, entries);
	if (memcmp(&grh->dgid, &zero, sizeof(zero)) == 0)
		return refuse(port, VB_WHY_PATH_DGID_ZERO, 0, 0, 0);
	if (index >= port->gid_count || memcmp(&port->gids[index], &zero, sizeof(zero)) == 0)
		return refuse(port, VB_WHY_PATH_SGID_EMPTY, index, port->number, 0);
	return 0;
}

static int resolve_ethernet(struct sim_port *port, const struct ibv_ah_attr *attr,
			    struct sim_path *path)
{
	const struct ibv_global_route *grh = &attr->grh;
	struct sim_engine *engine = port->device->engine;
	const union ibv_gid *sgid;
	enum ibv_gid_type type;
	/* RoCE has no LIDs: without a GRH there is no address. */
	int err = attr->is_global ? check_gids(port, grh)
				  : refuse(port, VB_WHY_PATH_GRH_MISSING, port->number, 0, 0);

	if (err)
		return err;
	sgid = &port->gids[grh->sgid_index];
	type = port->gid_types[grh->sgid_index];
	path->multicast = sim_gid_is_multicast(grh->dgid.raw);
	if (type == IBV_GID_TYPE_ROCE_V2 && !path->multicast &&
	    sim_gid_is_ipv4(sgid->raw) != sim_gid_is_ipv4(grh->dgid.raw))
		return refuse(port, VB_WHY_PATH_FAMILIES, grh->sgid_index, 0, 0);
	fill_ethernet(&path->route, path, sgid, grh, type == IBV_GID_TYPE_ROCE_V1);
	/* The kernel resolves the address of a RoCE path in ibv_modify_qp(3) and ibv_create_ah(3): Linux
	 * drivers/infiniband/core/verbs.c, ib_resolve_eth_dmac. */
	if (!path->multicast && engine->check_address)
		return engine->check_address(engine, path);
	return 0;
}

/*
 * The checks are those of qib_check_ah in Linux drivers/infiniband/hw/qib/qib_verbs.c; that a
 * multicast LID needs a GRH with a multicast GID is unsourced.
 */
static int resolve_infiniband(struct sim_port *port, const struct ibv_ah_attr *attr,
			      struct sim_path *path)
{
	const struct ibv_global_route *grh = &attr->grh;
	int err = attr->is_global ? check_gids(port, grh) : 0;

	if (err)
		return err;
	path->multicast = sim_lid_is_multicast(attr->dlid);
	if (attr->dlid == 0)
		return refuse(port, VB_WHY_PATH_DLID_ZERO, 0, 0, 0);
	if (attr->sl > 15)
		return refuse(port, VB_WHY_PATH_SERVICE_LEVEL, attr->sl, 0, 0);
	if (path->multicast && !(attr->is_global && sim_gid_is_multicast(grh->dgid.raw)))
		return refuse(port, VB_WHY_PATH_MULTICAST_GRH, attr->dlid, 0, 0);
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

	if (!port)
		return sim_refuse(
			device->engine,
			(struct vb_why){VB_WHY_PATH_PORT, {attr->port_num, device->port_count}});
	path->source = port;
	path->sgid_index = attr->is_global ? attr->grh.sgid_index : 0;
	path->service_level = attr->sl;
	path->address_epoch = 0;
	return sim_port_is_infiniband(port) ? resolve_infiniband(port, attr, path)
					    : resolve_ethernet(port, attr, path);
}
