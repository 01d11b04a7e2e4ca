/* SPDX-License-Identifier: MIT */
#include "sim/packet.h"

#include "sim/icrc.h"
#include "sim/wire.h"

#include <assert.h>

/*
 * Layouts: Ethernet, IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC 768); the BTH and its extension
 * headers as in Linux drivers/infiniband/sw/rxe/rxe_hdr.h and Wireshark packet-infiniband.c; the
 * LRH and GRH as in Linux drivers/infiniband/core/ud_header.c; the Ethernet type of RoCE v1 as
 * ETH_P_IBOE in Linux include/uapi/linux/if_ether.h.
 */
enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	LRH_BYTES = 8,
	GRH_BYTES = 40,
	VCRC_BYTES = 2,

	LRH_VERSION = 0x0f,
	LRH_SL_SHIFT = 4,
	LRH_NEXT = 0x3,
	LRH_NEXT_LOCAL = 2,  /* a BTH */
	LRH_NEXT_GLOBAL = 3, /* a GRH, then a BTH */
	LRH_LENGTH = 0x7ff,
	LRH_WORD_BYTES = 4,
	GRH_NEXT_BTH = 0x1b,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_ROCE_V1 = 0x8915,
	PROTOCOL_UDP = 17,
	IPV4_FRAGMENTED = 0x3fff, /* more fragments, or an offset */

	BTH_SOLICITED = 0x80,
	BTH_MIGRATED = 0x40,
	BTH_PAD_SHIFT = 4,
	BTH_PAD = 0x3,
	BTH_VERSION = 0x0f,
	BTH_FECN = 0x80,
	BTH_BECN = 0x40,
	BTH_ACK_REQUEST = 0x80,

	GRH_UNDEFINED = 0xcc,
	PORT_DYNAMIC = 0xc000,
};

static const uint8_t ipv4_mapped[12] = {[10] = 0xff, [11] = 0xff};

bool sim_gid_is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, ipv4_mapped, sizeof(ipv4_mapped));
}

bool sim_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (sim_gid_is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0);
}

/*
 * The numbers that Linux's drivers choose: rdma_calc_flow_label and rdma_flow_label_to_udp_sport
 * in include/rdma/ib_verbs.h.
 */
uint16_t sim_udp_source_port(uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t hash = (uint64_t)qpn * dest_qpn;

	hash ^= hash >> 20;
	hash ^= hash >> 40;
	return (uint16_t)(((hash ^ (hash >> 14 & 0x3f)) & 0x3fff) | PORT_DYNAMIC);
}

