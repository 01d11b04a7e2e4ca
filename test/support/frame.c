/* SPDX-License-Identifier: MIT */
/*
 * Layouts: Linux include/rdma/ib_pack.h and drivers/infiniband/sw/rxe/rxe_hdr.h; which headers an
 * opcode has: drivers/infiniband/sw/rxe/rxe_opcode.c; the bytes that the ICRC takes as ones:
 * drivers/infiniband/sw/rxe/rxe_icrc.c.
 */
#include "test/support/frame.h"

#include <verbena/sim.h>

enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	LRH_BYTES = 8,
	VCRC_BYTES = 2,
	ROCE_PORT = 4791,
};

/* The extension headers, in their order on the wire. */
enum {
	DETH = 1 << 0,
	XRCETH = 1 << 1,
	RETH = 1 << 2,
	ATOMICETH = 1 << 3,
	AETH = 1 << 4,
	ATOMICACKETH = 1 << 5,
	IMMDT = 1 << 6,
	IETH = 1 << 7,
	ANSWER = 1 << 8,
};

/* By the low five bits of the opcode. */
static const uint16_t headers[32] = {
	[0x03] = IMMDT,		[0x05] = IMMDT,
	[0x06] = RETH,		[0x09] = IMMDT,
	[0x0a] = RETH,		[0x0b] = RETH | IMMDT,
	[0x0c] = RETH,		[0x0d] = AETH | ANSWER,
	[0x0e] = ANSWER,	[0x0f] = AETH | ANSWER,
	[0x10] = AETH | ANSWER, [0x11] = AETH | ANSWER,
	[0x13] = ATOMICETH,	[0x12] = AETH | ATOMICACKETH | ANSWER,
	[0x14] = ATOMICETH,	[0x16] = IETH,
	[0x17] = IETH,		[0x1d] = RETH,
};

static uint8_t *put(uint8_t *at, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = bytes; i > 0; value >>= 8)
		at[--i] = (uint8_t)value;
	return at + bytes;
}

static unsigned int headers_of(uint8_t opcode)
{
	const unsigned int own = headers[opcode & 0x1f];
	const uint8_t transport = opcode & 0xe0;

	if (transport == TS_UD)
		return own | DETH;
	return transport == TS_XRC && !(own & ANSWER) ? own | XRCETH : own;
}

static uint8_t *put_extensions(uint8_t *at, const struct ts_packet *packet)
{
	const unsigned int has = headers_of(packet->opcode);

	if (has & DETH) {
		at = put(at, packet->qkey, 4);
		at = put(at, packet->source_qpn, 4);
	}
	if (has & XRCETH)
		at = put(at, packet->xrc_srqn, 4);
	if (has & (RETH | ATOMICETH)) {
		at = put(at, packet->remote_addr, 8);
		at = put(at, packet->rkey, 4);
	}
	if (has & RETH)
		at = put(at, packet->dma_bytes, 4);
	if (has & ATOMICETH) {
		at = put(at, packet->swap_add, 8);
		at = put(at, packet->compare, 8);
	}
	if (has & AETH)
		at = put(at, (uint64_t)packet->syndrome << 24 | packet->msn, 4);
	if (has & ATOMICACKETH)
		at = put(at, packet->original, 8);
	if (has & IMMDT)
		at = put(at, packet->imm, 4);
	if (has & IETH)
		at = put(at, packet->rkey, 4);
	return at;
}

/* Writes from the BTH to the pad. Returns how many bytes. */
static size_t put_transport(uint8_t *bth, const struct ts_end *to, const struct ts_packet *packet)
{
	const unsigned int pad = -packet->payload_bytes & 3;
	const unsigned int told_pad = (pad + packet->more_pad) & 3;
	const uint32_t qpn = packet->dest_qpn ? packet->dest_qpn : to->qp->qp_num;
	uint8_t *at = bth;

	at = put(at, packet->opcode, 1);
	at = put(at, 0x40u | told_pad << 4 | packet->version, 1); /* MigReq */
	at = put(at, packet->pkey ? packet->pkey : 0xffff, 2);
	at = put(at, qpn, 4);
	at = put(at, (packet->ack_request ? 0x80000000u : 0) | (packet->psn & TS_PSN_MASK), 4);
	at = put_extensions(at, packet);
	ts_fill(at, packet->payload_bytes, 1);
	memset(at + packet->payload_bytes, 0, pad);
	return (size_t)(at - bth) + packet->payload_bytes + pad - packet->cut_bytes;
}

/* CRC-32 of Ethernet, low bit first. */
static uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t length_bytes)
{
	while (length_bytes--) {
		crc ^= *bytes++;
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return crc;
}

static uint16_t vcrc(const uint8_t *lrh, size_t length_bytes)
{
	uint16_t crc = 0xffff;

	while (length_bytes--) {
		crc ^= *lrh++;
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xd008 : crc >> 1);
	}
	return (uint16_t)~crc;
}

/* The ICRC stands with its low byte first. masked has the headers up to the BTH, with ones. */
static void put_icrc(uint8_t *at, uint8_t *masked, size_t masked_bytes, const uint8_t *bth,
		     const struct ts_packet *packet)
{
	const size_t head_bytes = at - bth < BTH_BYTES ? (size_t)(at - bth) : BTH_BYTES;
	uint8_t head[BTH_BYTES];
	uint32_t crc;

	memcpy(head, bth, head_bytes);
	head[4] = 0xff; /* FECN, BECN */
	crc = crc32(UINT32_MAX, masked, masked_bytes);
	crc = crc32(crc, head, head_bytes);
	crc = ~crc32(crc, bth + head_bytes, (size_t)(at - bth) - head_bytes);
	if (packet->wrong_icrc)
		crc = ~crc;
	for (unsigned int i = 0; i < ICRC_BYTES; i++)
		at[i] = (uint8_t)(crc >> 8 * i);
}

