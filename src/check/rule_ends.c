/* SPDX-License-Identifier: MIT */
/*
 * ends-differ, for two connected QPs of this process whose attributes the program has set by
 * ibv_modify_qp(). Different values of path_mtu are a finding as soon as both QPs are ready to receive. Other
 * differences are one when a send shows them: a PSN or a destination when the first send is posted,
 * max_rd_atomic when more RDMA READs and atomics are in flight than the peer takes.
 */
#include "src/check/check.h"
#include "src/check/far.h"
#include "src/check/peer_qp.h"

#include <inttypes.h>

#define PSN_MASK 0xffffff
/* Attributes that connect a QP, or that are compared when it is modified. */
#define COMPARED (IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU)

/* --- what differs --- */

static bool is_mutual(const struct check_qp *qp, const struct check_qp *peer)
{
	return peer_leads_to(peer, qp);
}

/*
 * Not of a QP that has sent already: its peer may be connected again, with the PSN of the next
 * send. A UC receiver takes the first packet of a message with any PSN.
 */
static bool psn_differs(const struct check_qp *qp, const struct check_qp *peer)
{
	return qp->type == IBV_QPT_RC && qp->state == IBV_QPS_RTS &&
	       qp->sends.tail <= qp->first_send + 1 &&
	       ((qp->attr.sq_psn ^ peer->attr.rq_psn) & PSN_MASK);
}

static bool reads_differ(const struct check_qp *qp, const struct check_qp *peer)
{
	return qp->type == IBV_QPT_RC && qp->state == IBV_QPS_RTS &&
	       qp->attr.max_rd_atomic > peer->attr.max_dest_rd_atomic;
}

static unsigned int mtu_bytes(enum ibv_mtu mtu)
{
	return 128U << mtu;
}

static void report_mtu(struct check_qp *qp, struct check_qp *peer)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "modified", .spot = qp->rtr_at},
		{.label = "peer modified", .spot = peer->rtr_at},
	};
	char name[64], peer_name[64];

	qp->ends_reported = peer->ends_reported = true;
	offence_report(VB_RULE_ENDS_DIFFER, places,
		       "%s has path_mtu %u, and its peer, %s, has path_mtu %u",
		       check_name(qp->object.handle, name, sizeof(name)),
		       mtu_bytes(qp->attr.path_mtu),
		       check_name(peer->object.handle, peer_name, sizeof(peer_name)),
		       mtu_bytes(peer->attr.path_mtu));
}

/* Looks at one direction, from the QP to its peer. */
static void look_at(struct check_qp *qp)
{
	struct check_qp *peer = peer_find(qp);

	/* The first send shows a peer out of sight. */
	qp->ends_differ = !peer && qp->state == IBV_QPS_RTS;
	if (!peer || qp->ends_reported)
		return;
	if (!is_mutual(qp, peer)) {
		qp->ends_differ = qp->state == IBV_QPS_RTS;
		return;
	}
	if (qp->attr.path_mtu != peer->attr.path_mtu)
		report_mtu(qp, peer);
	qp->ends_differ = psn_differs(qp, peer) || reads_differ(qp, peer);
}

static void after_modify(struct check_call *check)
{
	struct check_qp *qp = check->qp;

	if (check->call->err || !qp || (qp->type != IBV_QPT_RC && qp->type != IBV_QPT_UC))
		return;
	if ((int)check->call->arguments[2] & IBV_QP_STATE) {
		if (qp->state == IBV_QPS_RTR)
			qp->rtr_at = check->spot;
		if (qp->state == IBV_QPS_RTS) {
			qp->rts_at = check->spot;
			qp->first_send = qp->sends.tail;
		}
		if (qp->state == IBV_QPS_RESET)
			qp->ends_reported = false;
	}
	if (!((int)check->call->arguments[2] & COMPARED))
		return;
	look_at(qp);
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		struct check_qp *other = (struct check_qp *)object;

		if (other != qp && peer_leads_to(other, qp))
			look_at(other);
	}
}

/* --- what a send shows --- */

static void report_send(const struct check_call *check, struct check_qp *qp,
			const struct check_qp *peer, const char *difference, uint32_t own,
			uint32_t others)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "modified", .spot = qp->rts_at},
		{.label = "peer modified", .spot = peer->rtr_at},
		{.label = "posted", .spot = check->spot},
	};
	char name[64], peer_name[64];

	qp->ends_reported = true;
	qp->ends_differ = false;
	offence_report(VB_RULE_ENDS_DIFFER, places,
		       "%s sends to %s: %s: 0x%" PRIx32 " and 0x%" PRIx32,
		       check_name(qp->object.handle, name, sizeof(name)),
		       check_name(peer->object.handle, peer_name, sizeof(peer_name)), difference,
		       own, others);
}

static bool is_read(const struct work *work)
{
	return work->target;
}

static uint64_t count_reads(const struct check_qp *qp)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < work_count(&qp->sends); i++)
		count += is_read(work_at(&qp->sends, i));
	return count;
}

static CHECK_RARE void look_at_send(const struct check_call *check, struct check_qp *qp,
				    const struct work *work)
{
	const struct check_qp *peer = peer_find(qp);

	if (!peer) {
		far_compare(qp, work);
		qp->ends_differ = false;
	} else if (!is_mutual(qp, peer)) {
		report_send(check, qp, peer,
			    qp->qpn != peer->attr.dest_qp_num
				    ? "the QP number of the sender and dest_qp_num of the receiver "
				      "differ"
				    : "the receiver is connected to a QP of this number at another "
				      "address",
			    qp->qpn, peer->attr.dest_qp_num);
	} else if (psn_differs(qp, peer)) {
		report_send(check, qp, peer,
			    "sq_psn of the sender and rq_psn of the receiver differ",
			    qp->attr.sq_psn, peer->attr.rq_psn);
	} else if (reads_differ(qp, peer) && is_read(work) &&
		   count_reads(qp) > peer->attr.max_dest_rd_atomic) {
		report_send(check, qp, peer,
			    "max_rd_atomic of the sender is larger than max_dest_rd_atomic of the "
			    "receiver, and more READs and atomics are in flight",
			    qp->attr.max_rd_atomic, peer->attr.max_dest_rd_atomic);
	}
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (qp && qp->ends_differ && work->send)
		look_at_send(check, qp, work);
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{0},
};

const struct check_rule rule_ends = {.hooks = hooks, .posted = posted, .posted_rarely = true};
