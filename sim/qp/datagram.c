/* SPDX-License-Identifier: MIT */
/* Unreliable datagrams: no connection, no answer, one packet a message. */
#include "sim/qp/private.h"

/* The bits of sl with the quirk sl_is_packet_type. */
enum {
	TYPE_GRH = 0,
	TYPE_IPV6 = 1,
	TYPE_IPV4 = 2,
	TYPE_UDP = 8,
};

/* A Q_Key with this bit stands for the sending QP's own. */
#define QKEY_CONTROLLED 0x80000000u

static void note_swallowed(const struct sim_qp *qp, const struct sim_port *port, uint32_t bytes)
{
	const struct vb_why why = {VB_WHY_DROP_LONG_DATAGRAM,
				   {bytes, qp->number, sim_mtu_bytes(port->mtu)}};

	sim_note_drop(qp->device, port, qp, NULL, &why);
}

/* C10-93.1.1, as Linux drivers/infiniband/sw/rxe/rxe_req.c quotes it: a message above the port's MTU
 * is not sent, and this is no error. */
static enum ibv_wc_status swallow(struct sim_qp *qp, const struct sim_port *port, uint32_t bytes)
{
	if (qp->device->quirks.long_datagrams_fail)
		return IBV_WC_LOC_LEN_ERR;
	if (sim_watched(qp->engine))
		note_swallowed(qp, port, bytes);
	sim_requester_datagram_sent(qp);
	return IBV_WC_SUCCESS;
}

static bool own_qkey(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return wqe->ud.remote_qkey & QKEY_CONTROLLED &&
	       sim_rule_holds(qp, SIM_RULE_CONTROLLED_QKEY);
}

enum ibv_wc_status sim_datagram_send(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	struct sim_path *path = &wqe->ud.ah->path;
	struct sim_span spans[SIM_SPANS_MAX];
	struct sim_packet packet = {
		.opcode = sim_opcode_request(SIM_TRANSPORT_UD, wqe->opcode, true, true),
		.flags = SIM_PACKET_MIGRATED,
		.pkey = path->source->pkeys[qp->pkey_index],
		.dest_qpn = wqe->ud.remote_qpn,
		.source_qpn = qp->number,
		.psn = wqe->first_psn,
		.payload_bytes = wqe->length,
		.spans = spans,
		.imm_data = wqe->imm_data,
		.slid = path->route.infiniband ? path->source->lid : 0,
		.sl = path->route.sl,
		.qkey = own_qkey(qp, wqe) ? qp->qkey : wqe->ud.remote_qkey,
	};
	int count = 1;

	if (wqe->length > sim_mtu_bytes(path->source->mtu))
		return swallow(qp, path->source, wqe->length);
	/* Unless foreign_ahs_end_sends, posting has refused the AH. */
	if (wqe->ud.ah->pd != qp->pd)
		return IBV_WC_LOC_QP_OP_ERR;
	if (wqe->send_flags & IBV_SEND_INLINE)
		spans[0] = (struct sim_span){wqe->sge, wqe->length};
	else
		count = sim_gather(&qp->sq_reach, wqe->sge, wqe->num_sge, 0, wqe->length, 0, spans);
	if (count < 0)
		return IBV_WC_LOC_PROT_ERR;
	packet.span_count = wqe->length ? (uint8_t)count : 0;
	if (wqe->send_flags & IBV_SEND_SOLICITED)
		packet.flags |= SIM_PACKET_SOLICITED;
	sim_requester_datagram_sent(qp);
	qp->engine->outlet->send(qp->engine, path, &packet);
	return IBV_WC_SUCCESS;
}

