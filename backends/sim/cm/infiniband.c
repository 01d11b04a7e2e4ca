/* SPDX-License-Identifier: MIT */
#include "backends/sim/cm/infiniband.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

static struct sockaddr_ib *source_of(struct cm_id *id)
{
	return (struct sockaddr_ib *)&id->source;
}

static const struct sockaddr_ib *const_source_of(const struct cm_id *id)
{
	return (const struct sockaddr_ib *)&id->source;
}

static const struct sockaddr_ib *dest_of(const struct cm_id *id)
{
	return (const struct sockaddr_ib *)&id->dest;
}

/* --- service IDs --- */

/* Linux cma.c, cma_select_ib_ps: the port spaces that an address may name, and the identifiers that may use them. */
static const struct {
	enum rdma_port_space ps;
	uint64_t service_id;
} spaces[] = {
	{RDMA_PS_IB, RDMA_IB_PS_IB},
	{RDMA_PS_TCP, RDMA_IB_IP_PS_TCP},
	{RDMA_PS_UDP, RDMA_IB_IP_PS_UDP},
};

int cm_ib_choose_space(struct cm_id *id, const char *call)
{
	struct sockaddr_ib *source = source_of(id);
	const uint64_t mask = be64toh(source->sib_sid_mask) & RDMA_IB_IP_PS_MASK;
	const uint64_t wanted = be64toh(source->sib_sid) & mask;
	const uint16_t port = cm_address_port((const struct sockaddr *)source);

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (id->rdma.ps != RDMA_PS_IB && id->rdma.ps != spaces[i].ps)
			continue;
		if (wanted != (spaces[i].service_id & mask))
			continue;
		source->sib_sid = htobe64(spaces[i].service_id | port);
		source->sib_sid_mask |= htobe64(RDMA_IB_IP_PS_MASK);
		return 0;
	}
	return refuse_why(call, (struct vb_why){VB_WHY_CM_IB_SPACE,
						{be64toh(source->sib_sid), mask, id->rdma.ps}});
}

uint64_t cm_ib_service_id(const struct cm_id *id, uint16_t port)
{
	return (be64toh(const_source_of(id)->sib_sid) & RDMA_IB_IP_PS_MASK) | port;
}

uint64_t cm_ib_dest_service_id(const struct cm_id *id)
{
	return be64toh(dest_of(id)->sib_sid);
}

/* --- ports and paths --- */

struct sockaddr_storage cm_ib_source_for(const struct sockaddr *dest)
{
	const struct sockaddr_ib *to = (const struct sockaddr_ib *)(const void *)dest;
	struct sockaddr_storage any = {.ss_family = AF_IB};

	((struct sockaddr_ib *)&any)->sib_pkey = to->sib_pkey;
	return any;
}

/* Returns the index of a P_Key in the port's table; -1 if the table lacks the P_Key. */
static int find_pkey(const struct sim_port *port, uint16_t pkey)
{
	for (unsigned int i = 0; i < port->pkey_count; i++)
		if (!((port->pkeys[i] ^ pkey) & 0x7fff))
			return (int)i;
	return -1;
}

uint16_t cm_ib_pkey_index(const struct cm_id *id)
{
	const int index = find_pkey(id->port, be16toh(const_source_of(id)->sib_pkey));

	return (uint16_t)(index < 0 ? 0 : index);
}

static bool has_prefix(const union ibv_gid *gid, const union ibv_gid *other)
{
	return gid->global.subnet_prefix == other->global.subnet_prefix;
}

/* Looks for a port with the destination itself. Keeps the first active port of the destination's subnet. */
static bool look_at_port(struct sim_port *port, const union ibv_gid *dgid, struct cm_place *place,
			 bool *found)
{
	for (unsigned int i = 0; i < port->gid_count; i++) {
		const bool same = memcmp(&port->gids[i], dgid, sizeof(*dgid)) == 0;

		if (same || (!*found && sim_port_is_up(port) && has_prefix(&port->gids[i], dgid))) {
			*place = (struct cm_place){port->device->user, port, (uint8_t)i};
			*found = true;
		}
		if (same)
			return true;
	}
	return false;
}

/* Linux cma.c, cma_resolve_ib_dev. */
int cm_ib_find_port(struct cm_id *id, struct cm_place *place, const char *call)
{
	const struct sockaddr *dest = (const struct sockaddr *)&id->dest;
	const union ibv_gid dgid = cm_address_gid(dest);
	const uint16_t pkey = be16toh(dest_of(id)->sib_pkey);
	struct cm *cm = id->cm;
	char text[INET6_ADDRSTRLEN];
	bool found = false;

	for (unsigned int i = 0; i < cm->world->device_count; i++) {
		struct sim_device *device = cm->world->devices[i].engine;

		for (unsigned int number = 1; number <= device->port_count && !device->dead;
		     number++) {
			struct sim_port *port = sim_device_port(device, number);

			if (find_pkey(port, pkey) >= 0 && look_at_port(port, &dgid, place, &found))
				return 0;
		}
	}
	if (found)
		return 0;
	return refuse_why(call, (struct vb_why){VB_WHY_CM_IB_PORT,
						{pkey},
						.text = cm_address_text(dest, text, sizeof(text))});
}

/* Linux cma.c, cma_query_ib_route. */
void cm_ib_set_path(struct cm_id *id)
{
	const struct sockaddr_ib *source = const_source_of(id);

	if (!cm_address_is_any((const struct sockaddr *)source))
		id->path.pkey = be16toh(source->sib_pkey);
	id->path.attr.grh.traffic_class = (uint8_t)(be32toh(source->sib_flowinfo) >> 20);
}

/* The subnet manager knows the GIDs of the simulated devices. On Ethernet there is no net device for the route: Linux
 * cma.c, cma_resolve_iboe_route. */
int cm_ib_find_route(const struct cm_id *id, int *status, const char *call)
{
	struct cm_place place;

	if (!sim_port_is_infiniband(id->port))
		return refuse_why(call, (struct vb_why){VB_WHY_CM_IB_ETHERNET, {id->port->number}});
	*status = cm_find_gid(id->cm, &id->dgid, &place) && find_pkey(id->port, id->path.pkey) >= 0
			  ? 0
			  : -EINVAL;
	return 0;
}

/* --- requests --- */

/* Linux cma.c, cma_save_ib_info. A SIDR_REQ does not say to which GID it goes, nor from which one it comes. */
void cm_ib_fill_request(struct cm_id *id, const struct cm_id *listener,
			const struct sim_cm_event *event)
{
	struct sockaddr_ib *source = source_of(id), *dest = (struct sockaddr_ib *)&id->dest;

	*source = *const_source_of(listener);
	source->sib_sid_mask = htobe64(UINT64_MAX);
	dest->sib_family = AF_IB;
	if (event->kind == SIM_CM_EVENT_SIDR_REQ)
		return;
	source->sib_pkey = htobe16(id->path.pkey);
	source->sib_flowinfo = htobe32(id->path.attr.grh.flow_label);
	source->sib_sid = htobe64(event->request.service_id);
	source->sib_scope_id = 0;
	memcpy(&source->sib_addr, &id->port->gids[id->path.attr.grh.sgid_index],
	       sizeof(source->sib_addr));
	dest->sib_pkey = source->sib_pkey;
	dest->sib_flowinfo = source->sib_flowinfo;
	memcpy(&dest->sib_addr, &id->dgid, sizeof(dest->sib_addr));
}
