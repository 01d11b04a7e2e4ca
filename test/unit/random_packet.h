/* SPDX-License-Identifier: MIT */
/*
 * Random packets: every field of a header is random; the others are 0, as after decoding.
 */
#ifndef TEST_UNIT_RANDOM_PACKET_H
#define TEST_UNIT_RANDOM_PACKET_H

#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SEED 20261121u

#define ALL_FLAGS                                                                                \
	(SIM_PACKET_SOLICITED | SIM_PACKET_MIGRATED | SIM_PACKET_ACK_REQUEST | SIM_PACKET_FECN | \
	 SIM_PACKET_BECN)

static uint64_t random_state;
static struct sim_packet packet;
static struct sim_route route;

/* splitmix64: the same numbers on every machine. */
static inline uint64_t random_u64(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline void random_bytes(void *at, size_t length_bytes)
{
	uint8_t *bytes = at;

	while (length_bytes--)
		*bytes++ = (uint8_t)random_u64();
}

static inline void random_route(bool ipv4)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(&route, 0, sizeof(route));
	random_bytes(&route, offsetof(struct sim_route, traffic_class));
	if (ipv4) {
		memcpy(route.source_gid, mapped, sizeof(mapped));
		memcpy(route.dest_gid, mapped, sizeof(mapped));
	}
	route.traffic_class = (uint8_t)random_u64();
	route.hop_limit = (uint8_t)random_u64();
	route.udp_source_port = (uint16_t)random_u64();
	route.ip_id = ipv4 ? (uint16_t)random_u64() : 0;
	route.ip_fragment = ipv4 ? 0x4000 : 0;
	route.flow_label = ipv4 ? 0 : random_u64() & 0xfffff;
	route.udp_checksum = 0;
	route.udp_checksum_given = false;
}

/* Every field of the opcode's headers is random; the others are 0, as after decoding. */
static inline void random_packet(uint8_t opcode)
{
	const uint32_t flags = sim_opcodes[opcode].flags;

	memset(&packet, 0, sizeof(packet));
	packet.opcode = opcode;
	packet.flags = random_u64() & ALL_FLAGS;
	packet.pkey = (uint16_t)random_u64();
	packet.dest_qpn = random_u64() & 0xffffff;
	packet.psn = random_u64() & 0xffffff;
	if (flags & (SIM_OP_RETH | SIM_OP_ATOMICETH))
		packet.remote_addr = random_u64();
	if (flags & (SIM_OP_RETH | SIM_OP_ATOMICETH | SIM_OP_IETH))
		packet.rkey = (uint32_t)random_u64();
	packet.dma_bytes = flags & SIM_OP_RETH ? (uint32_t)random_u64() : 0;
	packet.swap_add = flags & SIM_OP_ATOMICETH ? random_u64() : 0;
	packet.compare = flags & SIM_OP_ATOMICETH ? random_u64() : 0;
	packet.original = flags & SIM_OP_ATOMICACKETH ? random_u64() : 0;
	packet.syndrome = flags & SIM_OP_AETH ? (uint8_t)random_u64() : 0;
	packet.msn = flags & SIM_OP_AETH ? random_u64() & 0xffffff : 0;
	packet.imm_data = flags & SIM_OP_IMMDT ? (uint32_t)random_u64() : 0;
	packet.qkey = flags & SIM_OP_DETH ? (uint32_t)random_u64() : 0;
	packet.source_qpn = flags & SIM_OP_DETH ? random_u64() & 0xffffff : 0;
	packet.xrc_srqn = flags & SIM_OP_XRCETH ? random_u64() & 0xffffff : 0;
	packet.ee_context = flags & SIM_OP_RDETH ? random_u64() & 0xffffff : 0;
}

/* Fills the fields of an LRH and, with grh, of a GRH; the others are 0, as after decoding. */
static inline void random_infiniband_route(bool grh)
{
	memset(&route, 0, sizeof(route));
	route.infiniband = true;
	route.has_grh = grh;
	route.sl = random_u64() & 0xf;
	route.slid = (uint16_t)random_u64();
	route.dlid = (uint16_t)random_u64();
	if (!grh)
		return;
	random_bytes(route.source_gid, 16);
	random_bytes(route.dest_gid, 16);
	route.traffic_class = (uint8_t)random_u64();
	route.hop_limit = (uint8_t)random_u64();
	route.flow_label = random_u64() & 0xfffff;
}

/* Fills the fields of the Ethernet header and the GRH; the others are 0, as after decoding. */
static inline void random_roce_v1_route(void)
{
	random_infiniband_route(true);
	route.infiniband = route.has_grh = false;
	route.sl = 0;
	route.slid = route.dlid = 0;
	route.roce_v1 = true;
	random_bytes(route.source_mac, 6);
	random_bytes(route.dest_mac, 6);
	/* An IPv4 address is a GID like any other here. */
	if (random_u64() & 1)
		memcpy(route.source_gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
}

#endif
