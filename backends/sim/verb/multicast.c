/* SPDX-License-Identifier: MIT */
/* The multicast groups that a QP is in. The engine knows the members of each group. */
#include "backends/sim/base/say.h"
#include "backends/sim/verb/verbs.h"
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

/* Attaching twice is attaching once (ibv_attach_mcast(3)). */
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

/* Attaches or detaches. */
static int change(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid,
		  int (*how)(struct qp *qp, const union ibv_gid *gid, uint16_t lid))
{
	HOLD hold = context_hold(ibv->context);
	struct qp *qp = qp_of(ibv);

	if (!qp)
		return EINVAL;
	driver_catch_up(&hold.world->driver);
	return how(qp, gid, lid);
}

int verb_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	int err = change(ibv, gid, lid, attach);

	if (err == ENOMEM)
		return say(err, "attach_mcast: the device has no room for more groups or members");
	return err ? say(err, "attach_mcast: no such QP, not a UD QP, or not a multicast GID") : 0;
}

int verb_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	int err = change(ibv, gid, lid, detach);

	return err ? say(err, "detach_mcast: no such QP, or the QP is not in that group") : 0;
}

void verb_leave_groups(struct qp *qp)
{
	while (qp->groups)
		detach(qp, &qp->groups->gid, qp->groups->lid);
}
