/* SPDX-License-Identifier: MIT */
#include "sim/wire/packet.h"

#include "sim/wire/bytes.h"
#include "sim/wire/checksum.h"
#include "sim/wire/icrc.h"
#include "sim/wire/packet_layout.h"

/* The bytes of a frame that are still to be read. */
struct reader {
	const uint8_t *at;
	size_t left_bytes;
};

/* Returns the next bytes and moves behind them; NULL if fewer are left. */
static const uint8_t *take(struct reader *reader, size_t length_bytes)
{
	const uint8_t *at = reader->at;

	if (reader->left_bytes < length_bytes)
		return NULL;
	reader->at += length_bytes;
	reader->left_bytes -= length_bytes;
	return at;
}

/* Cuts off Ethernet's padding: length_bytes follow the IP header. */
static enum sim_decode limit(struct reader *reader, size_t length_bytes)
{
	if (reader->left_bytes < length_bytes)
		return SIM_DECODE_TRUNCATED;
	reader->left_bytes = length_bytes;
	return SIM_DECODE_OK;
}

/* RFC 4291, 2.5.5.2 */
static void map_ipv4(uint8_t gid[16], const uint8_t *address)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, address, 4);
}

static enum sim_decode get_ipv4(struct reader *reader, struct sim_route *route)
{
	const uint8_t *ip = take(reader, IPV4_BYTES);
	size_t datagram_bytes;

	if (!ip)
		return SIM_DECODE_TRUNCATED;
	if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP ||
	    sim_checksum_end(sim_checksum_add(0, ip, IPV4_BYTES)) != 0)
		return SIM_DECODE_NOT_ROCE;

	route->traffic_class = ip[1];
	route->ip_id = sim_load_be16(ip + 4);
	route->ip_fragment = sim_load_be16(ip + 6);
	route->hop_limit = ip[8];
	map_ipv4(route->source_gid, ip + 12);
	map_ipv4(route->dest_gid, ip + 16);
	if (route->ip_fragment & IPV4_FRAGMENTED)
		return SIM_DECODE_NOT_ROCE;
	datagram_bytes = sim_load_be16(ip + 2);
	if (datagram_bytes < IPV4_BYTES)
		return SIM_DECODE_TRUNCATED;
	return limit(reader, datagram_bytes - IPV4_BYTES);
}

/* Reads an IPv6 header, or a GRH, which has the same layout; another one is `wrong`. */
static enum sim_decode get_ipv6(struct reader *reader, struct sim_route *route, uint8_t next_header,
				enum sim_decode wrong)
{
	const uint8_t *ip = take(reader, IPV6_BYTES);

	if (!ip)
		return SIM_DECODE_TRUNCATED;
	route->traffic_class = (uint8_t)(sim_load_be32(ip) >> 20);
	route->flow_label = sim_load_be32(ip) & 0xfffff;
	route->hop_limit = ip[7];
	memcpy(route->source_gid, ip + 8, 16);
	memcpy(route->dest_gid, ip + 24, 16);
	if (ip[0] >> 4 != 6 || ip[6] != next_header)
		return wrong;
	return limit(reader, sim_load_be16(ip + 4));
}

/* Leaves the bytes between the LRH and the VCRC in the reader. */
static enum sim_decode get_lrh(struct reader *reader, struct sim_route *route)
{
	const size_t frame_bytes = reader->left_bytes;
	const uint8_t *lrh = take(reader, LRH_BYTES);
	size_t length_bytes;

	route->infiniband = true;
	if (!lrh)
		return SIM_DECODE_TRUNCATED;
	route->sl = lrh[1] >> LRH_SL_SHIFT;
	route->dlid = sim_load_be16(lrh + 2);
	route->slid = sim_load_be16(lrh + 6);
	route->has_grh = (lrh[1] & LRH_NEXT) == LRH_NEXT_GLOBAL;
	if (lrh[0] & LRH_VERSION || (lrh[1] & LRH_NEXT) < LRH_NEXT_LOCAL)
		return SIM_DECODE_NOT_INFINIBAND;
	length_bytes = (sim_load_be16(lrh + 4) & LRH_LENGTH) * (size_t)LRH_WORD_BYTES;
	if (frame_bytes < length_bytes + VCRC_BYTES)
		return SIM_DECODE_TRUNCATED;
	if (frame_bytes > length_bytes + VCRC_BYTES || length_bytes < LRH_BYTES)
		return SIM_DECODE_NOT_INFINIBAND;
	reader->left_bytes = length_bytes - LRH_BYTES;
	return SIM_DECODE_OK;
}