static uint16_t ip_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/* Writes an IP header. masked gets the same with ones where the ICRC has them. Returns its length. */
static size_t put_ip(uint8_t *ip, uint8_t *masked, const union ibv_gid *source,
		     const union ibv_gid *dest, size_t udp_bytes)
{
	if (!ts_gid_is_ipv4(source)) {
		put(put(put(put(ip, 6ull << 28, 4), udp_bytes, 2), 17, 1), 64, 1);
		memcpy(ip + 8, source->raw, 16);
		memcpy(ip + 24, dest->raw, 16);
		memcpy(masked, ip, IPV6_BYTES);
		masked[0] |= 0x0f;
		memset(masked + 1, 0xff, 3);
		masked[7] = 0xff;
		return IPV6_BYTES;
	}
	memset(ip, 0, IPV4_BYTES);
	ip[0] = 0x45;
	put(ip + 2, IPV4_BYTES + udp_bytes, 2);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, source->raw + 12, 4);
	memcpy(ip + 16, dest->raw + 12, 4);
	put(ip + 10, ip_checksum(ip), 2);
	memcpy(masked, ip, IPV4_BYTES);
	masked[1] = masked[8] = masked[10] = masked[11] = 0xff;
	return IPV4_BYTES;
}

static size_t ethernet_frame(const struct ts_end *from, const struct ts_end *to,
			     const struct ts_packet *packet, uint8_t *frame)
{
	const union ibv_gid *source = packet->source ? packet->source : &from->node->gid;
	const union ibv_gid *dest = packet->dest ? packet->dest : &to->node->gid;
	const size_t ip_bytes = ts_gid_is_ipv4(source) ? IPV4_BYTES : IPV6_BYTES;
	uint8_t *ip = frame + ETHERNET_BYTES, *udp = ip + ip_bytes, *bth = udp + UDP_BYTES;
	const size_t bytes = put_transport(bth, to, packet);
	const size_t udp_bytes = UDP_BYTES + bytes + ICRC_BYTES;
	uint8_t masked[8 + IPV6_BYTES + UDP_BYTES];

	memset(frame, 0x02, 12); /* the MACs of nobody */
	put(frame + 12, ip_bytes == IPV4_BYTES ? 0x0800 : 0x86dd, 2);
	memset(masked, 0xff, 8);
	put_ip(ip, masked + 8, source, dest, udp_bytes);
	put(put(put(put(udp, 0xc000, 2), ROCE_PORT, 2), udp_bytes, 2), 0, 2);
	memcpy(masked + 8 + ip_bytes, udp, UDP_BYTES);
	memset(masked + 8 + ip_bytes + 6, 0xff, 2);
	put_icrc(bth + bytes, masked, 8 + ip_bytes + UDP_BYTES, bth, packet);
	return (size_t)(bth - frame) + bytes + ICRC_BYTES;
}

static size_t infiniband_frame(const struct ts_end *from, const struct ts_end *to,
			       const struct ts_packet *packet, uint8_t *frame)
{
	uint8_t *bth = frame + LRH_BYTES;
	const size_t bytes = put_transport(bth, to, packet);
	const size_t length_bytes = LRH_BYTES + bytes + ICRC_BYTES;
	uint8_t masked[LRH_BYTES];
	uint16_t crc;

	put(frame, 0x0002, 2); /* no GRH */
	put(frame + 2, to->node->port_attr.lid, 2);
	put(frame + 4, length_bytes / 4, 2);
	put(frame + 6, from->node->port_attr.lid, 2);
	memcpy(masked, frame, LRH_BYTES);
	masked[0] |= 0xf0;
	put_icrc(bth + bytes, masked, LRH_BYTES, bth, packet);
	crc = vcrc(frame, length_bytes) ^ (packet->wrong_vcrc ? 1 : 0);
	frame[length_bytes] = (uint8_t)crc;
	frame[length_bytes + 1] = (uint8_t)(crc >> 8);
	return length_bytes + VCRC_BYTES;
}

size_t ts_frame(const struct ts_end *from, const struct ts_end *to, const struct ts_packet *packet,
		uint8_t frame[TS_FRAME_BYTES_MAX])
{
	return to->node->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND
		       ? infiniband_frame(from, to, packet, frame)
		       : ethernet_frame(from, to, packet, frame);
}

void ts_inject_at(struct vt_at at, const struct ts_end *from, const struct ts_end *to,
		  const struct ts_packet *packet)
{
	uint8_t frame[TS_FRAME_BYTES_MAX];
	const size_t frame_bytes = ts_frame(from, to, packet, frame);

	VT_OK_AT(to->t, at, vb_sim_inject(to->node->ctx, to->node->port, frame, frame_bytes));
}

uint64_t ts_drops(struct vt *t, struct vt_node *node, const char *cause)
{
	struct vb_sim_counters counters;
	uint64_t packets;

	if (cause) {
		VT_OK(t, vb_sim_drops(node->ctx, cause, &packets));
		return packets;
	}
	VT_OK(t, vb_sim_counters(node->ctx, &counters));
	return counters.dropped_packets;
}
