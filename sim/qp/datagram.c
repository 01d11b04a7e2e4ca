/* SPDX-License-Identifier: MIT */
/* Unreliable datagrams: no connection, no answer, one packet a message. */
#include "sim/qp/qp.h"
#include "sim/wire/psn.h"

#include <string.h>

#define GRH_BYTES 40u
/* Where the checksum is of an IPv4 header that is in the last 20. */
#define IPV4_CHECKSUM_AT 30
/* A Q_Key with this bit stands for the sending QP's own. */
#define QKEY_CONTROLLED 0x80000000u

/* C10-93.1.1, as Linux drivers/infiniband/sw/rxe/rxe_req.c quotes it: a message above the port's MTU
 * is not sent, and this is no error. */
static enum ibv_wc_status swallow(struct sim_qp *qp)
{
	if (qp->device->quirks.long_datagrams_fail)
		return IBV_WC_LOC_LEN_ERR;
	qp->req.sent_psn = qp->req.psn;
	qp->req.next++;
	return IBV_WC_SUCCESS;
}

static bool own_qkey(const struct sim_qp *qp, const struct sim_send_wqe *wqe)
{
	return wqe->remote_qkey & QKEY_CONTROLLED && !qp->device->quirks.high_qkey_is_sent;
}

enum ibv_wc_status sim_datagram_send(struct sim_qp *qp, struct sim_send_wqe *wqe)
{
	struct sim_path *path = &wqe->ah->path;
	struct sim_span spans[SIM_SPANS_MAX];
	struct sim_packet packet = {
		.opcode = sim_opcode_request(SIM_TRANSPORT_UD, wqe->opcode, true, true),
		.flags = SIM_PACKET_MIGRATED,
		.pkey = path->source->pkeys[qp->pkey_index],
		.dest_qpn = wqe->remote_qpn,
		.source_qpn = qp->number,
		.psn = wqe->first_psn,
		.payload_bytes = wqe->length,
		.spans = spans,
		.imm_data = wqe->imm_data,
		.slid = path->route.infiniband ? path->source->lid : 0,
		.sl = path->route.sl,
		.qkey = own_qkey(qp, wqe) ? qp->qkey : wqe->remote_qkey,
	};
	int count = 1;

	if (wqe->length > sim_mtu_bytes(path->source->mtu))
		return swallow(qp);
	/* Refused when it was posted, but for a quirk. */
	if (wqe->ah->pd != qp->pd)
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
	qp->req.sent_psn = qp->req.psn;
	qp->req.next++;
	qp->engine->outlet->send(qp->engine, path, &packet);
	return IBV_WC_SUCCESS;
}

/* The GRH and the payload into the receive WR's memory; nonzero where that may not be written. */
static int store(struct sim_qp *qp, const struct sim_recv_wqe *wqe, const struct sim_packet *packet,
		 const struct sim_route *route)
{
	uint8_t grh[GRH_BYTES];
	struct sim_span from[SIM_SPANS_MAX + 1] = {{grh, sizeof(grh)}};
	struct sim_span to[SIM_SPANS_MAX];
	int count = sim_qp_scatter(qp, wqe, 0, GRH_BYTES + packet->payload_bytes, to);

	if (count < 0)
		return -1;
	sim_packet_grh(packet, route, grh);
	if (qp->device->quirks.own_datagrams_lack_checksum && sim_gid_is_ipv4(route->dest_gid) &&
	    memcmp(route->source_mac, route->dest_mac, sizeof(route->dest_mac)) == 0)
		memset(grh + IPV4_CHECKSUM_AT, 0, 2);
	for (unsigned int i = 0; i < packet->span_count; i++)
		from[i + 1] = packet->spans[i];
	return sim_copy_spans(qp->device, from, packet->span_count + 1u, to, (unsigned int)count);
}

static void fail_receive(struct sim_qp *qp, enum ibv_wc_status status)
{
	sim_qp_take_recv(qp);
	sim_qp_complete_recv(qp, NULL, status, IBV_WC_RECV, 0, 0);
	sim_qp_fail(qp);
}

void sim_datagram_receive(struct sim_qp *qp, const struct sim_packet *packet,
			  const struct sim_route *route)
{
	const struct sim_recv_wqe *wqe = sim_qp_peek_recv(qp);
	uint32_t flags = sim_opcodes[packet->opcode].flags;
	uint32_t byte_len = GRH_BYTES + packet->payload_bytes;
	unsigned int wc_flags = flags & SIM_OP_IMMDT ? IBV_WC_WITH_IMM : 0;

	/* Without one its 40 bytes are there all the same, and mean nothing: ibv_poll_cq(3). */
	if (!route->infiniband || route->has_grh)
		wc_flags |= IBV_WC_GRH;
	if (packet->qkey == qp->qkey && wqe && wqe->length < byte_len &&
	    qp->device->quirks.short_datagram_receive_fails) {
		fail_receive(qp, IBV_WC_LOC_QP_OP_ERR);
		return;
	}
	if (packet->qkey != qp->qkey || !wqe || wqe->length < byte_len) {
		qp->device->counters.dropped_packets++;
		/* Of a packet to a group each member decides for itself. */
		if (packet->qkey != qp->qkey && packet->dest_qpn == qp->number)
			qp->device->counters.refused_packets++;
		return;
	}
	if (!qp->resp.established) {
		qp->resp.established = true;
		if (qp->state == IBV_QPS_RTR)
			sim_qp_event(qp, IBV_EVENT_COMM_EST);
	}
	sim_qp_take_recv(qp);
	if (store(qp, wqe, packet, route) == 0) {
		qp->device->counters.receives_completed++;
		sim_qp_complete_recv(qp, packet, IBV_WC_SUCCESS, IBV_WC_RECV, byte_len, wc_flags);
		return;
	}
	fail_receive(qp, qp->device->quirks.bad_receive_is_operation_error ? IBV_WC_LOC_QP_OP_ERR
									   : IBV_WC_LOC_PROT_ERR);
}
