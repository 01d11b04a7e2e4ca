/* SPDX-License-Identifier: MIT */
#include "sim/wire/packet.h"

#include "sim/wire/bytes.h"
#include "sim/wire/checksum.h"
#include "sim/wire/icrc.h"
#include "sim/wire/packet_layout.h"

#include <assert.h>

/* The LRH gives the length in words, from the LRH to the ICRC. */
static uint8_t *put_lrh(uint8_t *at, const struct sim_route *route, size_t length_bytes)
{
	at[0] = 0; /* virtual lane 0, version 0 */
	at[1] = (uint8_t)(route->sl << LRH_SL_SHIFT |
			  (route->has_grh ? LRH_NEXT_GLOBAL : LRH_NEXT_LOCAL));
	sim_store_be16(at + 2, route->dlid);
	sim_store_be16(at + 4, (uint16_t)(length_bytes / LRH_WORD_BYTES));
	sim_store_be16(at + 6, route->slid);
	return at + LRH_BYTES;
}

static uint8_t *put_ethernet(uint8_t *at, const struct sim_route *route)
{
	const uint16_t ethertype = route->roce_v1			? ETHERTYPE_ROCE_V1
				   : sim_gid_is_ipv4(route->source_gid) ? ETHERTYPE_IPV4
									: ETHERTYPE_IPV6;

	memcpy(at, route->dest_mac, 6);
	memcpy(at + 6, route->source_mac, 6);
	sim_store_be16(at + 12, ethertype);
	return at + ETHERNET_BYTES;
}

static void put_ipv4_checksum(uint8_t *ip)
{
	uint16_t sum;

	sim_store_be16(ip + 10, 0);
	sum = sim_checksum_end(sim_checksum_add(0, ip, IPV4_BYTES));
	memcpy(ip + 10, &sum, sizeof(sum));
}

static uint8_t *put_ipv4(uint8_t *at, const struct sim_route *route, size_t datagram_bytes)
{
	at[0] = 0x45; /* version 4, five words */
	at[1] = route->traffic_class;
	sim_store_be16(at + 2, (uint16_t)datagram_bytes);
	sim_store_be16(at + 4, route->ip_id);
	sim_store_be16(at + 6, route->ip_fragment);
	at[8] = route->hop_limit;
	at[9] = PROTOCOL_UDP;
	memcpy(at + 12, route->source_gid + 12, 4);
	memcpy(at + 16, route->dest_gid + 12, 4);
	put_ipv4_checksum(at);
	return at + IPV4_BYTES;
}

/* Writes an IPv6 header, or a GRH, which has the same layout. */
static uint8_t *put_ipv6(uint8_t *at, const struct sim_route *route, uint8_t next_header,
			 size_t payload_bytes)
{
	sim_store_be32(at, 6u << 28 | (uint32_t)route->traffic_class << 20 |
				   (route->flow_label & 0xfffff));
	sim_store_be16(at + 4, (uint16_t)payload_bytes);
	at[6] = next_header;
	at[7] = route->hop_limit;
	memcpy(at + 8, route->source_gid, 16);
	memcpy(at + 24, route->dest_gid, 16);
	return at + IPV6_BYTES;
}

static uint8_t *put_udp(uint8_t *at, const struct sim_route *route, size_t udp_bytes)
{
	sim_store_be16(at, route->udp_source_port);
	sim_store_be16(at + 2, SIM_UDP_PORT);
	sim_store_be16(at + 4, (uint16_t)udp_bytes);
	sim_store_be16(at + 6, route->udp_checksum_given ? route->udp_checksum : 0);
	return at + UDP_BYTES;
}

/* RFC 8200 8.1: UDP over IPv6 needs the checksum, and sends 0 as 0xffff. */
static void put_udp_checksum_ipv6(uint8_t *ip, size_t udp_bytes)
{
	uint8_t *udp = ip + IPV6_BYTES;
	uint8_t tail[8] = {[7] = PROTOCOL_UDP};
	uint64_t sum = 0;
	uint16_t folded;

	sim_store_be32(tail, (uint32_t)udp_bytes);
	sum = sim_checksum_add(sum, ip + 8, 32);
	sum = sim_checksum_add(sum, tail, sizeof(tail));
	sum = sim_checksum_add(sum, udp, udp_bytes);
	folded = sim_checksum_end(sum);
	if (folded == 0)
		folded = 0xffff;
	memcpy(udp + 6, &folded, sizeof(folded));
}