static enum sim_decode get_udp(struct reader *reader, struct sim_route *route)
{
	const size_t datagram_bytes = reader->left_bytes;
	const uint8_t *udp = take(reader, UDP_BYTES);

	if (!udp)
		return SIM_DECODE_TRUNCATED;
	route->udp_source_port = sim_load_be16(udp);
	route->udp_checksum = sim_load_be16(udp + 6);
	route->udp_checksum_given = true;
	if (sim_load_be16(udp + 2) != SIM_UDP_PORT)
		return SIM_DECODE_NOT_ROCE;
	if (sim_load_be16(udp + 4) > datagram_bytes)
		return SIM_DECODE_TRUNCATED;
	if (sim_load_be16(udp + 4) < datagram_bytes)
		return SIM_DECODE_NOT_ROCE;
	return SIM_DECODE_OK;
}

/* Reads up to the BTH. */
static enum sim_decode get_ethernet(struct reader *reader, struct sim_route *route)
{
	const uint8_t *ethernet = take(reader, ETHERNET_BYTES);
	enum sim_decode result;

	if (!ethernet)
		return SIM_DECODE_TRUNCATED;
	memcpy(route->dest_mac, ethernet, 6);
	memcpy(route->source_mac, ethernet + 6, 6);
	switch (sim_load_be16(ethernet + 12)) {
	case ETHERTYPE_ROCE_V1:
		route->roce_v1 = true;
		return get_ipv6(reader, route, GRH_NEXT_BTH, SIM_DECODE_NOT_ROCE);
	case ETHERTYPE_IPV4:
		result = get_ipv4(reader, route);
		break;
	case ETHERTYPE_IPV6:
		result = get_ipv6(reader, route, PROTOCOL_UDP, SIM_DECODE_NOT_ROCE);
		break;
	default:
		return SIM_DECODE_NOT_ROCE;
	}
	return result == SIM_DECODE_OK ? get_udp(reader, route) : result;
}

/* Reads up to the BTH. */
static enum sim_decode get_infiniband(struct reader *reader, struct sim_route *route)
{
	enum sim_decode result = get_lrh(reader, route);
	const size_t behind_lrh_bytes = reader->left_bytes;

	if (result != SIM_DECODE_OK || !route->has_grh)
		return result;
	result = get_ipv6(reader, route, GRH_NEXT_BTH, SIM_DECODE_NOT_INFINIBAND);
	if (result == SIM_DECODE_OK && reader->left_bytes != behind_lrh_bytes - GRH_BYTES)
		return SIM_DECODE_NOT_INFINIBAND;
	return result;
}

static enum sim_decode get_bth(struct reader *reader, struct sim_packet *packet,
			       uint32_t *pad_bytes)
{
	const uint8_t *bth = take(reader, BTH_BYTES);
	uint32_t first, qpn, psn; /* the words of the BTH */
	uint8_t second;		  /* its second byte */

	if (!bth)
		return SIM_DECODE_TRUNCATED;
	first = sim_load_be32(bth);
	qpn = sim_load_be32(bth + 4);
	psn = sim_load_be32(bth + 8);
	second = (uint8_t)(first >> 16);
	packet->opcode = (uint8_t)(first >> 24);
	packet->flags = (uint8_t)((second & FLAGS_SECOND) |
				  (qpn >> (24 + FLAGS_CONGESTION_SHIFT) & FLAGS_CONGESTION) |
				  (psn >> (24 + FLAGS_ACK_REQUEST_SHIFT) & SIM_PACKET_ACK_REQUEST));
	*pad_bytes = second >> BTH_PAD_SHIFT & BTH_PAD;
	packet->pkey = (uint16_t)first;
	packet->dest_qpn = qpn & 0xffffff;
	packet->psn = psn & 0xffffff;
	if (second & BTH_VERSION)
		return SIM_DECODE_BAD_VERSION;
	if (!(sim_opcodes[packet->opcode].flags & SIM_OP_VALID))
		return SIM_DECODE_BAD_OPCODE;
	return SIM_DECODE_OK;
}

