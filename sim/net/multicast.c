/* SPDX-License-Identifier: MIT */
/* Who is in which multicast group. */
#include "sim/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The LID that a group has besides its GID: RoCE has none. */
static uint16_t group_lid(const struct sim_qp *qp, uint16_t lid)
{
	return sim_port_is_infiniband(&qp->device->ports[0]) ? lid : 0;
}

/* The membership in a group; in any with gid NULL. */
static struct sim_member **find_member(struct sim_engine *engine, const struct sim_qp *qp,
				       const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = &engine->fabric.members;

	while (*at && ((*at)->qp != qp ||
		       (gid && ((*at)->lid != lid || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0))))
		at = &(*at)->next;
	return at;
}

/* How many QPs of its device are in a QP's group. */
static int count_in_group(const struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct sim_member *member = qp->engine->fabric.members;
	int count = 0;

	for (; member; member = member->next)
		count += member->qp->device == qp->device && member->lid == lid &&
			 memcmp(&member->gid, gid, sizeof(*gid)) == 0;
	return count;
}

/* As the three checks of Linux drivers/infiniband/sw/rxe/rxe_mcast.c. */
static bool has_room(const struct sim_device *device, int in_group)
{
	const struct ibv_device_attr *limits = &device->profile->limits;

	return in_group < limits->max_mcast_qp_attach &&
	       (in_group || device->group_count < (uint32_t)limits->max_mcast_grp) &&
	       device->attachment_count < (uint32_t)limits->max_total_mcast_qp_attach;
}

int sim_qp_attach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = find_member(qp->engine, qp, gid, group_lid(qp, lid));
	int in_group;

	if (qp->type != IBV_QPT_UD || !sim_gid_is_multicast(gid->raw))
		return EINVAL;
	/* As is_valid_mcast_lid in Linux drivers/infiniband/core/verbs.c. */
	if (sim_port_is_infiniband(&qp->device->ports[0]) && !sim_lid_is_multicast(lid))
		return EINVAL;
	if (*at)
		return 0;
	in_group = count_in_group(qp, gid, group_lid(qp, lid));
	if (!has_room(qp->device, in_group))
		return ENOMEM;
	*at = calloc(1, sizeof(**at));
	if (!*at)
		return ENOMEM;
	(*at)->qp = qp;
	(*at)->gid = *gid;
	(*at)->lid = group_lid(qp, lid);
	qp->attachments++;
	qp->device->attachment_count++;
	qp->device->group_count += in_group == 0;
	return 0;
}

static void remove_member(struct sim_member **at)
{
	struct sim_member *member = *at;
	struct sim_device *device = member->qp->device;

	*at = member->next;
	member->qp->attachments--;
	device->attachment_count--;
	device->group_count -= count_in_group(member->qp, &member->gid, member->lid) == 0;
	free(member);
}

int sim_qp_detach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = find_member(qp->engine, qp, gid, group_lid(qp, lid));

	if (!*at)
		return EINVAL;
	remove_member(at);
	return 0;
}

void sim_fabric_forget(struct sim_qp *qp)
{
	struct sim_member **at;

	for (at = find_member(qp->engine, qp, NULL, 0); *at;
	     at = find_member(qp->engine, qp, NULL, 0))
		remove_member(at);
}
