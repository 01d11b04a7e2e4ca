/* SPDX-License-Identifier: MIT */
#include "sim/wire/icrc.h"

#include "sim/wire/bytes.h"
#include "sim/wire/packet_layout.h"

#include <assert.h>
#include <libdeflate.h>
#include <string.h>

/* The ones that precede an IP header or a GRH, as if they were a masked LRH. */
enum { ONES_BYTES = LRH_BYTES };

/*
 * The mask_ functions set the fields that a switch or router may change to ones, as Linux
 * drivers/infiniband/sw/rxe/rxe_icrc.c does and as the captures in test/data show.
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

/* Masks the BTH that ends `masked`, and returns the CRC of `masked` and of `rest` behind it. */
static uint32_t finish(uint8_t *masked, size_t masked_bytes, const uint8_t *rest, size_t rest_bytes)
{
	masked[masked_bytes - BTH_BYTES + 4] = 0xff; /* FECN, BECN and six reserved bits */
	return libdeflate_crc32(libdeflate_crc32(0, masked, masked_bytes), rest, rest_bytes);
}

/* The ICRC of a packet from its IP header or GRH to its ICRC; udp_bytes is 0 behind a GRH. */
static uint32_t icrc_of_ip(const uint8_t *packet, size_t length_bytes, size_t ip_bytes,
			   size_t udp_bytes)
{
	uint8_t masked[ONES_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES];
	uint8_t *ip = masked + ONES_BYTES;
	const size_t head_bytes = ip_bytes + udp_bytes + BTH_BYTES;

	assert(length_bytes >= head_bytes + ICRC_BYTES);

	memset(masked, 0xff, ONES_BYTES);
	memcpy(ip, packet, head_bytes);
	if (ip_bytes == IPV4_BYTES)
		mask_ipv4(ip);
	else
		mask_ipv6(ip);
	if (udp_bytes)
		memset(ip + ip_bytes + 6, 0xff, 2); /* the UDP checksum */
	return finish(masked, ONES_BYTES + head_bytes, packet + head_bytes,
		      length_bytes - head_bytes - ICRC_BYTES);
}

uint32_t sim_icrc(const uint8_t *packet, size_t length_bytes)
{
	return icrc_of_ip(packet, length_bytes, packet[0] >> 4 == 4 ? IPV4_BYTES : IPV6_BYTES,
			  UDP_BYTES);
}

/*
 * Unsourced: eight bytes of ones precede RoCE v1's GRH as they precede RoCE v2's IP header in Linux
 * drivers/infiniband/sw/rxe/rxe_icrc.c. This equals an InfiniBand packet with a GRH.
 */
uint32_t sim_icrc_roce_v1(const uint8_t *packet, size_t length_bytes)
{
	return icrc_of_ip(packet, length_bytes, GRH_BYTES, 0);
}

/*
 * Sources: the specification's sample packet, quoted on linux-rdma (Message-ID
 * 20250129185115.GA2619178@google.com), and Mellanox VAPI's packet generator (mpga), which also
 * masks a packet with a GRH: the GRH as an IPv6 header, and the whole LRH.
 */
uint32_t sim_icrc_infiniband(const uint8_t *packet, size_t length_bytes)
{
	uint8_t masked[LRH_BYTES + BTH_BYTES];

	if ((packet[1] & LRH_NEXT) == LRH_NEXT_GLOBAL)
		return icrc_of_ip(packet + LRH_BYTES, length_bytes - LRH_BYTES, GRH_BYTES, 0);
	assert(length_bytes >= sizeof(masked) + ICRC_BYTES);

	memcpy(masked, packet, sizeof(masked));
	masked[0] |= 0xf0; /* virtual lane */
	return finish(masked, sizeof(masked), packet + sizeof(masked),
		      length_bytes - sizeof(masked) - ICRC_BYTES);
}

/*
 * A CRC is linear. The difference of two ICRCs is the CRC, begun with 0 and not inverted, of the
 * difference of the two packets: here the identification, followed by zeros. A step over a zero byte
 * multiplies the CRC by x^8 modulo the polynomial of CRC-32, so the way back over 2^k zero bytes is a
 * multiplication by row k of this table: x^-8, squared k times. As in the CRC, the highest bit is the
 * coefficient of x^0.
 */
static const uint32_t steps_back[] = {
	0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12,
	0xba340226, 0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c,
};

#define CRC32_POLYNOMIAL 0xedb88320u

/* Returns the product of two polynomials modulo that of CRC-32. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a; a <<= 1) {
		product ^= b & -(a >> 31);
		b = b >> 1 ^ (CRC32_POLYNOMIAL & -(b & 1));
	}
	return product;
}

bool sim_icrc_identify(const uint8_t *packet, size_t length_bytes, uint16_t *identification)
{
	const uint32_t icrc = sim_load_le32(packet + length_bytes - ICRC_BYTES);
	uint32_t difference = icrc ^ sim_icrc(packet, length_bytes);
	/* The bytes from the identification to the ICRC. */
	size_t behind_bytes = length_bytes - ICRC_BYTES - IPV4_ID;

	*identification = 0;
	if (!difference)
		return true;
	assert(behind_bytes < (size_t)1 << sizeof(steps_back) / sizeof(steps_back[0]));
	for (unsigned int k = 0; behind_bytes; k++, behind_bytes >>= 1)
		if (behind_bytes & 1)
			difference = multiply(difference, steps_back[k]);
	/* The CRC takes in a byte by its low eight bits: what is left are the two bytes in order. */
	if (difference >> 16)
		return false;
	*identification = (uint16_t)(difference << 8 | difference >> 8);
	return true;
}

/*
 * CRC-16 of polynomial 0x100b, low bit first (0xd008), four bits at a time. Mellanox VAPI's mpga
 * and Endace's DAG library agree: both begin with ones and invert the result.
 */
static const uint16_t vcrc_table[16] = {
	0x0000, 0x1a01, 0x3402, 0x2e03, 0x6804, 0x7205, 0x5c06, 0x4607,
	0xd008, 0xca09, 0xe40a, 0xfe0b, 0xb80c, 0xa20d, 0x8c0e, 0x960f,
};

uint16_t sim_vcrc(const uint8_t *packet, size_t length_bytes)
{
	uint16_t crc = 0xffff;

	for (; length_bytes; length_bytes--) {
		crc ^= *packet++;
		crc = (uint16_t)(crc >> 4 ^ vcrc_table[crc & 0xf]);
		crc = (uint16_t)(crc >> 4 ^ vcrc_table[crc & 0xf]);
	}
	return (uint16_t)~crc;
}
