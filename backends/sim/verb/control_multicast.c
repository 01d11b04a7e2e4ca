/* SPDX-License-Identifier: MIT */
/* A QP in multicast groups. The fabric knows the members; here is which groups a QP is in. */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct group **find_group(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct group **at = &qp->groups;

	while (*at && ((*at)->lid != lid || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0))
		at = &(*at)->next;
	return at;
}

/* Once more is the same (ibv_attach_mcast(3)). */
static int attach(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct group **at = find_group(qp, gid, lid);
	struct group *group;
	int err;

	if (*at)
		return 0;
	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	err = sim_multicast_attach(qp->engine, gid, lid);
	if (err) {
		free(group);
		return err;
	}
	group->gid = *gid;
	group->lid = lid;
	*at = group;
	return 0;
}

static int detach(struct qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct group **at = find_group(qp, gid, lid);
	struct group *group = *at;

	if (!group)
		return EINVAL;
	sim_multicast_detach(qp->engine, gid, lid);
	*at = group->next;
	free(group);
	return 0;
}

static int change(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid,
		  int (*how)(struct qp *qp, const union ibv_gid *gid, uint16_t lid))
{
	struct vb_sim *world = context_of(ibv->context)->world;
	bool locked = world_lock(world);
	struct qp *qp = qp_of(ibv);
	int err = EINVAL;

	if (qp) {
		driver_catch_up(world);
		err = how(qp, gid, lid);
	}
	world_unlock(world, locked);
	return err;
}

int control_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	int err = change(ibv, gid, lid, attach);

	if (err == ENOMEM)
		return say(err, "attach_mcast: the device takes no more groups or members");
	return err ? say(err, "attach_mcast: no such QP, not a UD QP, or not a multicast GID") : 0;
}

int control_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	int err = change(ibv, gid, lid, detach);

	return err ? say(err, "detach_mcast: no such QP, or it is not in that group") : 0;
}

void control_leave_groups(struct qp *qp)
{
	while (qp->groups)
		detach(qp, &qp->groups->gid, qp->groups->lid);
}