/* Stores the GRH and the payload; nonzero if the receive WR's memory may not be written. */
static int store(struct sim_qp *qp, const struct sim_recv_wqe *wqe, const struct sim_packet *packet,
		 const struct sim_route *route)
{
	uint8_t grh[SIM_GRH_BYTES];
	struct sim_span from[SIM_SPANS_MAX + 1] = {{grh, sizeof(grh)}};
	struct sim_span to[SIM_SPANS_MAX];
	int count = sim_receive_scatter(qp, wqe, 0, SIM_GRH_BYTES + packet->payload_bytes, to);

	if (count < 0)
		return -1;
	sim_packet_grh(packet, route, grh);
	if (qp->hooks)
		qp->hooks->grh(qp, route, grh);
	for (unsigned int i = 0; i < packet->span_count; i++)
		from[i + 1] = packet->spans[i];
	return sim_qp_copy(qp, from, packet->span_count + 1u, to, (unsigned int)count);
}

/* The receive WR is at fault: the status of a verdict ends it, and the QP goes to ERR. */
static void fail_receive(struct sim_qp *qp, const struct sim_packet *packet,
			 enum sim_verdict verdict)
{
	struct sim_consequence consequence = sim_consequences[verdict];

	sim_failure_find_datagram(qp, packet, verdict);
	if (qp->hooks)
		qp->hooks->judged(qp, verdict, &consequence);
	sim_receive_take(qp);
	sim_receive_complete(qp, NULL, consequence.recv_status, IBV_WC_RECV, 0, 0);
	sim_qp_fail(qp, SIM_BY_RECEIVE);
}

/* Drops a datagram that has a wrong Q_Key, or finds no receive WR that it fits. */
static void drop(struct sim_qp *qp, const struct sim_packet *packet, const struct sim_route *route,
		 enum sim_discard cause)
{
	sim_qp_discard(qp, sim_device_port(qp->device, qp->port_num), packet, route, cause);
	/* Each member of a group decides for itself. */
	if (cause == SIM_DISCARD_QKEY && packet->dest_qpn == qp->number)
		qp->device->counters.refused_packets++;
}

/* The type of a packet on Ethernet as the quirk sl_is_packet_type tells it. */
static uint8_t packet_type(const struct sim_route *route)
{
	if (route->roce_v1)
		return TYPE_GRH;
	return TYPE_UDP | (sim_gid_is_ipv4(route->source_gid) ? TYPE_IPV4 : TYPE_IPV6);
}

void sim_datagram_receive(struct sim_qp *qp, const struct sim_packet *packet,
			  const struct sim_route *route)
{
	const struct sim_recv_wqe *wqe = sim_receive_peek(qp);
	uint32_t flags = sim_opcodes[packet->opcode].flags;
	uint32_t byte_len = SIM_GRH_BYTES + packet->payload_bytes;
	struct sim_packet shown;
	unsigned int wc_flags = flags & SIM_OP_IMMDT ? IBV_WC_WITH_IMM : 0;

	if (packet->qkey != qp->qkey || !wqe) {
		drop(qp, packet, route,
		     packet->qkey != qp->qkey ? SIM_DISCARD_QKEY : SIM_DISCARD_NO_RECEIVE);
		return;
	}
	if (wqe->length < byte_len) {
		if (sim_rule_holds(qp, SIM_RULE_SHORT_RECEIVE_KEPT))
			drop(qp, packet, route, SIM_DISCARD_SHORT_RECEIVE);
		else
			fail_receive(qp, packet, SIM_TOO_LONG);
		return;
	}
	/* A packet without a GRH leaves the 40 bytes undefined: ibv_poll_cq(3). */
	if (!route->infiniband || route->has_grh)
		wc_flags |= IBV_WC_GRH;
	sim_responder_establish(qp);
	sim_receive_take(qp);
	if (store(qp, wqe, packet, route)) {
		fail_receive(qp, packet, SIM_BAD_RECEIVE);
		return;
	}
	qp->device->counters.receives_completed++;
	if (!route->infiniband && qp->device->quirks.sl_is_packet_type) {
		shown = *packet;
		shown.sl = packet_type(route);
		packet = &shown;
	}
	sim_receive_complete(qp, packet, IBV_WC_SUCCESS, IBV_WC_RECV, byte_len, wc_flags);
}