static uint8_t *put_bth(uint8_t *at, const struct sim_packet *packet, uint32_t pad_bytes)
{
	const uint32_t flags = packet->flags;
	const uint32_t second = (flags & FLAGS_SECOND) | pad_bytes << BTH_PAD_SHIFT;
	const uint32_t congestion = (flags & FLAGS_CONGESTION) << FLAGS_CONGESTION_SHIFT;
	const uint32_t asks = (flags & SIM_PACKET_ACK_REQUEST) << FLAGS_ACK_REQUEST_SHIFT;

	sim_store_be32(at, (uint32_t)packet->opcode << 24 | second << 16 | packet->pkey);
	sim_store_be32(at + 4, congestion << 24 | (packet->dest_qpn & 0xffffff));
	sim_store_be32(at + 8, asks << 24 | (packet->psn & 0xffffff));
	return at + BTH_BYTES;
}

/* Writes a RETH or an AtomicETH: both begin with the address and the R_Key. */
static uint8_t *put_remote(uint8_t *at, const struct sim_packet *packet, uint32_t headers)
{
	sim_store_be64(at, packet->remote_addr);
	sim_store_be32(at + 8, packet->rkey);
	if (headers & SIM_OP_RETH) {
		sim_store_be32(at + 12, packet->dma_bytes);
		return at + 16;
	}
	sim_store_be64(at + 12, packet->swap_add);
	sim_store_be64(at + 20, packet->compare);
	return at + 28;
}

static uint8_t *put_extensions(uint8_t *at, const struct sim_packet *packet, uint32_t headers)
{
	if (headers & SIM_OP_RDETH) {
		sim_store_be32(at, packet->ee_context & 0xffffff);
		at += 4;
	}
	if (headers & SIM_OP_DETH) {
		sim_store_be32(at, packet->qkey);
		sim_store_be32(at + 4, packet->source_qpn & 0xffffff);
		at += 8;
	}
	if (headers & SIM_OP_XRCETH) {
		sim_store_be32(at, packet->xrc_srqn & 0xffffff);
		at += 4;
	}
	if (headers & (SIM_OP_RETH | SIM_OP_ATOMICETH))
		at = put_remote(at, packet, headers);
	if (headers & SIM_OP_AETH) {
		at[0] = packet->syndrome;
		sim_store_be24(at + 1, packet->msn);
		at += 4;
	}
	if (headers & SIM_OP_ATOMICACKETH) {
		sim_store_be64(at, packet->original);
		at += 8;
	}
	if (headers & SIM_OP_IMMDT) {
		memcpy(at, &packet->imm_data, 4);
		at += 4;
	}
	if (headers & SIM_OP_IETH) {
		sim_store_be32(at, packet->rkey);
		at += 4;
	}
	return at;
}

static uint8_t *put_payload(uint8_t *at, const struct sim_packet *packet, sim_copy_fn *copy,
			    uint32_t pad_bytes, bool *readable)
{
	const uint8_t *end = at + packet->payload_bytes;

	for (unsigned int i = 0; i < packet->span_count; i++) {
		const struct sim_span *span = &packet->spans[i];

		assert(span->length_bytes <= (size_t)(end - at));
		if (copy(at, span->base, span->length_bytes)) {
			memset(at, 0, span->length_bytes);
			*readable = false;
		}
		at += span->length_bytes;
	}
	assert(at == end);
	memset(at, 0, pad_bytes);
	return at + pad_bytes;
}

/* The bytes from the BTH to the ICRC. */
static size_t transport_bytes_of(const struct sim_packet *packet)
{
	return sim_opcodes[packet->opcode].header_bytes + packet->payload_bytes +
	       sim_pad_bytes(packet->payload_bytes) + ICRC_BYTES;
}

