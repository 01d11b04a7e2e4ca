/* SPDX-License-Identifier: MIT */
#include "sim/wire/icrc.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>

enum {
	ONES_BYTES = 8, /* in place of the InfiniBand link header */
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	LRH_BYTES = 8,
	LRH_NEXT = 0x3,
	LRH_NEXT_GLOBAL = 3, /* a GRH follows */
};

/*
 * The fields that a router may change, set to ones: as Linux drivers/infiniband/sw/rxe/rxe_icrc.c
 * does it, and as the captures in test/data show.
 */
static void mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff;  /* type of service */
	ip[8] = 0xff;  /* time to live */
	ip[10] = 0xff; /* header checksum */
	ip[11] = 0xff;
}

static void mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f; /* traffic class and flow label */
	ip[1] = 0xff;
	ip[2] = 0xff;
	ip[3] = 0xff;
	ip[7] = 0xff; /* hop limit */
}

uint32_t sim_icrc(const uint8_t *datagram, size_t length_bytes)
{
	uint8_t masked[ONES_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES];
	const bool ipv4 = datagram[0] >> 4 == 4;
	const size_t ip_bytes = ipv4 ? IPV4_BYTES : IPV6_BYTES;
	const size_t head_bytes = ip_bytes + UDP_BYTES + BTH_BYTES;
	uint8_t *ip = masked + ONES_BYTES;
	uint8_t *udp = ip + ip_bytes;
	uint8_t *bth = udp + UDP_BYTES;
	uint32_t crc;

	assert(length_bytes >= head_bytes + ICRC_BYTES);

	memset(masked, 0xff, ONES_BYTES);
	memcpy(ip, datagram, head_bytes);
	if (ipv4)
		mask_ipv4(ip);
	else
		mask_ipv6(ip);
	udp[6] = 0xff; /* checksum */
	udp[7] = 0xff;
	bth[4] = 0xff; /* FECN, BECN and six reserved bits */

	crc = libdeflate_crc32(0, masked, ONES_BYTES + head_bytes);
	return libdeflate_crc32(crc, datagram + head_bytes, length_bytes - head_bytes - ICRC_BYTES);
}

/* The CRC of a packet whose first bytes, masked, end with the BTH; rest is what follows them. */
static uint32_t finish(uint8_t *masked, size_t head_bytes, const uint8_t *rest, size_t rest_bytes)
{
	masked[head_bytes - BTH_BYTES + 4] = 0xff; /* FECN, BECN and six reserved bits */
	return libdeflate_crc32(libdeflate_crc32(0, masked, head_bytes), rest, rest_bytes);
}

/*
 * What an InfiniBand packet with a GRH has, whose LRH counts as ones (below): that these ones go
 * before RoCE v1's GRH, too, as Linux drivers/infiniband/sw/rxe/rxe_icrc.c puts them before RoCE
 * v2's IP header, is unsourced.
 */
uint32_t sim_icrc_roce_v1(const uint8_t *packet, size_t length_bytes)
{
	uint8_t masked[ONES_BYTES + IPV6_BYTES + BTH_BYTES];
	const size_t head_bytes = IPV6_BYTES + BTH_BYTES;

	assert(length_bytes >= head_bytes + ICRC_BYTES);

	memset(masked, 0xff, ONES_BYTES);
	memcpy(masked + ONES_BYTES, packet, head_bytes);
	mask_ipv6(masked + ONES_BYTES);
	return finish(masked, sizeof(masked), packet + head_bytes,
		      length_bytes - head_bytes - ICRC_BYTES);
}

/*
 * As the specification's sample packet has it, quoted on linux-rdma (Message-ID
 * 20250129185115.GA2619178@google.com) and in Mellanox VAPI's packet generator (mpga), which also
 * masks a packet with a GRH: the GRH then has IPv6's form, and its LRH counts as ones.
 */
uint32_t sim_icrc_infiniband(const uint8_t *packet, size_t length_bytes)
{
	uint8_t masked[LRH_BYTES + IPV6_BYTES + BTH_BYTES];
	const bool global = (packet[1] & LRH_NEXT) == LRH_NEXT_GLOBAL;
	const size_t head_bytes = LRH_BYTES + (global ? IPV6_BYTES : 0) + BTH_BYTES;

	assert(length_bytes >= head_bytes + ICRC_BYTES);

	memcpy(masked, packet, head_bytes);
	masked[0] |= 0xf0; /* virtual lane */
	if (global) {
		memset(masked, 0xff, LRH_BYTES);
		mask_ipv6(masked + LRH_BYTES);
	}
	return finish(masked, head_bytes, packet + head_bytes,
		      length_bytes - head_bytes - ICRC_BYTES);
}

/* CRC-16 of polynomial 0x100b, low bit first: 0xd008. As in Mellanox VAPI's mpga and in
 * Endace's DAG library, which agree; both begin with ones and invert the result. */
