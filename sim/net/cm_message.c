/* SPDX-License-Identifier: MIT */
#include "sim/net/cm_message.h"

#include "sim/net/arrival.h"
#include "sim/net/net.h"

#include <string.h>

static bool read_mad(const struct sim_engine *engine, const struct sim_packet *packet, uint8_t *mad)
{
	/* Only the connection manager sends from QP 1, and each message is one piece. */
	return packet->dest_qpn == SIM_GSI_QPN && packet->source_qpn == SIM_GSI_QPN &&
	       !engine->host.memory.copy(mad, packet->spans->base, SIM_MAD_BYTES);
}

enum sim_cm_message sim_message_of(const struct sim_engine *engine, const struct sim_packet *packet)
{
	uint8_t mad[SIM_MAD_BYTES];

	if (!read_mad(engine, packet, mad) ||
	    sim_mad_get(mad, SIM_CM_NONE_CLASS) != SIM_MAD_CLASS_CM)
		return SIM_CM_NONE;
	return sim_mad_message(mad);
}

void sim_message_change(uint8_t *bth, enum sim_cm_field field, uint32_t offset,
			const struct sim_bits *bits)
{
	const uint8_t opcode = sim_opcode_request(SIM_TRANSPORT_UD, IBV_WR_SEND, true, true);
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];
	uint8_t *mad = bth + sim_opcodes[opcode].header_bytes;
	uint8_t *byte = mad + info->byte + offset;

	if (info->bits)
		sim_mad_set(mad, field, sim_bits_change(bits, sim_mad_get(mad, field)));
	else
		*byte = (uint8_t)sim_bits_change(bits, *byte);
}

/* --- a REJ in the name of the receiver --- */

/* A REQ has no ID of its receiver. */
static void write_rej(uint8_t *rej, const uint8_t *mad, uint16_t reason)
{
	const bool is_req = sim_mad_message(mad) == SIM_CM_REQ;

	sim_mad_begin(rej, SIM_CM_REJ, sim_mad_get(mad, SIM_CM_NONE_TRANSACTION_ID));
	sim_mad_set(rej, SIM_CM_REJ_REMOTE_ID, sim_mad_get(mad, SIM_CM_REQ_LOCAL_ID));
	if (!is_req)
		sim_mad_set(rej, SIM_CM_REJ_LOCAL_ID, sim_mad_get(mad, SIM_CM_REP_REMOTE_ID));
	sim_mad_set(rej, SIM_CM_REJ_MESSAGE, is_req ? SIM_CM_ANSWERS_REQ : SIM_CM_ANSWERS_REP);
	sim_mad_set(rej, SIM_CM_REJ_REASON, reason);
}

static struct sim_route way_back(const struct sim_route *route)
{
	struct sim_route back = *route;

	memcpy(back.source_mac, route->dest_mac, sizeof(back.source_mac));
	memcpy(back.dest_mac, route->source_mac, sizeof(back.dest_mac));
	memcpy(back.source_gid, route->dest_gid, sizeof(back.source_gid));
	memcpy(back.dest_gid, route->source_gid, sizeof(back.dest_gid));
	back.slid = route->dlid;
	back.dlid = route->slid;
	return back;
}

void sim_message_reject(struct sim_net *net, const struct sim_transit *transit, uint16_t reason)
{
	const struct sim_route there = sim_net_route(transit->path, transit->packet);
	const struct sim_route back = way_back(&there);
	struct sim_packet packet = *transit->packet;
	uint8_t mad[SIM_MAD_BYTES], rej[SIM_MAD_BYTES], frame[SIM_FRAME_BYTES_MAX];
	const struct sim_span span = {rej, SIM_MAD_BYTES};
	struct sim_port *const port =
		transit->path->dest ? transit->path->dest : transit->path->source;
	size_t frame_bytes;

	if (!read_mad(net->engine, transit->packet, mad))
		return;
	write_rej(rej, mad, reason);
	packet.spans = &span;
	packet.psn = port->gsi_psn++ & 0xffffff;
	frame_bytes = sim_packet_encode(&packet, &back, net->engine->host.memory.copy, frame, NULL);
	sim_net_inject(transit->path->source, frame, frame_bytes);
}
