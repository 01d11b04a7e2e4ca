/* SPDX-License-Identifier: MIT */
/* Why packets are dropped, with the values that the checks found. */
#include "sim/qp/private.h"

#include <string.h>
#include <verbena/packet.h>

static struct vb_why state_why(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const bool request = sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST;
	enum vb_reason reason = VB_WHY_DROP_STATE_EARLY;

	if (qp->state == IBV_QPS_ERR)
		reason = VB_WHY_DROP_STATE_ERR;
	else if (!request)
		reason = VB_WHY_DROP_STATE_ANSWER;
	return (struct vb_why){reason, {0, qp->number, qp->state}};
}

static struct vb_why stranger_why(const struct sim_qp *qp, const struct sim_route *route)
{
	struct vb_why why = {VB_WHY_DROP_STRANGER, {0, qp->number}};

	if (!route->infiniband ||
	    (route->has_grh && qp->path.route.has_grh && route->slid == qp->path.route.dlid)) {
		memcpy(&why.values[2], route->source_gid, sizeof(route->source_gid));
		return why;
	}
	return (struct vb_why){VB_WHY_DROP_STRANGER_LID,
			       {0, qp->number, route->slid, qp->path.route.dlid}};
}

static struct vb_why address_why(const struct sim_port *port, const struct sim_route *route)
{
	struct vb_why why = {.reason = VB_WHY_DROP_GID};

	if (route->infiniband && route->dlid != port->lid)
		return (struct vb_why){VB_WHY_DROP_LID, {0, route->dlid, port->lid}};
	memcpy(&why.values[1], route->dest_gid, sizeof(route->dest_gid));
	return why;
}

static struct vb_why short_receive_why(const struct sim_qp *qp, const struct sim_packet *packet)
{
	const uint64_t needed = SIM_GRH_BYTES + (uint64_t)packet->payload_bytes;
	const uint64_t room = sim_receive_peek(qp)->length;

	return (struct vb_why){VB_WHY_DROP_SHORT_RECEIVE,
			       {0, qp->number, packet->payload_bytes, needed, room, needed - room}};
}

static struct vb_why why_of(const struct sim_qp *qp, const struct sim_port *port,
			    const struct sim_packet *packet, const struct sim_route *route,
			    enum sim_discard cause)
{
	switch (cause) {
	case SIM_DISCARD_ADDRESS:
		return address_why(port, route);
	case SIM_DISCARD_TRANSPORT:
		return (struct vb_why){VB_WHY_DROP_TRANSPORT, {0, qp->number, qp->type}};
	case SIM_DISCARD_STATE:
		return state_why(qp, packet);
	case SIM_DISCARD_PKEY:
		return (struct vb_why){VB_WHY_DROP_PKEY,
				       {0, qp->number, packet->pkey, port->pkeys[qp->pkey_index]}};
	case SIM_DISCARD_DIRECTION:
		return (struct vb_why){VB_WHY_DROP_DIRECTION, {0, qp->number, qp->type}};
	case SIM_DISCARD_STRANGER:
		return stranger_why(qp, route);
	case SIM_DISCARD_QKEY:
		return (struct vb_why){VB_WHY_DROP_QKEY,
				       {0, qp->number, packet->qkey, qp->qkey, packet->source_qpn}};
	case SIM_DISCARD_NO_RECEIVE:
		return (struct vb_why){VB_WHY_DROP_NO_RECEIVE, {0, qp->number}};
	case SIM_DISCARD_SHORT_RECEIVE:
		return short_receive_why(qp, packet);
	case SIM_DISCARD_CUT_MESSAGE:
		return (struct vb_why){VB_WHY_DROP_CUT_MESSAGE, {0, qp->number, packet->psn}};
	default:
		return (struct vb_why){VB_WHY_DROP_NO_QP, {0, packet->dest_qpn}};
	}
}

struct vb_why sim_loss_why(const struct sim_qp *qp, const struct sim_port *port,
			   const struct sim_packet *packet, const struct sim_route *route,
			   enum sim_discard cause)
{
	struct vb_why why = why_of(qp, port, packet, route, cause);

	why.text = sim_opcodes[packet->opcode].name;
	return why;
}

void sim_note_drop(struct sim_device *device, const struct sim_port *port, const struct sim_qp *qp,
		   const struct vb_packet *packet, const struct vb_why *why)
{
	struct vb_event event = {
		.kind = VB_EVENT_DROP,
		.device = device->name,
		.port = port ? port->number : 0,
		.qpn = qp ? qp->number : 0,
		.packet = packet,
		.why = why,
	};

	sim_note(device->engine, &event, NULL);
}

void sim_qp_discard(const struct sim_qp *qp, const struct sim_port *port,
		    const struct sim_packet *packet, const struct sim_route *route,
		    enum sim_discard cause)
{
	struct sim_device *device = port->device;
	struct vb_packet shown;
	struct vb_why why;

	sim_discard(&device->counters, cause);
	if (!sim_watched(device->engine))
		return;
	why = sim_loss_why(qp, port, packet, route, cause);
	sim_packet_show(packet, route, &shown);
	sim_note_drop(device, port, qp, &shown, &why);
}
