/* SPDX-License-Identifier: MIT */
#include "sim/icrc.h"
#include "unity.h"

#include <stdio.h>

/*
 * Datagrams as the kernel's SoftRoCE put them on a wire: frame 4 of each capture in test/data, an
 * RC acknowledge, from the IP header on. The last four bytes are the kernel's ICRC.
 */
static const uint8_t ipv4_ack[] = {
	0x45, 0x00, 0x00, 0x30, 0xac, 0x3d, 0x40, 0x00, 0x40, 0x11, 0x7a, 0x7b,
	0x0a, 0x01, 0x00, 0x01, 0x0a, 0x01, 0x00, 0x02, 0xf8, 0x40, 0x12, 0xb7,
	0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x43, 0x21,
	0x00, 0x00, 0x03, 0xe8, 0x1f, 0x00, 0x00, 0x01, 0x9b, 0x99, 0xae, 0x73,
};

static const uint8_t ipv6_ack[] = {
	0x60, 0x00, 0x00, 0x00, 0x00, 0x1c, 0x11, 0x40, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xfd, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xfe, 0x80,
	0x12, 0xb7, 0x00, 0x1c, 0x00, 0x00, 0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x43, 0x21,
	0x00, 0x00, 0x03, 0xe8, 0x1f, 0x00, 0x00, 0x01, 0xa8, 0x96, 0xa0, 0xba,
};

static uint8_t datagram[128];

static uint32_t stored(const uint8_t *bytes, size_t length_bytes)
{
	const uint8_t *icrc = bytes + length_bytes - 4;

	return icrc[0] | (uint32_t)icrc[1] << 8 | (uint32_t)icrc[2] << 16 | (uint32_t)icrc[3] << 24;
}

void setUp(void)
{
	memset(datagram, 0, sizeof(datagram));
}

void tearDown(void)
{
}

void test_icrc_ipv4_is_the_kernels(void)
{
	TEST_ASSERT_EQUAL_HEX32(stored(ipv4_ack, sizeof(ipv4_ack)),
				sim_icrc(ipv4_ack, sizeof(ipv4_ack)));
}

void test_icrc_ipv6_is_the_kernels(void)
{
	TEST_ASSERT_EQUAL_HEX32(stored(ipv6_ack, sizeof(ipv6_ack)),
				sim_icrc(ipv6_ack, sizeof(ipv6_ack)));
}

/*
 * Which bits count: mask[i] has the bits of byte i that a router may change. As in Linux
 * drivers/infiniband/sw/rxe/rxe_icrc.c.
 */
static void check_bits(const uint8_t *bytes, size_t length_bytes, const uint8_t *mask)
{
	const uint32_t right = sim_icrc(bytes, length_bytes);

	for (size_t bit = 0; bit < 8 * (length_bytes - 4); bit++) {
		const uint8_t one = (uint8_t)(1 << bit % 8);
		char where[32];

		if (bit / 8 == 0 && one >= 0x10)
			continue; /* the version says which header this is */
		snprintf(where, sizeof(where), "byte %zu bit %zu", bit / 8, bit % 8);
		memcpy(datagram, bytes, length_bytes);
		datagram[bit / 8] ^= one;
		if (mask[bit / 8] & one)
			TEST_ASSERT_EQUAL_HEX32_MESSAGE(right, sim_icrc(datagram, length_bytes),
							where);
		else
			TEST_ASSERT_TRUE_MESSAGE(right != sim_icrc(datagram, length_bytes), where);
	}
}

void test_icrc_ipv4_covers_what_routers_keep(void)
{
	static const uint8_t mask[sizeof(ipv4_ack)] = {
		[1] = 0xff,			  /* type of service */
		[8] = 0xff,			  /* time to live */
		[10] = 0xff,	 [11] = 0xff,	  /* header checksum */
		[20 + 6] = 0xff, [20 + 7] = 0xff, /* UDP checksum */
		[28 + 4] = 0xff,		  /* BTH: FECN, BECN, reserved */
	};

	check_bits(ipv4_ack, sizeof(ipv4_ack), mask);
}

void test_icrc_ipv6_covers_what_routers_keep(void)
{
	static const uint8_t mask[sizeof(ipv6_ack)] = {
		[0] = 0x0f,	 [1] = 0xff,
		[2] = 0xff,	 [3] = 0xff,	  /* traffic class, flow label */
		[7] = 0xff,			  /* hop limit */
		[40 + 6] = 0xff, [40 + 7] = 0xff, /* UDP checksum */
		[48 + 4] = 0xff,		  /* BTH: FECN, BECN, reserved */
	};

	check_bits(ipv6_ack, sizeof(ipv6_ack), mask);
}
