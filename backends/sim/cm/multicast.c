/* SPDX-License-Identifier: MIT */
/* Multicast groups: rdma_join_multicast(3) and its like. A subnet manager is not asked: the simulated
 * subnet has each group. */
#include "backends/sim/cm/private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define JOIN	  "join_multicast"
#define LEAVE	  "leave_multicast"
#define LID_FIRST 0xc000 /* InfiniBand: multicast LIDs */

/* --- the addresses of a group --- */

/* Linux cma.c, cma_iboe_set_mgid. */
static union ibv_gid ethernet_gid(const struct cm_id *id, const struct sockaddr *address)
{
	union ibv_gid gid = cm_address_gid(address);

	if (address->sa_family == AF_INET &&
	    id->port->gid_types[id->path.attr.grh.sgid_index] == IBV_GID_TYPE_ROCE_V1) {
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
	}
	return gid;
}

/* Linux include/net/ip.h, ip_ib_mc_map, and include/net/if_inet6.h, ipv6_ib_mc_map, with the scope of the
 * link; Linux cma.c, cma_set_mgid: the signature of the connection manager in the port space UDP. */
static union ibv_gid infiniband_gid(const struct cm_id *id, const struct sockaddr *address)
{
	const union ibv_gid given = cm_address_gid(address);
	const uint16_t pkey = id->port->pkeys[sim_port_default_pkey(id->port)];
	const bool ipv4 = address->sa_family == AF_INET;
	union ibv_gid gid = {.raw = {0xff, 0x12, ipv4 ? 0x40 : 0x60,
				     id->rdma.ps == RDMA_PS_UDP ? 0x01 : 0x1b, (uint8_t)(pkey >> 8),
				     (uint8_t)pkey}};

	if (address->sa_family == AF_IB)
		return given;
	/* The address of an IPv6 group may be that of a group which the subnet manager has chosen. */
	if (!ipv4 && given.raw[0] == 0xff && (given.raw[1] & 0xf0) == 0x10 &&
	    given.raw[2] == 0xa0 && given.raw[3] == 0x1b)
		return given;
	if (ipv4) {
		memcpy(gid.raw + 12, given.raw + 12, 4);
		gid.raw[12] &= 0x0f;
	} else {
		memcpy(gid.raw + 6, given.raw + 6, 10);
	}
	return gid;
}

/* All members find the same LID without a subnet manager. Two groups may have one LID: members look at the
 * GID, too. */
static uint16_t lid_of(const union ibv_gid *gid)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < sizeof(gid->raw); i++)
		sum = sum * 31 + gid->raw[i];
	return (uint16_t)(LID_FIRST + sum % (0xffff - LID_FIRST));
}

static struct ibv_ah_attr attr_of(const struct cm_group *group)
{
	const struct cm_id *id = group->id;

	return (struct ibv_ah_attr){
		.is_global = 1,
		.dlid = group->lid,
		.port_num = id->port->number,
		.grh = {.dgid = group->gid,
			.sgid_index = id->path.attr.grh.sgid_index,
			.hop_limit = 64,
			.traffic_class = id->tos},
	};
}

/* --- join --- */

/* Returns the link to the group of an address, or to the NULL at the end. */
static struct cm_group **find_group(struct cm_id *id, const struct sockaddr *address)
{
	struct cm_group **link = &id->groups;

	while (*link && !cm_address_is_same((struct sockaddr *)&(*link)->address, address))
		link = &(*link)->next;
	return link;
}

static struct cm_group *new_group(struct cm_id *id, const struct sockaddr *address, bool send_only,
				  void *context)
{
	struct cm_group *group = pool_take(&id->cm->groups);

	if (!group)
		return NULL;
	group->id = id;
	memcpy(&group->address, address, cm_address_bytes(address));
	group->context = context;
	group->send_only = send_only;
	if (sim_port_is_infiniband(id->port)) {
		group->gid = infiniband_gid(id, address);
		group->lid = lid_of(&group->gid);
	} else {
		group->gid = ethernet_gid(id, address);
	}
	return group;
}

/* Linux cma.c, cma_ib_mc_handler. */
static void fill_event(struct cm_event *event, struct cm_group *group)
{
	struct rdma_ud_param *param = &event->rdma.param.ud;

	event->group = group;
	param->private_data = group->context;
	param->ah_attr = attr_of(group);
	param->qp_num = CM_DATAGRAM_QPN;
	param->qkey = RDMA_UDP_QKEY;
}