static const uint16_t vcrc_table[256] = {
	0x0000, 0x1ba1, 0x3742, 0x2ce3, 0x6e84, 0x7525, 0x59c6, 0x4267, 0xdd08, 0xc6a9, 0xea4a,
	0xf1eb, 0xb38c, 0xa82d, 0x84ce, 0x9f6f, 0x1a01, 0x01a0, 0x2d43, 0x36e2, 0x7485, 0x6f24,
	0x43c7, 0x5866, 0xc709, 0xdca8, 0xf04b, 0xebea, 0xa98d, 0xb22c, 0x9ecf, 0x856e, 0x3402,
	0x2fa3, 0x0340, 0x18e1, 0x5a86, 0x4127, 0x6dc4, 0x7665, 0xe90a, 0xf2ab, 0xde48, 0xc5e9,
	0x878e, 0x9c2f, 0xb0cc, 0xab6d, 0x2e03, 0x35a2, 0x1941, 0x02e0, 0x4087, 0x5b26, 0x77c5,
	0x6c64, 0xf30b, 0xe8aa, 0xc449, 0xdfe8, 0x9d8f, 0x862e, 0xaacd, 0xb16c, 0x6804, 0x73a5,
	0x5f46, 0x44e7, 0x0680, 0x1d21, 0x31c2, 0x2a63, 0xb50c, 0xaead, 0x824e, 0x99ef, 0xdb88,
	0xc029, 0xecca, 0xf76b, 0x7205, 0x69a4, 0x4547, 0x5ee6, 0x1c81, 0x0720, 0x2bc3, 0x3062,
	0xaf0d, 0xb4ac, 0x984f, 0x83ee, 0xc189, 0xda28, 0xf6cb, 0xed6a, 0x5c06, 0x47a7, 0x6b44,
	0x70e5, 0x3282, 0x2923, 0x05c0, 0x1e61, 0x810e, 0x9aaf, 0xb64c, 0xaded, 0xef8a, 0xf42b,
	0xd8c8, 0xc369, 0x4607, 0x5da6, 0x7145, 0x6ae4, 0x2883, 0x3322, 0x1fc1, 0x0460, 0x9b0f,
	0x80ae, 0xac4d, 0xb7ec, 0xf58b, 0xee2a, 0xc2c9, 0xd968, 0xd008, 0xcba9, 0xe74a, 0xfceb,
	0xbe8c, 0xa52d, 0x89ce, 0x926f, 0x0d00, 0x16a1, 0x3a42, 0x21e3, 0x6384, 0x7825, 0x54c6,
	0x4f67, 0xca09, 0xd1a8, 0xfd4b, 0xe6ea, 0xa48d, 0xbf2c, 0x93cf, 0x886e, 0x1701, 0x0ca0,
	0x2043, 0x3be2, 0x7985, 0x6224, 0x4ec7, 0x5566, 0xe40a, 0xffab, 0xd348, 0xc8e9, 0x8a8e,
	0x912f, 0xbdcc, 0xa66d, 0x3902, 0x22a3, 0x0e40, 0x15e1, 0x5786, 0x4c27, 0x60c4, 0x7b65,
	0xfe0b, 0xe5aa, 0xc949, 0xd2e8, 0x908f, 0x8b2e, 0xa7cd, 0xbc6c, 0x2303, 0x38a2, 0x1441,
	0x0fe0, 0x4d87, 0x5626, 0x7ac5, 0x6164, 0xb80c, 0xa3ad, 0x8f4e, 0x94ef, 0xd688, 0xcd29,
	0xe1ca, 0xfa6b, 0x6504, 0x7ea5, 0x5246, 0x49e7, 0x0b80, 0x1021, 0x3cc2, 0x2763, 0xa20d,
	0xb9ac, 0x954f, 0x8eee, 0xcc89, 0xd728, 0xfbcb, 0xe06a, 0x7f05, 0x64a4, 0x4847, 0x53e6,
	0x1181, 0x0a20, 0x26c3, 0x3d62, 0x8c0e, 0x97af, 0xbb4c, 0xa0ed, 0xe28a, 0xf92b, 0xd5c8,
	0xce69, 0x5106, 0x4aa7, 0x6644, 0x7de5, 0x3f82, 0x2423, 0x08c0, 0x1361, 0x960f, 0x8dae,
	0xa14d, 0xbaec, 0xf88b, 0xe32a, 0xcfc9, 0xd468, 0x4b07, 0x50a6, 0x7c45, 0x67e4, 0x2583,
	0x3e22, 0x12c1, 0x0960,
};

uint16_t sim_vcrc(const uint8_t *packet, size_t length_bytes)
{
	uint16_t crc = 0xffff;

	while (length_bytes--)
		crc = (uint16_t)(crc >> 8 ^ vcrc_table[(crc ^ *packet++) & 0xff]);
	return (uint16_t)~crc;
}