static bool has_udp(const struct sim_route *route)
{
	return !route->infiniband && !route->roce_v1;
}

/* The bytes of the IP header or of the GRH. */
static size_t ip_bytes_of(const struct sim_route *route)
{
	if (route->infiniband && !route->has_grh)
		return 0;
	return has_udp(route) && sim_gid_is_ipv4(route->source_gid) ? IPV4_BYTES : IPV6_BYTES;
}

size_t sim_route_bytes(const struct sim_route *route)
{
	return (route->infiniband ? LRH_BYTES : ETHERNET_BYTES) + ip_bytes_of(route) +
	       (has_udp(route) ? UDP_BYTES : 0);
}

size_t sim_frame_bytes(const struct sim_packet *packet, const struct sim_route *route)
{
	return sim_route_bytes(route) + transport_bytes_of(packet) +
	       (route->infiniband ? VCRC_BYTES : 0);
}

/* Writes the IP header or the GRH, if the route has one. */
static uint8_t *put_ip(uint8_t *at, const struct sim_route *route, size_t transport_bytes)
{
	const size_t udp_bytes = UDP_BYTES + transport_bytes;

	switch (ip_bytes_of(route)) {
	case 0:
		return at;
	case IPV4_BYTES:
		return put_ipv4(at, route, IPV4_BYTES + udp_bytes);
	default:
		return has_udp(route) ? put_ipv6(at, route, PROTOCOL_UDP, udp_bytes)
				      : put_ipv6(at, route, GRH_NEXT_BTH, transport_bytes);
	}
}

/* Writes from the BTH to the pad. Returns the end of the pad. */
static uint8_t *put_transport(uint8_t *at, const struct sim_packet *packet, sim_copy_fn *copy,
			      bool *readable)
{
	const struct sim_opcode_info *info = &sim_opcodes[packet->opcode];
	const uint32_t pad_bytes = sim_pad_bytes(packet->payload_bytes);

	assert(info->flags & SIM_OP_VALID);

	at = put_bth(at, packet, pad_bytes);
	if (info->header_bytes > BTH_BYTES)
		at = put_extensions(at, packet, info->flags);
	return put_payload(at, packet, copy, pad_bytes, readable);
}

size_t sim_packet_write_bare(const struct sim_packet *packet, sim_copy_fn *copy, uint8_t *bytes,
			     bool *readable)
{
	assert(packet->payload_bytes <= SIM_TRAIN_BYTES_MAX);

	*readable = true;
	return (size_t)(put_transport(bytes, packet, copy, readable) - bytes);
}

/* Writes the headers before the BTH, for a length from the BTH to the ICRC. */
static void put_route(uint8_t *frame, const struct sim_route *route, size_t transport_bytes)
{
	uint8_t *at = route->infiniband
			      ? put_lrh(frame, route, sim_route_bytes(route) + transport_bytes)
			      : put_ethernet(frame, route);

	at = put_ip(at, route, transport_bytes);
	if (has_udp(route))
		put_udp(at, route, UDP_BYTES + transport_bytes);
}

void sim_packet_seal_link(uint8_t *frame, size_t frame_bytes)
{
	const size_t length_bytes = frame_bytes - VCRC_BYTES;

	sim_store_le16(frame + length_bytes, sim_vcrc(frame, length_bytes));
}

/* Writes the ICRC and the checksums that cover it. */
static void put_checksums(uint8_t *frame, size_t frame_bytes, const struct sim_route *route)
{
	const bool over_ipv6 = has_udp(route) && ip_bytes_of(route) == IPV6_BYTES;
	uint8_t *ip = frame + ETHERNET_BYTES;
	const size_t ip_bytes = frame_bytes - ETHERNET_BYTES;

	if (route->infiniband) {
		const size_t length_bytes = frame_bytes - VCRC_BYTES;

		sim_store_le32(frame + length_bytes - ICRC_BYTES,
			       sim_icrc_infiniband(frame, length_bytes));
		sim_packet_seal_link(frame, frame_bytes);
		return;
	}
	sim_store_le32(frame + frame_bytes - ICRC_BYTES,
		       route->roce_v1 ? sim_icrc_roce_v1(ip, ip_bytes) : sim_icrc(ip, ip_bytes));
	/* The checksum covers the ICRC, and the ICRC takes the checksum as ones. */
	if (over_ipv6 && !route->udp_checksum_given)
		put_udp_checksum_ipv6(ip, ip_bytes - IPV6_BYTES);
}