/* The sum of RFC 1071, over bytes as they stand in memory; chain calls through sum. */
static uint64_t checksum_add(uint64_t sum, const uint8_t *data, size_t length_bytes)
{
	uint32_t word = 0;

	for (; length_bytes >= sizeof(word); length_bytes -= sizeof(word), data += sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	if (length_bytes) {
		word = 0;
		memcpy(&word, data, length_bytes);
		sum += word;
	}
	return sum;
}

/* Folds the sum; the result is stored with memcpy, since the sum is in memory's order. */
static uint16_t checksum_end(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint8_t *put_ethernet(uint8_t *at, const struct sim_route *route, uint16_t ethertype)
{
	memcpy(at, route->dest_mac, 6);
	memcpy(at + 6, route->source_mac, 6);
	sim_store_be16(at + 12, ethertype);
	return at + ETHERNET_BYTES;
}

static uint8_t *put_ipv4(uint8_t *at, const struct sim_route *route, size_t datagram_bytes)
{
	uint16_t sum;

	at[0] = 0x45; /* version 4, five words */
	at[1] = route->traffic_class;
	sim_store_be16(at + 2, (uint16_t)datagram_bytes);
	sim_store_be16(at + 4, route->ip_id);
	sim_store_be16(at + 6, route->ip_fragment);
	at[8] = route->hop_limit;
	at[9] = PROTOCOL_UDP;
	sim_store_be16(at + 10, 0);
	memcpy(at + 12, route->source_gid + 12, 4);
	memcpy(at + 16, route->dest_gid + 12, 4);
	sum = checksum_end(checksum_add(0, at, IPV4_BYTES));
	memcpy(at + 10, &sum, sizeof(sum));
	return at + IPV4_BYTES;
}

/* IPv6, or a GRH, which has the same form. */
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

/* RFC 8200 8.1: over IPv6 the checksum is obligatory, and 0 is sent as 0xffff. */
static void put_udp_checksum_ipv6(uint8_t *ip, size_t udp_bytes)
{
	uint8_t *udp = ip + IPV6_BYTES;
	uint8_t tail[8] = {[7] = PROTOCOL_UDP};
	uint64_t sum = 0;
	uint16_t folded;

	sim_store_be32(tail, (uint32_t)udp_bytes);
	sum = checksum_add(sum, ip + 8, 32);
	sum = checksum_add(sum, tail, sizeof(tail));
	sum = checksum_add(sum, udp, udp_bytes);
	folded = checksum_end(sum);
	if (folded == 0)
		folded = 0xffff;
	memcpy(udp + 6, &folded, sizeof(folded));
}

static uint8_t *put_bth(uint8_t *at, const struct sim_packet *packet, uint32_t pad_bytes)
{
	const uint8_t flags = packet->flags;

	at[0] = packet->opcode;
	at[1] = (uint8_t)((flags & SIM_PACKET_SOLICITED ? BTH_SOLICITED : 0) |
			  (flags & SIM_PACKET_MIGRATED ? BTH_MIGRATED : 0) |
			  pad_bytes << BTH_PAD_SHIFT);
	sim_store_be16(at + 2, packet->pkey);
	at[4] = (uint8_t)((flags & SIM_PACKET_FECN ? BTH_FECN : 0) |
			  (flags & SIM_PACKET_BECN ? BTH_BECN : 0));
	sim_store_be24(at + 5, packet->dest_qpn);
	at[8] = flags & SIM_PACKET_ACK_REQUEST ? BTH_ACK_REQUEST : 0;
	sim_store_be24(at + 9, packet->psn);
	return at + BTH_BYTES;
}

/* The two longest: RETH and AtomicETH. */
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
			    uint32_t pad_bytes)
{
	const uint8_t *end = at + packet->payload_bytes;

	for (unsigned int i = 0; i < packet->span_count; i++) {
		const struct sim_span *span = &packet->spans[i];

		assert(span->length_bytes <= (size_t)(end - at));
		if (copy(at, span->base, span->length_bytes))
			memset(at, 0, span->length_bytes);
		at += span->length_bytes;
	}
	assert(at == end);
	memset(at, 0, pad_bytes);
	return at + pad_bytes;
}

/* From the BTH to the ICRC. */
static size_t transport_bytes_of(const struct sim_packet *packet)
{
	return sim_opcodes[packet->opcode].header_bytes + packet->payload_bytes +
	       sim_pad_bytes(packet->payload_bytes) + ICRC_BYTES;
}

size_t sim_route_bytes(const struct sim_route *route)
{
	if (route->infiniband)
		return LRH_BYTES + (route->has_grh ? GRH_BYTES : 0);
	if (route->roce_v1)
		return ETHERNET_BYTES + GRH_BYTES;
	return ETHERNET_BYTES + (sim_gid_is_ipv4(route->source_gid) ? IPV4_BYTES : IPV6_BYTES) +
	       UDP_BYTES;
}

size_t sim_frame_bytes(const struct sim_packet *packet, const struct sim_route *route)
{
	return sim_route_bytes(route) + transport_bytes_of(packet) +
	       (route->infiniband ? VCRC_BYTES : 0);
}

/* All that the link layers have in common, but for the ICRC. */
static uint8_t *put_transport(uint8_t *at, const struct sim_packet *packet, sim_copy_fn *copy)
{
	const struct sim_opcode_info *info = &sim_opcodes[packet->opcode];
	const uint32_t pad_bytes = sim_pad_bytes(packet->payload_bytes);

	assert(info->flags & SIM_OP_VALID);
	assert(packet->payload_bytes <= SIM_PATH_MTU_MAX);

	at = put_bth(at, packet, pad_bytes);
	at = put_extensions(at, packet, info->flags);
	return put_payload(at, packet, copy, pad_bytes);
}

/* The length is in words, from the LRH to the ICRC. */
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

static size_t encode_infiniband(const struct sim_packet *packet, const struct sim_route *route,
				sim_copy_fn *copy, uint8_t *frame)
{
	const size_t transport_bytes = transport_bytes_of(packet);
	const size_t length_bytes = sim_route_bytes(route) + transport_bytes;
	uint8_t *at = put_lrh(frame, route, length_bytes);

	if (route->has_grh)
		at = put_ipv6(at, route, GRH_NEXT_BTH, transport_bytes);
	at = put_transport(at, packet, copy);
	sim_store_le32(at, sim_icrc_infiniband(frame, length_bytes));
	at += ICRC_BYTES;
	sim_store_le16(at, sim_vcrc(frame, length_bytes));
	return length_bytes + VCRC_BYTES;
}

static size_t encode_roce_v1(const struct sim_packet *packet, const struct sim_route *route,
			     sim_copy_fn *copy, uint8_t *frame)
{
	const size_t transport_bytes = transport_bytes_of(packet);
	uint8_t *grh = put_ethernet(frame, route, ETHERTYPE_ROCE_V1);
	uint8_t *at = put_ipv6(grh, route, GRH_NEXT_BTH, transport_bytes);

	at = put_transport(at, packet, copy);
	sim_store_le32(at, sim_icrc_roce_v1(grh, GRH_BYTES + transport_bytes));
	return (size_t)(at + ICRC_BYTES - frame);
}

static size_t encode_roce_v2(const struct sim_packet *packet, const struct sim_route *route,
			     sim_copy_fn *copy, uint8_t *frame)
{
	const bool ipv4 = sim_gid_is_ipv4(route->source_gid);
	const size_t udp_bytes = UDP_BYTES + transport_bytes_of(packet);
	uint8_t *ip = frame + ETHERNET_BYTES;
	uint8_t *at;

	put_ethernet(frame, route, ipv4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	at = ipv4 ? put_ipv4(ip, route, IPV4_BYTES + udp_bytes)
		  : put_ipv6(ip, route, PROTOCOL_UDP, udp_bytes);
	at = put_udp(at, route, udp_bytes);
	at = put_transport(at, packet, copy);
	sim_store_le32(at, sim_icrc(ip, (size_t)(at + ICRC_BYTES - ip)));
	at += ICRC_BYTES;
	/* After the ICRC: the checksum covers it, and the ICRC takes the checksum as ones. */
	if (!ipv4 && !route->udp_checksum_given)
		put_udp_checksum_ipv6(ip, udp_bytes);
	return (size_t)(at - frame);
}

size_t sim_packet_encode(const struct sim_packet *packet, const struct sim_route *route,
			 sim_copy_fn *copy, uint8_t *frame)
{
	if (route->infiniband)
		return encode_infiniband(packet, route, copy, frame);
	if (route->roce_v1)
		return encode_roce_v1(packet, route, copy, frame);
	return encode_roce_v2(packet, route, copy, frame);
}

/* What is left to read. */
struct reader {
	const uint8_t *at;
	size_t left_bytes;
};

/* The next bytes, or NULL where there are fewer. */
static const uint8_t *take(struct reader *reader, size_t length_bytes)
{
	const uint8_t *at = reader->at;

	if (reader->left_bytes < length_bytes)
		return NULL;
	reader->at += length_bytes;
	reader->left_bytes -= length_bytes;
	return at;
}

/* Leaves in the reader what the IP header says follows it: a short frame has Ethernet's padding. */
static enum sim_decode limit(struct reader *reader, size_t length_bytes)
{
	if (reader->left_bytes < length_bytes)
		return SIM_DECODE_TRUNCATED;
	reader->left_bytes = length_bytes;
	return SIM_DECODE_OK;
}

static enum sim_decode get_ipv4(struct reader *reader, struct sim_route *route)
{
	const uint8_t *ip = take(reader, IPV4_BYTES);

	if (!ip)
		return SIM_DECODE_TRUNCATED;
	if (ip[0] != 0x45 || ip[9] != PROTOCOL_UDP ||
	    checksum_end(checksum_add(0, ip, IPV4_BYTES)) != 0)
		return SIM_DECODE_NOT_ROCE;

	route->traffic_class = ip[1];
	route->ip_id = sim_load_be16(ip + 4);
	route->ip_fragment = sim_load_be16(ip + 6);
	route->hop_limit = ip[8];
	memcpy(route->source_gid, ipv4_mapped, sizeof(ipv4_mapped));
	memcpy(route->source_gid + 12, ip + 12, 4);
	memcpy(route->dest_gid, ipv4_mapped, sizeof(ipv4_mapped));
	memcpy(route->dest_gid + 12, ip + 16, 4);
	if (route->ip_fragment & IPV4_FRAGMENTED)
		return SIM_DECODE_NOT_ROCE;
	if (sim_load_be16(ip + 2) < IPV4_BYTES)
		return SIM_DECODE_TRUNCATED;
	return limit(reader, sim_load_be16(ip + 2) - IPV4_BYTES);
}

static void get_ipv6_fields(const uint8_t *ip, struct sim_route *route)
{
	route->traffic_class = (uint8_t)(sim_load_be32(ip) >> 20);
	route->flow_label = sim_load_be32(ip) & 0xfffff;
	route->hop_limit = ip[7];
	memcpy(route->source_gid, ip + 8, 16);
	memcpy(route->dest_gid, ip + 24, 16);
}

static enum sim_decode get_ipv6(struct reader *reader, struct sim_route *route)
{
	const uint8_t *ip = take(reader, IPV6_BYTES);

	if (!ip)
		return SIM_DECODE_TRUNCATED;
	if (ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP)
		return SIM_DECODE_NOT_ROCE;
	get_ipv6_fields(ip, route);
	return limit(reader, sim_load_be16(ip + 4));
}

/* Leaves in the reader what stands between the LRH and the VCRC. */
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

static enum sim_decode get_grh(struct reader *reader, struct sim_route *route)
{
	const uint8_t *grh = take(reader, GRH_BYTES);

	if (!grh)
		return SIM_DECODE_TRUNCATED;
	get_ipv6_fields(grh, route);
	if (grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_BTH)
		return SIM_DECODE_NOT_INFINIBAND;
	if (sim_load_be16(grh + 4) > reader->left_bytes)
		return SIM_DECODE_TRUNCATED;
	if (sim_load_be16(grh + 4) < reader->left_bytes)
		return SIM_DECODE_NOT_INFINIBAND;
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

/* The GRH of RoCE v1: a short frame has Ethernet's padding behind what it covers. */
static enum sim_decode get_roce_v1(struct reader *reader, struct sim_route *route)
{
	const uint8_t *grh = take(reader, GRH_BYTES);

	route->roce_v1 = true;
	if (!grh)
		return SIM_DECODE_TRUNCATED;
	if (grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_BTH)
		return SIM_DECODE_NOT_ROCE;
	get_ipv6_fields(grh, route);
	return limit(reader, sim_load_be16(grh + 4));
}

/* To the BTH. */
static enum sim_decode get_network(struct reader *reader, struct sim_route *route)
{
	enum sim_decode result;

	const uint8_t *ethernet = take(reader, ETHERNET_BYTES);

	if (!ethernet)
		return SIM_DECODE_TRUNCATED;
	memcpy(route->dest_mac, ethernet, 6);
	memcpy(route->source_mac, ethernet + 6, 6);
	switch (sim_load_be16(ethernet + 12)) {
	case ETHERTYPE_ROCE_V1:
		return get_roce_v1(reader, route);
	case ETHERTYPE_IPV4:
		result = get_ipv4(reader, route);
		break;
	case ETHERTYPE_IPV6:
		result = get_ipv6(reader, route);
		break;
	default:
		return SIM_DECODE_NOT_ROCE;
	}
	return result == SIM_DECODE_OK ? get_udp(reader, route) : result;
}

static enum sim_decode get_bth(struct reader *reader, struct sim_packet *packet,
			       uint32_t *pad_bytes)
{
	const uint8_t *bth = take(reader, BTH_BYTES);

	if (!bth)
		return SIM_DECODE_TRUNCATED;
	packet->opcode = bth[0];
	packet->flags = (bth[1] & BTH_SOLICITED ? SIM_PACKET_SOLICITED : 0) |
			(bth[1] & BTH_MIGRATED ? SIM_PACKET_MIGRATED : 0) |
			(bth[4] & BTH_FECN ? SIM_PACKET_FECN : 0) |
			(bth[4] & BTH_BECN ? SIM_PACKET_BECN : 0) |
			(bth[8] & BTH_ACK_REQUEST ? SIM_PACKET_ACK_REQUEST : 0);
	*pad_bytes = bth[1] >> BTH_PAD_SHIFT & BTH_PAD;
	packet->pkey = sim_load_be16(bth + 2);
	packet->dest_qpn = sim_load_be24(bth + 5);
	packet->psn = sim_load_be24(bth + 9);
	if (bth[1] & BTH_VERSION)
		return SIM_DECODE_BAD_VERSION;
	if (!(sim_opcodes[bth[0]].flags & SIM_OP_VALID))
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

/* What is left is the payload, its pad and the ICRC. */
static enum sim_decode get_payload(struct reader *reader, struct sim_packet *packet,
				   struct sim_span *span, uint32_t pad_bytes)
{
	size_t padded_bytes;

	if (reader->left_bytes < ICRC_BYTES)
		return SIM_DECODE_TRUNCATED;
	padded_bytes = reader->left_bytes - ICRC_BYTES;
	if (padded_bytes & 3 || (pad_bytes && padded_bytes <= pad_bytes))
		return SIM_DECODE_BAD_PAD;

	packet->payload_bytes = (uint32_t)(padded_bytes - pad_bytes);
	*span = (struct sim_span){reader->at, packet->payload_bytes};
	packet->spans = span;
	packet->span_count = packet->payload_bytes > 0;
	take(reader, padded_bytes);
	return SIM_DECODE_OK;
}

/* From the BTH on; leaves the reader at the ICRC. */
static enum sim_decode get_transport(struct reader *reader, struct sim_packet *packet,
				     struct sim_span *span)
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
	get_extensions(extensions, packet, sim_opcodes[packet->opcode].flags);
	return get_payload(reader, packet, span, pad_bytes);
}

enum sim_decode sim_packet_decode(const uint8_t *frame, size_t frame_bytes,
				  struct sim_packet *packet, struct sim_span *span,
				  struct sim_route *route)
{
	struct reader reader = {frame, frame_bytes};
	enum sim_decode result;
	size_t length_bytes;
	uint32_t icrc;

	memset(packet, 0, sizeof(*packet));
	memset(span, 0, sizeof(*span));
	memset(route, 0, sizeof(*route));

	result = get_network(&reader, route);
	if (result == SIM_DECODE_OK)
		result = get_transport(&reader, packet, span);
	if (result != SIM_DECODE_OK)
		return result;

	length_bytes = (size_t)(reader.at - frame) - ETHERNET_BYTES + ICRC_BYTES;
	icrc = route->roce_v1 ? sim_icrc_roce_v1(frame + ETHERNET_BYTES, length_bytes)
			      : sim_icrc(frame + ETHERNET_BYTES, length_bytes);
	return icrc == sim_load_le32(reader.at) ? SIM_DECODE_OK : SIM_DECODE_BAD_ICRC;
}

enum sim_decode sim_packet_decode_infiniband(const uint8_t *frame, size_t frame_bytes,
					     struct sim_packet *packet, struct sim_span *span,
					     struct sim_route *route)
{
	struct reader reader = {frame, frame_bytes};
	enum sim_decode result;
	size_t length_bytes;

	memset(packet, 0, sizeof(*packet));
	memset(span, 0, sizeof(*span));
	memset(route, 0, sizeof(*route));

	result = get_lrh(&reader, route);
	if (result == SIM_DECODE_OK && route->has_grh)
		result = get_grh(&reader, route);
	if (result == SIM_DECODE_OK)
		result = get_transport(&reader, packet, span);
	if (result != SIM_DECODE_OK)
		return result;

	length_bytes = frame_bytes - VCRC_BYTES;
	if (sim_icrc_infiniband(frame, length_bytes) != sim_load_le32(reader.at))
		return SIM_DECODE_BAD_ICRC;
	if (sim_vcrc(frame, length_bytes) != sim_load_le16(frame + length_bytes))
		return SIM_DECODE_BAD_VCRC;
	return SIM_DECODE_OK;
}

const char *sim_decode_str(enum sim_decode result)
{
	static const char *const names[] = {
		[SIM_DECODE_OK] = "ok",
		[SIM_DECODE_TRUNCATED] = "truncated",
		[SIM_DECODE_NOT_ROCE] = "not RoCE",
		[SIM_DECODE_NOT_INFINIBAND] = "not InfiniBand transport",
		[SIM_DECODE_BAD_VERSION] = "bad transport header version",
		[SIM_DECODE_BAD_OPCODE] = "reserved opcode",
		[SIM_DECODE_BAD_PAD] = "bad pad count",
		[SIM_DECODE_BAD_ICRC] = "bad ICRC",
		[SIM_DECODE_BAD_VCRC] = "bad VCRC",
	};

	return (size_t)result < sizeof(names) / sizeof(names[0]) ? names[result] : "unknown";
}

void sim_packet_grh(const struct sim_packet *packet, const struct sim_route *route, uint8_t grh[40])
{
	const size_t udp_bytes = UDP_BYTES + transport_bytes_of(packet);

	if (route->infiniband) {
		memset(grh, GRH_UNDEFINED, GRH_BYTES);
		if (route->has_grh)
			put_ipv6(grh, route, GRH_NEXT_BTH, transport_bytes_of(packet));
		return;
	}
	if (route->roce_v1) {
		put_ipv6(grh, route, GRH_NEXT_BTH, transport_bytes_of(packet));
		return;
	}
	if (!sim_gid_is_ipv4(route->source_gid)) {
		put_ipv6(grh, route, PROTOCOL_UDP, udp_bytes);
		return;
	}
	memset(grh, GRH_UNDEFINED, IPV6_BYTES - IPV4_BYTES);
	put_ipv4(grh + IPV6_BYTES - IPV4_BYTES, route, IPV4_BYTES + udp_bytes);
}
