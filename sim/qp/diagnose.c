/* SPDX-License-Identifier: MIT */
/*
 * What keeps the answers of a connection away, as both ends show it at the moment. It changes
 * nothing.
 */
#include "sim/qp/failure.h"
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

#include <string.h>

/* Why the way ends here although no port has the address. The engine knows all ports, or (find) has
 * a way out. */
static struct vb_why no_port_why(const struct sim_qp *qp)
{
	const struct sim_path *path = &qp->path;
	const bool all_known = !qp->engine->outlet->find;
	struct vb_why why = {.reason = all_known ? VB_WHY_WAY_NO_GID : VB_WHY_WAY_NO_WIRE};

	if (path->route.infiniband)
		return (struct vb_why){all_known ? VB_WHY_WAY_NO_LID : VB_WHY_WAY_NO_WIRE_LID,
				       {path->route.dlid}};
	if (path->beyond)
		why = (struct vb_why){VB_WHY_WAY_BEYOND, {0, 0, qp->dest_qpn, qp->number}};
	memcpy(why.values, path->route.dest_gid, sizeof(path->route.dest_gid));
	return why;
}

/* Where the way to the peer ends; VB_WHY_NONE if it leads to a port. */
static struct vb_why way_why(const struct sim_qp *qp)
{
	const struct sim_path *path = &qp->path;
	struct vb_why why = {.reason = VB_WHY_NONE};

	if (!qp->pkey) {
		why = (struct vb_why){VB_WHY_WAY_PKEY_EMPTY, {qp->pkey_index}};
	} else if (!path->dest) {
		why = no_port_why(qp);
	} else if (!path->link) {
		why.reason = VB_WHY_WAY_NO_LINK;
	} else if (!sim_port_is_up(path->dest)) {
		why = (struct vb_why){VB_WHY_WAY_PORT_DOWN, {path->dest->number}};
	}
	return why;
}

/* What is known of a QP that is not of this engine; VB_WHY_NONE if this engine knows all QPs. */
static struct vb_why absence_why(struct sim_qp *qp)
{
	const struct sim_outlet *outlet = qp->engine->outlet;

	if (!outlet->find)
		return (struct vb_why){.reason = VB_WHY_NONE};
	if (outlet->find(qp->engine, &qp->path, qp->dest_qpn) == SIM_PRESENCE_NOBODY)
		return (struct vb_why){.reason = VB_WHY_PEER_GONE};
	return (struct vb_why){VB_WHY_PEER_ELSEWHERE, {qp->number}};
}

static struct vb_why state_why(const struct sim_qp *peer)
{
	return (struct vb_why){
		peer->state == IBV_QPS_ERR ? VB_WHY_PEER_ERR : VB_WHY_PEER_STATE,
		{peer->state},
	};
}

/* The peer admits the requests: what its responder waits for, or why its answers do not come. */
static struct vb_why answer_why(const struct sim_qp *qp, struct sim_qp *peer)
{
	const struct sim_port *port = sim_failure_way(peer);
	const struct sim_packet ack = {
		.opcode = (uint8_t)(SIM_RC_ACK | peer->transport),
		.pkey = peer->pkey,
		.dest_qpn = peer->dest_qpn,
	};
	const int32_t ahead = sim_psn_diff(qp->comp.psn, peer->resp.psn);

	if (peer->dest_qpn != qp->number)
		return (struct vb_why){VB_WHY_PEER_DEST_QPN, {peer->dest_qpn, qp->number}};
	if (!port || port != qp->path.source || sim_qp_objects(qp, port, &ack, &peer->path.route))
		return (struct vb_why){VB_WHY_PEER_ANSWERS_DROPPED, {qp->number}};
	if (ahead > 0)
		return (struct vb_why){VB_WHY_PEER_PSN_BEHIND, {peer->resp.psn, qp->comp.psn}};
	if (ahead < 0 && sim_psn_distance(peer->resp.psn, qp->comp.psn) <=
				 sim_psn_distance(qp->req.sent_psn, qp->comp.psn))
		return (struct vb_why){VB_WHY_PEER_ANSWERED, {qp->comp.psn, peer->resp.psn}};
	if (ahead < 0)
		return (struct vb_why){VB_WHY_PEER_PSN_AHEAD, {peer->resp.psn, qp->comp.psn}};
	return (struct vb_why){VB_WHY_PEER_READY, {qp->comp.psn}};
}

/* The opcode of the packet that is not answered. */
static uint8_t oldest_opcode(const struct sim_qp *qp)
{
	const struct sim_send_wqe *wqe = sim_qp_send_wqe(qp, qp->sq.tail);
	const uint32_t at = sim_psn_distance(qp->comp.psn, wqe->first_psn);
	const bool whole = wqe->info.flags & SIM_WR_RESPONSE;

	if (qp->sq.tail == qp->sq.head || wqe->info.flags & SIM_WR_LOCAL)
		return sim_opcode_request(qp->transport, IBV_WR_SEND, true, true);
	return sim_opcode_request(qp->transport, wqe->opcode, whole || at == 0,
				  whole || at + 1 == wqe->packets);
}

void sim_diagnose(struct sim_qp *qp, struct sim_finding *finding)
{
	const struct sim_port *port = sim_failure_way(qp);
	struct sim_qp *peer = sim_failure_peer(qp);
	struct vb_why *why = &finding->peer_why;
	struct sim_packet request = {
		.opcode = oldest_opcode(qp),
		.pkey = qp->pkey,
		.dest_qpn = qp->dest_qpn,
		.psn = qp->comp.psn,
		.slid = qp->path.source->lid,
	};
	struct sim_route route = qp->path.route;
	enum sim_discard cause;

	*why = way_why(qp);
	if (!why->reason && !peer)
		*why = absence_why(qp);
	if (why->reason)
		return;
	route.slid = qp->path.source->lid;
	cause = peer ? sim_qp_objects(peer, port, &request, &route) : SIM_DISCARD_NO_QP;
	if (peer && peer->failures && peer->failures->refusal_psn == qp->comp.psn &&
	    peer->dest_qpn == qp->number && peer->failures->refusal.reason)
		*why = peer->failures->refusal;
	else if (cause == SIM_DISCARD_STATE)
		*why = state_why(peer);
	else if (cause)
		*why = sim_loss_why(peer, port, &request, &route, cause);
	else
		*why = answer_why(qp, peer);
}