static const uint8_t *get_remote(const uint8_t *at, struct sim_packet *packet, uint32_t headers)
{
	packet->remote_addr = sim_load_be64(at);
	packet->rkey = sim_load_be32(at + 8);
	if (headers & SIM_OP_RETH) {
		packet->dma_bytes = sim_load_be32(at + 12);
		return at + 16;
	}
	packet->swap_add = sim_load_be64(at + 12);
	packet->compare = sim_load_be64(at + 20);
	return at + 28;
}

static void get_extensions(const uint8_t *at, struct sim_packet *packet, uint32_t headers)
{
	if (headers & SIM_OP_RDETH) {
		packet->ee_context = sim_load_be24(at + 1);
		at += 4;
	}
	if (headers & SIM_OP_DETH) {
		packet->qkey = sim_load_be32(at);
		packet->source_qpn = sim_load_be24(at + 5);
		at += 8;
	}
	if (headers & SIM_OP_XRCETH) {
		packet->xrc_srqn = sim_load_be24(at + 1);
		at += 4;
	}
	if (headers & (SIM_OP_RETH | SIM_OP_ATOMICETH))
		at = get_remote(at, packet, headers);
	if (headers & SIM_OP_AETH) {
		packet->syndrome = at[0];
		packet->msn = sim_load_be24(at + 1);
		at += 4;
	}
	if (headers & SIM_OP_ATOMICACKETH) {
		packet->original = sim_load_be64(at);
		at += 8;
	}
	if (headers & SIM_OP_IMMDT) {
		memcpy(&packet->imm_data, at, 4);
		at += 4;
	}
	if (headers & SIM_OP_IETH)
		packet->rkey = sim_load_be32(at);
}

/* Reads the payload. The reader has the payload, its pad and end_bytes behind them left. */
static enum sim_decode get_payload(struct reader *reader, struct sim_packet *packet,
				   struct sim_span *span, uint32_t pad_bytes, size_t end_bytes)
{
	size_t padded_bytes;

	if (reader->left_bytes < end_bytes)
		return SIM_DECODE_TRUNCATED;
	padded_bytes = reader->left_bytes - end_bytes;
	if (padded_bytes & 3 || (pad_bytes && padded_bytes <= pad_bytes))
		return SIM_DECODE_BAD_PAD;

	packet->payload_bytes = (uint32_t)(padded_bytes - pad_bytes);
	*span = (struct sim_span){reader->at, packet->payload_bytes};
	packet->spans = span;
	packet->span_count = packet->payload_bytes > 0;
	take(reader, padded_bytes);
	return SIM_DECODE_OK;
}

/* Reads from the BTH to the pad, and leaves the end_bytes behind the pad to the caller. */
static enum sim_decode get_transport(struct reader *reader, struct sim_packet *packet,
				     struct sim_span *span, size_t end_bytes)
{
	const uint8_t *extensions;
	enum sim_decode result;
	uint32_t pad_bytes = 0;

	result = get_bth(reader, packet, &pad_bytes);
	if (result != SIM_DECODE_OK)
		return result;
	extensions = take(reader, sim_opcodes[packet->opcode].header_bytes - BTH_BYTES);
	if (!extensions)
		return SIM_DECODE_TRUNCATED;
	if (sim_opcodes[packet->opcode].header_bytes > BTH_BYTES)
		get_extensions(extensions, packet, sim_opcodes[packet->opcode].flags);
	return get_payload(reader, packet, span, pad_bytes, end_bytes);
}

