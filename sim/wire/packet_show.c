/* SPDX-License-Identifier: MIT */
/* Packets as struct vb_packet of <verbena/packet.h>: what the headers say. */
#include "sim/wire/packet.h"

#include <endian.h>
#include <string.h>
#include <verbena/packet.h>

static const struct {
	uint32_t header;
	enum vb_packet_has has;
} headers[] = {
	{SIM_OP_RETH, VB_PACKET_HAS_RETH},
	{SIM_OP_AETH, VB_PACKET_HAS_AETH},
	{SIM_OP_IMMDT, VB_PACKET_HAS_IMM},
	{SIM_OP_IETH, VB_PACKET_HAS_INVALIDATE},
	{SIM_OP_DETH, VB_PACKET_HAS_DETH},
	{SIM_OP_ATOMICETH, VB_PACKET_HAS_ATOMIC},
	{SIM_OP_ATOMICACKETH, VB_PACKET_HAS_ORIGINAL},
	{SIM_OP_XRCETH, VB_PACKET_HAS_XRC},
};

static void show_route(const struct sim_route *route, struct vb_packet *shown)
{
	if (!route->infiniband || route->has_grh) {
		shown->has |= VB_PACKET_HAS_GIDS;
		memcpy(shown->source_gid, route->source_gid, sizeof(shown->source_gid));
		memcpy(shown->dest_gid, route->dest_gid, sizeof(shown->dest_gid));
	}
	if (!route->infiniband)
		return;
	shown->has |= VB_PACKET_HAS_LIDS;
	shown->slid = route->slid;
	shown->dlid = route->dlid;
}

static void show_bth(const struct sim_packet *packet, struct vb_packet *shown)
{
	shown->opcode = packet->opcode;
	shown->opcode_name = sim_opcodes[packet->opcode].name;
	shown->solicited = packet->flags & SIM_PACKET_SOLICITED;
	shown->ack_request = packet->flags & SIM_PACKET_ACK_REQUEST;
	shown->pkey = packet->pkey;
	shown->dest_qpn = packet->dest_qpn;
	shown->psn = packet->psn;
}

/* A sender fills in only the fields of the headers that the opcode has. */
static void show_extensions(const struct sim_packet *packet, struct vb_packet *shown)
{
	const uint32_t flags = sim_opcodes[packet->opcode].flags;

	for (unsigned int i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (flags & headers[i].header)
			shown->has |= headers[i].has;
	if (flags & (SIM_OP_RETH | SIM_OP_ATOMICETH)) {
		shown->remote_addr = packet->remote_addr;
		shown->rkey = packet->rkey;
	}
	if (flags & SIM_OP_IETH)
		shown->rkey = packet->rkey;
	if (flags & SIM_OP_RETH)
		shown->dma_bytes = packet->dma_bytes;
	if (flags & SIM_OP_ATOMICETH) {
		shown->swap_add = packet->swap_add;
		shown->compare = packet->compare;
	}
	if (flags & SIM_OP_AETH) {
		shown->syndrome = packet->syndrome;
		shown->msn = packet->msn;
	}
	if (flags & SIM_OP_ATOMICACKETH)
		shown->original = packet->original;
	if (flags & SIM_OP_IMMDT)
		shown->imm = be32toh(packet->imm_data);
	if (flags & SIM_OP_DETH) {
		shown->qkey = packet->qkey;
		shown->source_qpn = packet->source_qpn;
	}
	if (flags & SIM_OP_XRCETH)
		shown->xrc_srqn = packet->xrc_srqn;
}

void sim_packet_show(const struct sim_packet *packet, const struct sim_route *route,
		     struct vb_packet *shown)
{
	*shown = (struct vb_packet){.payload_bytes = packet->payload_bytes};
	show_route(route, shown);
	show_bth(packet, shown);
	show_extensions(packet, shown);
}

enum sim_decode sim_frame_show(const uint8_t *frame, size_t frame_bytes, bool infiniband,
			       struct vb_packet *shown)
{
	struct sim_packet packet;
	struct sim_route route;
	struct sim_span span;
	const enum sim_decode result =
		(infiniband ? sim_packet_decode_infiniband
			    : sim_packet_decode)(frame, frame_bytes, &packet, &span, &route);

	*shown = (struct vb_packet){0};
	switch (result) {
	case SIM_DECODE_OK:
	case SIM_DECODE_BAD_ICRC:
	case SIM_DECODE_BAD_VCRC:
		sim_packet_show(&packet, &route, shown);
		break;
	case SIM_DECODE_BAD_VERSION:
	case SIM_DECODE_BAD_OPCODE:
	case SIM_DECODE_BAD_PAD:
		show_route(&route, shown);
		show_bth(&packet, shown);
		break;
	default:
		break;
	}
	return result;
}
