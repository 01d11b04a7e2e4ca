/* SPDX-License-Identifier: MIT */
#include "sim/icrc.h"

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
