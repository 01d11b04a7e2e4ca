/* SPDX-License-Identifier: MIT */
/* <verbena/packet.h>. */
#include "backends/sim/base/say.h"

#include "sim/net/trace.h"
#include "sim/wire/packet.h"
#include "sim/wire/timing.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/packet.h>

static const enum vb_reason reasons[] = {
	[SIM_DECODE_TRUNCATED] = VB_WHY_PACKET_TRUNCATED,
	[SIM_DECODE_NOT_ROCE] = VB_WHY_PACKET_NOT_ROCE,
	[SIM_DECODE_NOT_INFINIBAND] = VB_WHY_PACKET_NOT_INFINIBAND,
	[SIM_DECODE_BAD_VERSION] = VB_WHY_PACKET_VERSION,
	[SIM_DECODE_BAD_OPCODE] = VB_WHY_PACKET_OPCODE,
	[SIM_DECODE_BAD_PAD] = VB_WHY_PACKET_PAD,
	[SIM_DECODE_BAD_ICRC] = VB_WHY_PACKET_ICRC,
	[SIM_DECODE_BAD_VCRC] = VB_WHY_PACKET_VCRC,
};

/* Linux include/rdma/ib_pack.h names the codes. */
static const char *const nak_names[SIM_NAKS] = {
	[SIM_NAK_PSN_SEQUENCE & SIM_AETH_VALUE] = "PSN sequence error",
	[SIM_NAK_INVALID_REQUEST & SIM_AETH_VALUE] = "invalid request",
	[SIM_NAK_REMOTE_ACCESS & SIM_AETH_VALUE] = "remote access error",
	[SIM_NAK_REMOTE_OPERATION & SIM_AETH_VALUE] = "remote operational error",
	[SIM_NAK_INVALID_RD & SIM_AETH_VALUE] = "invalid RD request",
};

const char *vb_opcode_name(uint8_t opcode)
{
	return sim_opcodes[opcode].name;
}

int vb_packet_decode(const void *frame, size_t length_bytes, bool infiniband,
		     struct vb_packet *packet)
{
	const enum sim_decode result = sim_frame_show(frame, length_bytes, infiniband, packet);
	struct vb_why why = {.verb = "vb_packet_decode", .text = packet->opcode_name};

	packet->lost = !infiniband && length_bytes >= sizeof(sim_trace_lost_mac) &&
		       memcmp(frame, sim_trace_lost_mac, sizeof(sim_trace_lost_mac)) == 0;
	if (result == SIM_DECODE_OK)
		return 0;
	why.reason = reasons[result];
	why.values[0] = result == SIM_DECODE_BAD_OPCODE ? packet->opcode : length_bytes;
	return say_why(EBADMSG, &why);
}

_Static_assert(VB_FRAME_BYTES_MAX == SIM_FRAME_BYTES_MAX, "the public length of a frame");

/* --- encoding --- */

static int copy_plainly(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static struct sim_route route_of(const struct vb_packet *packet)
{
	struct sim_route route = {
		.hop_limit = 64,
		.ip_fragment = 0x4000,
		.udp_source_port = 0xc000,
		.infiniband = packet->has & VB_PACKET_HAS_LIDS,
		.has_grh = packet->has & VB_PACKET_HAS_GIDS,
		.slid = packet->slid,
		.dlid = packet->dlid,
	};

	memcpy(route.source_gid, packet->source_gid, sizeof(route.source_gid));
	memcpy(route.dest_gid, packet->dest_gid, sizeof(route.dest_gid));
	return route;
}

static struct sim_packet inner(const struct vb_packet *packet, const struct sim_span *span)
{
	return (struct sim_packet){
		.opcode = packet->opcode,
		.flags = (packet->solicited ? SIM_PACKET_SOLICITED : 0) | SIM_PACKET_MIGRATED |
			 (packet->ack_request ? SIM_PACKET_ACK_REQUEST : 0),
		.syndrome = packet->syndrome,
		.span_count = span->length_bytes != 0,
		.pkey = packet->pkey,
		.dest_qpn = packet->dest_qpn & 0xffffff,
		.psn = packet->psn & 0xffffff,
		.payload_bytes = span->length_bytes,
		.spans = span,
		.remote_addr = packet->remote_addr,
		.rkey = packet->rkey,
		.dma_bytes = packet->dma_bytes,
		.swap_add = packet->swap_add,
		.compare = packet->compare,
		.original = packet->original,
		.msn = packet->msn & 0xffffff,
		.imm_data = htobe32(packet->imm),
		.qkey = packet->qkey,
		.source_qpn = packet->source_qpn & 0xffffff,
		.xrc_srqn = packet->xrc_srqn & 0xffffff,
	};
}

size_t vb_packet_encode(const struct vb_packet *packet, const void *payload,
			uint8_t frame[VB_FRAME_BYTES_MAX])
{
	const struct sim_span span = {payload, packet->payload_bytes};
	const struct sim_route route = route_of(packet);
	struct vb_why why = {.reason = VB_WHY_ENCODE_OPCODE,
			     .values = {packet->opcode},
			     .verb = "vb_packet_encode"};
	struct sim_packet wanted;

	if (packet->payload_bytes > SIM_PATH_MTU_MAX) {
		why.reason = VB_WHY_ENCODE_PAYLOAD;
		why.values[0] = packet->payload_bytes;
		why.values[1] = SIM_PATH_MTU_MAX;
	}
	if (!sim_opcodes[packet->opcode].name || packet->payload_bytes > SIM_PATH_MTU_MAX) {
		say_why(EINVAL, &why);
		return 0;
	}
	wanted = inner(packet, &span);
	return sim_packet_encode(&wanted, &route, copy_plainly, frame, NULL);
}

/* --- words --- */

const char *vb_syndrome_text(uint8_t syndrome, char *text, size_t size_bytes)
{
	const unsigned int value = syndrome & SIM_AETH_VALUE;

	switch (syndrome & SIM_AETH_TYPE) {
	case SIM_AETH_ACK:
		snprintf(text, size_bytes, "ACK");
		break;
	case SIM_AETH_RNR_NAK: {
		/* All times are multiples of 0.01 ms. */
		const unsigned int units = (unsigned int)(sim_rnr_timer_ns(value) / 10000);

		snprintf(text, size_bytes, "RNR NAK (%u.%02u ms)", units / 100, units % 100);
		break;
	}
	case SIM_AETH_NAK:
		if (value < SIM_NAKS)
			snprintf(text, size_bytes, "NAK: %s", nak_names[value]);
		else
			snprintf(text, size_bytes, "NAK: reserved code %u", value);
		break;
	default:
		snprintf(text, size_bytes, "reserved syndrome 0x%02x", syndrome);
	}
	return text;
}