size_t sim_packet_resize(uint8_t *frame, size_t transport_bytes, const struct sim_route *route)
{
	put_route(frame, route, transport_bytes);
	return sim_route_bytes(route) + transport_bytes + (route->infiniband ? VCRC_BYTES : 0);
}

/* True if the network headers of a frame have the route's layout, which the ICRC goes by. */
static bool is_of_kind(const uint8_t *frame, const struct sim_route *route)
{
	if (route->infiniband)
		return ((frame[1] & LRH_NEXT) == LRH_NEXT_GLOBAL) == route->has_grh;
	return !has_udp(route) ||
	       (frame[ETHERNET_BYTES] >> 4 == 4) == (ip_bytes_of(route) == IPV4_BYTES);
}

void sim_packet_seal(uint8_t *frame, size_t frame_bytes, const struct sim_route *route)
{
	const size_t least_bytes = sim_route_bytes(route) + BTH_BYTES + ICRC_BYTES;

	if (is_of_kind(frame, route) &&
	    frame_bytes >= least_bytes + (route->infiniband ? VCRC_BYTES : 0)) {
		if (has_udp(route) && ip_bytes_of(route) == IPV4_BYTES)
			put_ipv4_checksum(frame + ETHERNET_BYTES);
		put_checksums(frame, frame_bytes, route);
	} else if (route->infiniband) {
		sim_packet_seal_link(frame, frame_bytes);
	}
}

size_t sim_packet_write(const struct sim_packet *packet, const struct sim_route *route,
			sim_copy_fn *copy, uint8_t *frame, bool *readable)
{
	const size_t transport_bytes = transport_bytes_of(packet);
	uint8_t *bth = frame + sim_route_bytes(route);
	const size_t end_bytes = ICRC_BYTES + (route->infiniband ? VCRC_BYTES : 0);
	bool all_readable = true;

	assert(packet->payload_bytes <= SIM_PATH_MTU_MAX);

	put_route(frame, route, transport_bytes);
	put_transport(bth, packet, copy, &all_readable);
	memset(bth + transport_bytes - ICRC_BYTES, 0, end_bytes);
	if (readable)
		*readable = all_readable;
	return (size_t)(bth - frame) + transport_bytes - ICRC_BYTES + end_bytes;
}

bool sim_packet_identify(uint8_t *frame, size_t frame_bytes, uint16_t *identification)
{
	uint8_t *ip = frame + ETHERNET_BYTES;
	const bool ipv4 = ip[0] >> 4 == 4;
	const size_t length_bytes = frame_bytes - ETHERNET_BYTES;
	const size_t network_bytes = (ipv4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;

	*identification = 0;
	if (length_bytes < network_bytes + BTH_BYTES + ICRC_BYTES)
		return false;
	if (!ipv4)
		return sim_icrc(ip, length_bytes) ==
		       sim_load_le32(frame + frame_bytes - ICRC_BYTES);
	if (!sim_icrc_identify(ip, length_bytes, identification))
		return false;
	if (*identification) {
		sim_store_be16(ip + IPV4_ID, *identification);
		put_ipv4_checksum(ip);
	}
	return true;
}

size_t sim_packet_encode(const struct sim_packet *packet, const struct sim_route *route,
			 sim_copy_fn *copy, uint8_t *frame, bool *readable)
{
	const size_t frame_bytes = sim_packet_write(packet, route, copy, frame, readable);

	put_checksums(frame, frame_bytes, route);
	return frame_bytes;
}

void sim_packet_grh(const struct sim_packet *packet, const struct sim_route *route, uint8_t grh[40])
{
	memset(grh, GRH_UNDEFINED, GRH_BYTES);
	put_ip(grh + GRH_BYTES - ip_bytes_of(route), route, transport_bytes_of(packet));
}
