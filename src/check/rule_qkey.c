/* SPDX-License-Identifier: MIT */
/*
 * ends-differ, for datagrams: the Q_Key of a work request is not that of the QP that it is for. The peer drops
 * such a datagram, and no completion shows it. The device is asked for the peer's Q_Key, once for each
 * destination of a QP, and again after a Q_Key of this process has changed.
 */
#include "src/check/check.h"
#include "src/check/look.h"

#include <inttypes.h>
#include <string.h>

#define FIRST_QPN  2	      /* those below are of the port */
#define MULTICAST  0xffffff   /* a group has no Q_Key of its own */
#define CONTROLLED 0x80000000 /* such a Q_Key stands for the sender's own, on some devices */
#define KNOWN	   1024

/* The destinations whose Q_Keys match, by a hash. */
static struct destination {
	const struct check_qp *qp;
	const struct ibv_ah *ah;
	uint32_t qpn, qkey;
} known[KNOWN];

static struct destination *place_of(const struct destination *destination)
{
	const uint64_t key = (uintptr_t)destination->ah >> 4 ^ (uintptr_t)destination->qp >> 6 ^
			     destination->qpn * UINT64_C(0x9e3779b1) ^ destination->qkey;

	return &known[(key ^ key >> 16) % KNOWN];
}

static bool is_ready(const struct vb_peer *peer)
{
	return peer->type == IBV_QPT_UD &&
	       (peer->attr.qp_state == IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_RTS);
}

static bool matches(const struct check_qp *qp, uint32_t qkey, const struct vb_peer *peer)
{
	struct ibv_qp_attr own;

	if (qkey == peer->attr.qkey)
		return true;
	return qkey & CONTROLLED && (!look_attr((struct ibv_qp *)qp->object.handle, &own) ||
				     own.qkey == peer->attr.qkey);
}

/* Returns where the program has moved the peer to its state, if the peer is in this process. */
static struct offence_place peer_place(const struct vb_peer *peer)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *qp = (const struct check_qp *)object;
		struct layer_object found;

		if (qp->qpn == peer->qpn && layer_object_find(object->handle, &found) &&
		    found.device && !strcmp(found.device, peer->device))
			return (struct offence_place){.label = "peer modified",
						      .spot = qp->modified};
	}
	return (struct offence_place){0};
}

static void report(const struct check_qp *qp, const struct work *work, const struct vb_peer *peer)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "posted", .spot = work->posted},
		peer_place(peer),
	};
	char name[64], work_name[64];

	offence_report(VB_RULE_ENDS_DIFFER, places,
		       "%s: %s has the remote_qkey 0x%" PRIx32 ", and QP 0x%" PRIx32
		       " of %s has the qkey 0x%" PRIx32,
		       check_name(qp->object.handle, name, sizeof(name)),
		       check_work_name(work, work_name, sizeof(work_name)), work->remote_qkey,
		       peer->qpn, peer->device, peer->attr.qkey);
}

/* The destination is new, or shares its place with another one. */
static void look_at(const struct check_qp *qp, const struct work *work,
		    const struct destination *destination, struct destination *place)
{
	struct layer_object found;
	struct vb_peer peer;

	/* An address handle that is unknown may be any pointer. */
	if (!layer_object_find(work->ah, &found) ||
	    !look_peer((struct ibv_qp *)qp->object.handle, (struct ibv_ah *)work->ah,
		       work->remote_qpn, &peer) ||
	    !is_ready(&peer))
		return;
	*place = *destination;
	if (!matches(qp, work->remote_qkey, &peer))
		report(qp, work, &peer);
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	struct destination destination, *place;

	(void)check;
	if (!work->ah || work->remote_qpn < FIRST_QPN || work->remote_qpn == MULTICAST)
		return;
	destination = (struct destination){qp, work->ah, work->remote_qpn, work->remote_qkey};
	place = place_of(&destination);
	if (memcmp(place, &destination, sizeof(destination)) != 0)
		look_at(qp, work, &destination, place);
}

static void end(void)
{
	memset(known, 0, sizeof(known));
}

/* The QP may be the peer of others. */
static void after_modify(struct check_call *check)
{
	if (!check->call->err && check->qp && check->qp->type == IBV_QPT_UD &&
	    (int)check->call->arguments[2] & IBV_QP_QKEY)
		end();
}

/* The next address handle may have the same pointer and lead elsewhere. */
static void after_destroy_ah(struct check_call *check)
{
	const void *ah = check_pointer(check, 0);

	for (size_t i = 0; !check->call->err && i < KNOWN; i++)
		if (known[i].ah == ah)
			known[i] = (struct destination){0};
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{LAYER_destroy_ah, NULL, after_destroy_ah},
	{0},
};

const struct check_rule rule_qkey = {
	.hooks = hooks, .posted = posted, .posted_rarely = true, .end = end};
