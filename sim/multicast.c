/* SPDX-License-Identifier: MIT */
/* Who is in which multicast group. */
#include "sim/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The LID that a group has besides its GID: RoCE has none. */
static uint16_t group_lid(const struct sim_qp *qp, uint16_t lid)
{
	return sim_port_is_infiniband(&qp->device->ports[0]) ? lid : 0;
}

/* The membership in a group; in any with gid NULL. */
static struct sim_member **find_member(struct sim_world *world, const struct sim_qp *qp,
				       const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = &world->fabric.members;

	while (*at && ((*at)->qp != qp ||
		       (gid && ((*at)->lid != lid || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0))))
		at = &(*at)->next;
	return at;
}

int sim_qp_attach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = find_member(qp->world, qp, gid, group_lid(qp, lid));

	if (qp->type != IBV_QPT_UD || !sim_gid_is_multicast(gid->raw))
		return EINVAL;
	/* As is_valid_mcast_lid in Linux drivers/infiniband/core/verbs.c. */
	if (sim_port_is_infiniband(&qp->device->ports[0]) && !sim_lid_is_multicast(lid))
		return EINVAL;
	if (*at)
		return 0;
	*at = calloc(1, sizeof(**at));
	if (!*at)
		return ENOMEM;
	(*at)->qp = qp;
	(*at)->gid = *gid;
	(*at)->lid = group_lid(qp, lid);
	qp->attachments++;
	return 0;
}

static void remove_member(struct sim_member **at)
{
	struct sim_member *member = *at;

	member->qp->attachments--;
	*at = member->next;
	free(member);
}

int sim_qp_detach(struct sim_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct sim_member **at = find_member(qp->world, qp, gid, group_lid(qp, lid));

	if (!*at)
		return EINVAL;
	remove_member(at);
	return 0;
}

void sim_fabric_forget(struct sim_qp *qp)
{
	struct sim_member **at;

	for (at = find_member(qp->world, qp, NULL, 0); *at;
	     at = find_member(qp->world, qp, NULL, 0))
		remove_member(at);
}