/* In two parts: GCC clears up to 96 bytes with a few stores, and more with an instruction that begins slowly. */
static void clear(struct sim_packet *packet, struct sim_span *span)
{
	const size_t head_bytes = offsetof(struct sim_packet, remote_addr);

	memset(packet, 0, head_bytes);
	memset((uint8_t *)packet + head_bytes, 0, sizeof(*packet) - head_bytes);
	memset(span, 0, sizeof(*span));
}

/* Reads a frame up to the ICRC, where it leaves the reader. */
static enum sim_decode decode(struct reader *reader,
			      enum sim_decode (*get_network)(struct reader *reader,
							     struct sim_route *route),
			      struct sim_packet *packet, struct sim_span *span,
			      struct sim_route *route)
{
	enum sim_decode result;

	clear(packet, span);
	memset(route, 0, sizeof(*route));
	result = get_network(reader, route);
	return result == SIM_DECODE_OK ? get_transport(reader, packet, span, ICRC_BYTES) : result;
}

static enum sim_decode decode_ethernet(struct reader *reader, struct sim_packet *packet,
				       struct sim_span *span, struct sim_route *route)
{
	return decode(reader, get_ethernet, packet, span, route);
}

static enum sim_decode decode_infiniband(struct reader *reader, struct sim_packet *packet,
					 struct sim_span *span, struct sim_route *route)
{
	enum sim_decode result = decode(reader, get_infiniband, packet, span, route);

	packet->slid = route->slid;
	packet->sl = route->sl;
	return result;
}

enum sim_decode sim_packet_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
				struct sim_packet *packet, struct sim_span *span,
				struct sim_route *route)
{
	struct reader reader = {frame, frame_bytes};

	return (infiniband ? decode_infiniband : decode_ethernet)(&reader, packet, span, route);
}

enum sim_decode sim_packet_read_bare(const uint8_t *bytes, size_t length_bytes,
				     const struct sim_route *route, struct sim_packet *packet,
				     struct sim_span *span)
{
	struct reader reader = {bytes, length_bytes};

	clear(packet, span);
	packet->slid = route->slid;
	packet->sl = route->sl;
	return get_transport(&reader, packet, span, 0);
}

enum sim_decode sim_route_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
			       struct sim_route *route)
{
	struct reader reader = {frame, frame_bytes};

	memset(route, 0, sizeof(*route));
	return (infiniband ? get_infiniband : get_ethernet)(&reader, route);
}

enum sim_decode sim_packet_decode(const uint8_t *frame, size_t frame_bytes,
				  struct sim_packet *packet, struct sim_span *span,
				  struct sim_route *route)
{
	const uint8_t *ip = frame + ETHERNET_BYTES;
	struct reader reader = {frame, frame_bytes};
	enum sim_decode result = decode_ethernet(&reader, packet, span, route);
	size_t length_bytes;
	uint32_t icrc;

	if (result != SIM_DECODE_OK)
		return result;
	length_bytes = (size_t)(reader.at - ip) + ICRC_BYTES;
	icrc = route->roce_v1 ? sim_icrc_roce_v1(ip, length_bytes) : sim_icrc(ip, length_bytes);
	return icrc == sim_load_le32(reader.at) ? SIM_DECODE_OK : SIM_DECODE_BAD_ICRC;
}

enum sim_decode sim_packet_decode_infiniband(const uint8_t *frame, size_t frame_bytes,
					     struct sim_packet *packet, struct sim_span *span,
					     struct sim_route *route)
{
	const size_t length_bytes = frame_bytes - VCRC_BYTES;
	struct reader reader = {frame, frame_bytes};
	enum sim_decode result = decode_infiniband(&reader, packet, span, route);

	if (result != SIM_DECODE_OK)
		return result;
	if (sim_icrc_infiniband(frame, length_bytes) != sim_load_le32(reader.at))
		return SIM_DECODE_BAD_ICRC;
	if (sim_vcrc(frame, length_bytes) != sim_load_le16(frame + length_bytes))
		return SIM_DECODE_BAD_VCRC;
	return SIM_DECODE_OK;
}
