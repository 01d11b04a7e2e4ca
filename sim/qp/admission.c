/* SPDX-License-Identifier: MIT */
/*
 * Admission: which of the packets that come to a port a QP takes.
 */
#include "sim/qp/private.h"

#include <string.h>

/* True if both are in one partition and at least one is a full member. */
static bool pkeys_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & 0x7fff) == 0 && ((a | b) & 0x8000);
}

static bool takes_requests(const struct sim_qp *qp)
{
	return qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQE;
}

static bool takes_responses(const struct sim_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD;
}

/*
 * True if a connected QP's packet is from the port at the other end of its connection: the packet
 * does not say which QP of that port has sent it. On InfiniBand as
 * qib_ruc_check_hdr in Linux drivers/infiniband/hw/qib/qib_ruc.c: both sides have a GRH or none,
 * the GRH has the connection's GIDs, and the source LID is the peer's. On Ethernet the GIDs of both
 * sides have one type.
 */
bool sim_qp_is_from_peer(const struct sim_qp *qp, const struct sim_route *route)
{
	const struct sim_route *own = &qp->path.route;

	if (route->infiniband && (route->slid != own->dlid || route->has_grh != own->has_grh))
		return false;
	if (route->infiniband && !route->has_grh)
		return true;
	if (route->roce_v1 != sim_path_is_roce_v1(&qp->path))
		return false;
	return memcmp(route->source_gid, own->dest_gid, sizeof(route->source_gid)) == 0;
}

/* True if the QP at this port sent the packet: other devices have the same QPNs. */
static bool sent_by(const struct sim_qp *qp, const struct sim_port *port,
		    const struct sim_packet *packet, const struct sim_route *route)
{
	union ibv_gid source;

	if (packet->source_qpn != qp->number)
		return false;
	if (route->infiniband)
		return route->slid == port->lid;
	memcpy(source.raw, route->source_gid, sizeof(source.raw));
	return sim_port_find_gid(port, &source,
				 route->roce_v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) >= 0;
}

/* Linux drivers/infiniband/sw/rxe/rxe_recv.c, hdr_check, has the order of the checks. */
enum sim_discard sim_qp_objects(const struct sim_qp *qp, const struct sim_port *port,
				const struct sim_packet *packet, const struct sim_route *route)
{
	const bool request = sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST;

	if ((packet->opcode & SIM_TRANSPORT_MASK) != qp->transport)
		return SIM_DISCARD_TRANSPORT;
	if (request ? !takes_requests(qp) : !takes_responses(qp))
		return SIM_DISCARD_STATE;
	if (qp->port_num != port->number)
		return SIM_DISCARD_NO_QP;
	if (!pkeys_match(packet->pkey, port->pkeys[qp->pkey_index]))
		return SIM_DISCARD_PKEY;
	/* An XRC connection has its requester on one side and its responder on the other. */
	if (qp->transport == SIM_TRANSPORT_XRC && request == (qp->type == IBV_QPT_XRC_SEND))
		return SIM_DISCARD_DIRECTION;
	if (qp->type != IBV_QPT_UD)
		return sim_qp_is_from_peer(qp, route) ? SIM_DISCARD_NONE : SIM_DISCARD_STRANGER;
	if (packet->dest_qpn == SIM_MULTICAST_QPN && qp->block_self_multicast &&
	    sent_by(qp, port, packet, route))
		return SIM_DISCARD_OWN_MULTICAST;
	return SIM_DISCARD_NONE;
}

bool sim_qp_is_connected(const struct sim_qp *qp)
{
	return qp->type != IBV_QPT_UD;
}

void sim_qp_give_packet(struct sim_qp *qp, const struct sim_packet *packet)
{
	if (sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST)
		sim_responder_receive(qp, packet);
	else
		sim_completer_receive(qp, packet);
}

bool sim_qp_take_train(struct sim_qp *qp, const struct sim_packet *train, unsigned int count)
{
	return (sim_opcodes[train->opcode].flags & SIM_OP_REQUEST
			? sim_responder_take_train
			: sim_completer_take_train)(qp, train, count);
}

enum sim_discard sim_qp_take_packet(struct sim_qp *qp, const struct sim_port *port,
				    const struct sim_packet *packet, const struct sim_route *route)
{
	enum sim_discard cause;

	if (!qp)
		return SIM_DISCARD_NO_QP;
	cause = sim_qp_objects(qp, port, packet, route);
	if (cause != SIM_DISCARD_NONE) {
		if (qp->hooks)
			qp->hooks->refused(qp, packet, route);
		return cause;
	}
	if (qp->type == IBV_QPT_UD)
		sim_datagram_receive(qp, packet, route);
	else
		sim_qp_give_packet(qp, packet);
	return SIM_DISCARD_NONE;
}

/* Gives the packet the LID that the port has now. */
static bool find_peer(struct sim_qp *qp, uint64_t *epoch, struct sim_packet *packet)
{
	struct sim_engine *engine = qp->engine;
	const uint64_t absent = ~engine->epoch;
	struct sim_qp *peer;

	packet->slid = qp->path.source->lid;
	if (*epoch == absent)
		return false;
	peer = engine->outlet->direct(engine, &qp->path, packet->dest_qpn);
	if (!peer || sim_qp_objects(peer, qp->path.dest, packet, &qp->path.route)) {
		*epoch = absent;
		return false;
	}
	if (qp->peer.qp != peer)
		qp->peer = (struct sim_peer){.qp = peer};
	*epoch = engine->epoch;
	return true;
}

bool sim_peer_find(struct sim_qp *qp, uint64_t *epoch, struct sim_packet *packet)
{
	if (find_peer(qp, epoch, packet))
		return true;
	qp->engine->outlet->send(qp->engine, &qp->path, packet);
	return false;
}
