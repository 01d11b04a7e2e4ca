/* SPDX-License-Identifier: MIT */
#include "sim/wire/packet.h"

#include <string.h>

enum { PORT_DYNAMIC = 0xc000 };

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
