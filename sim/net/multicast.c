/* SPDX-License-Identifier: MIT */
#include "sim/net/multicast.h"

#include "sim/base/refuse.h"
#include "sim/net/net.h"
#include "sim/object/device.h"
#include "sim/qp/qp.h"

#include <stdlib.h>
#include <string.h>

/* A group of InfiniBand has a LID beside its GID; a group of RoCE has 0. */
static uint16_t group_lid(const struct sim_qp *qp, uint16_t lid)
{
	return sim_port_is_infiniband(&sim_qp_device(qp)->ports[0]) ? lid : 0;
}

/* Finds the membership of a QP in a group, or in any group if gid is NULL; *at is NULL at the
 * end. */
static struct sim_member **find_member(const struct sim_qp *qp, const union ibv_gid *gid,
				       uint16_t lid)
{
	struct sim_member **at = &sim_qp_device(qp)->engine->net->members;

	while (*at && ((*at)->qp != qp ||
		       (gid && ((*at)->lid != lid || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0))))
		at = &(*at)->next;
	return at;
}

/* Counts the QPs of a device in a group. */
static int count_in_group(const struct sim_device *device, const union ibv_gid *gid, uint16_t lid)
{
	const struct sim_member *member = device->engine->net->members;
	int count = 0;

	for (; member; member = member->next)
		count += member->device == device && member->lid == lid &&
			 memcmp(&member->gid, gid, sizeof(*gid)) == 0;
	return count;
}

static int refuse(const struct sim_qp *qp, struct vb_why why)
{
	return sim_refuse(sim_qp_device(qp)->engine, why);
}

/* Refuses with the QP's number, the group's GID and two more values, of which each may be 0. */
static int refuse_group(const struct sim_qp *qp, enum vb_reason reason, const union ibv_gid *gid,
			uint16_t first, uint16_t second)
{
	struct vb_why why = {reason, {sim_qp_number(qp), 0, 0, first, second}};

	memcpy(&why.values[1], gid->raw, sizeof(gid->raw));
	return refuse(qp, why);
}

static int check_group(const struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct vb_why why = {.reason = VB_WHY_MCAST_GID};

	if (sim_qp_type(qp) != IBV_QPT_UD)
		return refuse(qp, (struct vb_why){VB_WHY_MCAST_QP_TYPE,
						  {sim_qp_number(qp), sim_qp_type(qp)}});
	if (!sim_gid_is_multicast(gid->raw)) {
		memcpy(why.values, gid->raw, sizeof(gid->raw));
		return refuse(qp, why);
	}
	/* is_valid_mcast_lid in Linux drivers/infiniband/core/verbs.c. */
	if (sim_port_is_infiniband(&sim_qp_device(qp)->ports[0]) && !sim_lid_is_multicast(lid))
		return refuse(qp, (struct vb_why){VB_WHY_MCAST_LID, {lid}});
	return 0;
}

static int refuse_limit(const struct sim_device *device, const char *name, int limit)
{
	return sim_refuse(
		device->engine,
		(struct vb_why){VB_WHY_MCAST_DEVICE_FULL, {(uint64_t)limit}, .text = name});
}

/* The three checks of Linux drivers/infiniband/sw/rxe/rxe_mcast.c. */
static int check_room(const struct sim_device *device, int in_group)
{
	const struct ibv_device_attr *limits = &device->profile->limits;

	if (in_group >= limits->max_mcast_qp_attach)
		return sim_refuse(device->engine,
				  (struct vb_why){VB_WHY_MCAST_GROUP_FULL, {(uint64_t)in_group}});
	if (!in_group && device->group_count >= (uint32_t)limits->max_mcast_grp)
		return refuse_limit(device, "max_mcast_grp", limits->max_mcast_grp);
	if (device->attachment_count >= (uint32_t)limits->max_total_mcast_qp_attach)
		return refuse_limit(device, "max_total_mcast_qp_attach",
				    limits->max_total_mcast_qp_attach);
	return 0;
}

static int add_member(struct sim_qp *qp, struct sim_member **at, const union ibv_gid *gid,
		      uint16_t lid, bool first)
{
	struct sim_device *device = sim_qp_device(qp);
	struct sim_member *member = malloc(sizeof(*member));
	int err;

	if (!member)
		return sim_refuse_memory(device->engine);
	err = first ? sim_way_out_join(device, gid) : 0;
	if (err) {
		free(member);
		return err;
	}
	*member = (struct sim_member){
		.qp = qp,
		.device = device,
		.gid = *gid,
		.lid = group_lid(qp, lid),
		.given_lid = lid,
	};
	*at = member;
	device->attachment_count++;
	device->group_count += first;
	sim_way_out_joined(device);
	return 0;
}

int sim_multicast_attach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_device *device = sim_qp_device(qp);
	struct sim_member **at = find_member(qp, gid, group_lid(qp, lid));
	int err = check_group(qp, gid, lid);
	int in_group;

	if (err)
		return err;
	if (*at)
		return 0;
	in_group = count_in_group(device, gid, group_lid(qp, lid));
	err = check_room(device, in_group);
	return err ? err : add_member(qp, at, gid, lid, in_group == 0);
}

static void remove_member(struct sim_member **at)
{
	struct sim_member *member = *at;
	struct sim_device *device = member->device;

	*at = member->next;
	device->attachment_count--;
	if (count_in_group(device, &member->gid, member->lid) == 0) {
		device->group_count--;
		sim_way_out_leave(device, &member->gid);
	}
	free(member);
	sim_way_out_joined(device);
}

int sim_multicast_detach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = find_member(qp, gid, group_lid(qp, lid));

	/* The LID is compared on Ethernet too: Linux drivers/infiniband/core/uverbs_cmd.c,
	 * ib_uverbs_detach_mcast. */
	if (!*at)
		return refuse_group(qp, VB_WHY_MCAST_NO_MEMBER, gid, 0, 0);
	if ((*at)->given_lid != lid)
		return refuse_group(qp, VB_WHY_MCAST_OTHER_LID, gid, (*at)->given_lid, lid);
	remove_member(at);
	return 0;
}

void sim_multicast_forget(struct sim_qp *qp)
{
	struct sim_member **at;

	for (at = find_member(qp, NULL, 0); *at; at = find_member(qp, NULL, 0))
		remove_member(at);
}

bool sim_multicast_has(const struct sim_qp *qp)
{
	return *find_member(qp, NULL, 0) != NULL;
}

void sim_multicast_destroy(struct sim_net *net)
{
	while (net->members) {
		struct sim_member *member = net->members;

		net->members = member->next;
		free(member);
	}
}

bool sim_multicast_matches(const struct sim_member *member, const struct sim_port *port,
			   const struct sim_route *route)
{
	return member->device == port->device &&
	       member->lid == (route->infiniband ? route->dlid : 0) &&
	       memcmp(&member->gid, route->dest_gid, sizeof(member->gid)) == 0;
}