static int join_held(struct cm_id *id, const struct sockaddr *address, bool send_only,
		     void *context)
{
	HOLD hold = world_hold(id->cm->world);
	int err = cm_check_state(id, JOIN);
	struct cm_event *event;
	struct cm_group *group;

	if (!err && !id->device)
		err = refuse_plainly(JOIN, VB_WHY_CM_NOT_BOUND);
	if (!err && !cm_is_datagram(id))
		err = refuse_plainly(JOIN, VB_WHY_CM_JOIN_TYPE);
	if (err)
		return err;
	group = new_group(id, address, send_only, context);
	event = group ? cm_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0) : NULL;
	if (!event) {
		if (group)
			pool_give(&id->cm->groups, group);
		return refuse_plainly(JOIN, VB_WHY_NO_MEMORY);
	}
	group->next = id->groups;
	id->groups = group;
	fill_event(event, group);
	cm_event_push(event);
	driver_catch_up(&hold.world->driver);
	return 0;
}

static int refuse_address(const struct sockaddr *address, const char *call)
{
	if (!address)
		return refuse_name(call, VB_WHY_CM_NO_ADDRESS, "multicast address");
	return refuse_why(call, (struct vb_why){VB_WHY_CM_FAMILY,
						{address->sa_family, AF_INET, AF_INET6, AF_IB},
						.text = "multicast address"});
}

static int join(struct rdma_cm_id *rdma, const struct sockaddr *address, bool send_only,
		void *context)
{
	struct cm_id *id = cm_id_of(rdma);
	int err = cm_address_bytes(address) ? join_held(id, address, send_only, context)
					    : refuse_address(address, JOIN);

	return err ? minus_errno(err) : cm_complete(id, JOIN);
}

int cm_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context)
{
	return join(id, address, false, context);
}

/* rdma-core librdmacm/cma.c, rdma_join_multicast_ex. */
int cm_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	static const char call[] = "join_multicast_ex";
	const uint32_t both = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	const uint32_t unknown = attr->comp_mask & ~both;

	if (unknown)
		return minus_errno(
			refuse_why(call, (struct vb_why){VB_WHY_CM_JOIN_MASK, {unknown}}));
	if (attr->comp_mask != both)
		return minus_errno(refuse_why(
			call, (struct vb_why){VB_WHY_CM_JOIN_MISSING, {both & ~attr->comp_mask}}));
	if (attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return minus_errno(refuse_why(
			call, (struct vb_why){VB_WHY_CM_JOIN_FLAGS, {attr->join_flags}}));
	return join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		    context);
}

int cm_group_attach(struct cm_group *group)
{
	struct ibv_qp *qp = group->id->rdma.qp;
	int err;

	if (!qp || group->send_only)
		return 0;
	err = verb_attach_mcast(qp, &group->gid, group->lid);
	group->attached = !err;
	return err ? minus_errno(err) : 0;
}

/* --- leave --- */

static bool all_acknowledged(const void *arg)
{
	const struct cm_group *group = arg;

	return group->events_read == group->events_acked;
}

/* Takes the group out of the identifier's. NULL, with a sentence and errno, if it is in none. */
static struct cm_group *take_group(struct cm_id *id, const struct sockaddr *address)
{
	HOLD hold = world_hold(id->cm->world);
	struct cm_group **link = find_group(id, address);
	struct cm_group *group = *link;
	char text[INET6_ADDRSTRLEN];
	int err;

	if (!group)
		return null_errno(refuse_name(LEAVE, VB_WHY_CM_NOT_JOINED,
					      cm_address_text(address, text, sizeof(text))));
	err = driver_wait_for_others(&hold.world->driver, all_acknowledged, group);
	if (err)
		return null_errno(
			refuse_wait(LEAVE, err,
				    (struct vb_why){VB_WHY_CM_UNACKED,
						    {group->events_read - group->events_acked}}));
	*find_group(id, address) = group->next;
	cm_drop_group_event(id, group);
	return group;
}

int cm_leave_multicast(struct rdma_cm_id *rdma, struct sockaddr *address)
{
	struct cm_id *id = cm_id_of(rdma);
	struct cm_group *group;

	if (!cm_address_bytes(address))
		return minus_errno(refuse_address(address, LEAVE));
	group = take_group(id, address);
	if (!group)
		return -1;
	if (rdma->qp && group->attached)
		verb_detach_mcast(rdma->qp, &group->gid, group->lid);
	HOLD hold = world_hold(id->cm->world);

	pool_give(&id->cm->groups, group);
	return 0;
}

void cm_groups_end(struct cm_id *id)
{
	while (id->groups) {
		struct cm_group *group = id->groups;

		id->groups = group->next;
		pool_give(&id->cm->groups, group);
	}
}
