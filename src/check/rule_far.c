/* SPDX-License-Identifier: MIT */
/*
 * ends-differ, for a QP whose peer the sanitizer has not seen: a QP of another process of the same simulated
 * world, or one that is older than the sanitizer. The device is asked for the peer when the first send is
 * posted (rule_ends.c), and when that send fails: until then, the peer may not be ready.
 */
#include "src/check/check.h"
#include "src/check/far.h"
#include "src/check/look.h"
#include "src/check/peer_qp.h"

#include <inttypes.h>
#include <stdio.h>

#define PSN_MASK 0xffffff

/* --- what differs --- */

/* Returns the attribute that differs as a text; NULL: none is known to differ. */
typedef const char *(difference_fn)(const struct check_qp *qp, const struct work *work,
				    const struct vb_peer *peer, char *text, size_t size_bytes);

static const char *mtu_differs(const struct check_qp *qp, const struct work *work,
			       const struct vb_peer *peer, char *text, size_t size_bytes)
{
	(void)work;
	if (qp->attr.path_mtu == peer->attr.path_mtu)
		return NULL;
	snprintf(text, size_bytes, "path_mtu is %u, and the peer's is %u",
		 128U << qp->attr.path_mtu, 128U << peer->attr.path_mtu);
	return text;
}

/* A UC receiver takes the first packet of a message with any PSN. */
static const char *psn_differs(const struct check_qp *qp, const struct work *work,
			       const struct vb_peer *peer, char *text, size_t size_bytes)
{
	(void)work;
	if (qp->type != IBV_QPT_RC || !((qp->attr.sq_psn ^ peer->attr.rq_psn) & PSN_MASK))
		return NULL;
	snprintf(text, size_bytes, "sq_psn is 0x%" PRIx32 ", and rq_psn of the peer is 0x%" PRIx32,
		 qp->attr.sq_psn & PSN_MASK, peer->attr.rq_psn & PSN_MASK);
	return text;
}

/* The peer takes no RDMA READ or atomic at all. */
static const char *reads_differ(const struct check_qp *qp, const struct work *work,
				const struct vb_peer *peer, char *text, size_t size_bytes)
{
	if (qp->type != IBV_QPT_RC || !work->target || peer->attr.max_dest_rd_atomic)
		return NULL;
	snprintf(
		text, size_bytes,
		"the work request is a READ or an atomic, and max_dest_rd_atomic of the peer is 0");
	return text;
}

static difference_fn *const differences[] = {mtu_differs, psn_differs, reads_differ};

/* --- the peer --- */

static bool is_ready(const struct vb_peer *peer)
{
	return peer->attr.qp_state == IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_RTS;
}

/* Returns true if the send is the first one of the connection: no other has told the ends apart. */
static bool is_first(const struct check_qp *qp, const struct work *work)
{
	return qp->sends.head == qp->first_send && work == work_at(&qp->sends, 0);
}

static bool find_peer(const struct check_qp *qp, struct vb_peer *peer)
{
	return !qp->ends_reported && !peer_find(qp) &&
	       look_peer((struct ibv_qp *)qp->object.handle, NULL, 0, peer) &&
	       peer->type == qp->type && is_ready(peer) && peer->attr.dest_qp_num == qp->qpn;
}

static void report(struct check_qp *qp, const struct work *work, const struct vb_peer *peer,
		   const char *difference)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "connected", .spot = qp->rtr_at},
		{.label = "modified", .spot = qp->rts_at},
		{.label = "posted", .spot = work->posted},
	};
	char name[64];

	qp->ends_reported = true;
	offence_report(VB_RULE_ENDS_DIFFER, places, "%s sends to QP 0x%" PRIx32 " of %s: %s",
		       check_name(qp->object.handle, name, sizeof(name)), peer->qpn, peer->device,
		       difference);
}

void far_compare(struct check_qp *qp, const struct work *work)
{
	struct vb_peer peer;
	char text[128];

	if (!qp->rts_at.frames[0] || !peer_is_connected(qp) || !is_first(qp, work) ||
	    !find_peer(qp, &peer))
		return;
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		if (differences[i](qp, work, &peer, text, sizeof(text))) {
			report(qp, work, &peer, text);
			return;
		}
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	(void)check;
	if (wc && wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR && work->send)
		far_compare(qp, work);
}

const struct check_rule rule_far = {.done = done, .done_rarely = true};
