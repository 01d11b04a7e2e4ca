/* SPDX-License-Identifier: MIT */
#include "sim/wire/icrc.h"

#include "sim/wire/bytes.h"
#include "test/unit/random_packet.h"
#include "unity.h"

#include <stdio.h>

/*
 * Datagrams that the kernel's SoftRoCE sent: frame 4 of each capture in test/data, an RC ACK, from
 * the IP header on. The last four bytes are the kernel's ICRC.
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
	random_state = SEED;
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
 * Flips each bit. The ICRC must change unless mask[i] has the bit of byte i, which a router may
 * change: Linux drivers/infiniband/sw/rxe/rxe_icrc.c.
 */
static void check_bits(const uint8_t *bytes, size_t length_bytes, const uint8_t *mask)
{
	const uint32_t right = sim_icrc(bytes, length_bytes);

	for (size_t bit = 0; bit < 8 * (length_bytes - 4); bit++) {
		const uint8_t one = (uint8_t)(1 << bit % 8);
		char where[32];

		if (bit / 8 == 0 && one >= 0x10)
			continue; /* the version decides which header this is */
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

/* --- identifications that the receiver has not seen --- */

#define PACKET_BYTES_MAX 4244

static uint8_t long_packet[PACKET_BYTES_MAX];

/* Fills long_packet with an IPv4 packet of random bytes and a right ICRC. */
static void make_packet(size_t length_bytes, uint16_t identification)
{
	random_bytes(long_packet, length_bytes);
	long_packet[0] = 0x45;
	sim_store_be16(long_packet + 4, identification);
	sim_store_le32(long_packet + length_bytes - 4, sim_icrc(long_packet, length_bytes));
}

static const size_t packet_lengths[] = {44, 48, 61, 64, 128, 301, 1072, 2096, PACKET_BYTES_MAX};

void test_identify_finds_every_identification(void)
{
	for (size_t i = 0; i < sizeof(packet_lengths) / sizeof(packet_lengths[0]); i++) {
		const size_t length = packet_lengths[i];
		uint32_t icrc, base;

		make_packet(length, 0);
		base = sim_icrc(long_packet, length);
		for (uint32_t id = 0; id <= 0xffff; id++) {
			uint16_t found = (uint16_t)~id;

			sim_store_be16(long_packet + 4, (uint16_t)id);
			icrc = id ? sim_icrc(long_packet, length) : base;
			sim_store_be16(long_packet + 4, 0);
			sim_store_le32(long_packet + length - 4, icrc);
			TEST_ASSERT_TRUE(sim_icrc_identify(long_packet, length, &found));
			TEST_ASSERT_EQUAL_HEX16(id, found);
		}
	}
}

void test_identify_takes_the_kernels_packets(void)
{
	uint8_t seen[sizeof(ipv4_ack)];
	uint16_t found;

	memcpy(seen, ipv4_ack, sizeof(seen));
	sim_store_be16(seen + 4, 0);
	TEST_ASSERT_TRUE(sim_icrc_identify(seen, sizeof(seen), &found));
	TEST_ASSERT_EQUAL_HEX16(0xac3d, found);
}

/*
 * 65,536 of the 2^32 values of an ICRC are right for an identification. So a wrong packet passes with a
 * probability of 2^-16, if its ICRC is as good as random. A packet that passes must be right for the
 * identification that is found.
 */
void test_identify_finds_wrong_bits(void)
{
	uint64_t flipped = 0, passed = 0;

	for (size_t i = 0; i < sizeof(packet_lengths) / sizeof(packet_lengths[0]); i++) {
		const size_t length = packet_lengths[i];

		make_packet(length, (uint16_t)random_u64());
		sim_store_be16(long_packet + 4, 0);
		/* Behind the IP header, but for the UDP checksum and the byte of FECN and BECN. */
		for (size_t bit = 20 * 8; bit < length * 8; bit++) {
			uint16_t found;

			if (bit / 8 == 26 || bit / 8 == 27 || bit / 8 == 32)
				continue;
			long_packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
			flipped++;
			if (sim_icrc_identify(long_packet, length, &found)) {
				passed++;
				sim_store_be16(long_packet + 4, found);
				TEST_ASSERT_EQUAL_HEX32(stored(long_packet, length),
							sim_icrc(long_packet, length));
				sim_store_be16(long_packet + 4, 0);
			}
			long_packet[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	/* About 67,000 bits: one or two pass on average, and seven hardly ever. */
	TEST_ASSERT_TRUE(flipped > 60000);
	TEST_ASSERT_LESS_THAN(8, passed);
}

void test_identify_refuses_random_packets(void)
{
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 200000; i++) {
		uint16_t found;

		make_packet(64, 0);
		sim_store_le32(long_packet + 60, (uint32_t)random_u64());
		passed += sim_icrc_identify(long_packet, 64, &found);
	}
	/* 200,000 / 65,536 is three on average. */
	TEST_ASSERT_LESS_THAN(16, passed);
}

/* --- InfiniBand --- */

/*
 * The sample packet of the specification, from the LRH to the ICRC, as quoted on linux-rdma
 * (Message-ID 20250129185115.GA2619178@google.com, with its ICRC) and in Mellanox VAPI's mpga.
 */
static const uint8_t local_write[] = {
	0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87,
	0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02,
	0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c,
	0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a,
};

/*
 * The same packet with a GRH. mpga has it without its ICRC; the payload length 0x30 was added
 * here.
 */
static const uint8_t global_write[] = {
	0x70, 0x13, 0x37, 0x5c, 0x00, 0x18, 0x17, 0xd2, 0x60, 0x00, 0x00, 0x00, 0x00, 0x30,
	0x1b, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x25, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x26, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x17, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x96, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3,
	0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2,
	0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4,
	0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

void test_icrc_infiniband_is_the_specifications(void)
{
	TEST_ASSERT_EQUAL_HEX32(stored(local_write, sizeof(local_write)),
				sim_icrc_infiniband(local_write, sizeof(local_write)));
}

/* Flips each bit, except the bits `form`, which decide whether there is a GRH. */
static void check_infiniband_bits(const uint8_t *bytes, size_t length_bytes, const uint8_t *mask)
{
	const uint32_t right = sim_icrc_infiniband(bytes, length_bytes);

	for (size_t bit = 0; bit < 8 * (length_bytes - 4); bit++) {
		const uint8_t one = (uint8_t)(1 << bit % 8);
		char where[32];
		uint32_t now;

		if (bit / 8 == 1 && one <= 2)
			continue; /* the next header decides, too */
		snprintf(where, sizeof(where), "byte %zu bit %zu", bit / 8, bit % 8);
		memcpy(datagram, bytes, length_bytes);
		datagram[bit / 8] ^= one;
		now = sim_icrc_infiniband(datagram, length_bytes);
		TEST_ASSERT_EQUAL_INT_MESSAGE(!(mask[bit / 8] & one), now != right, where);
	}
}

void test_icrc_infiniband_covers_what_switches_keep(void)
{
	static const uint8_t mask[sizeof(local_write)] = {
		[0] = 0xf0,	/* virtual lane */
		[8 + 4] = 0xff, /* BTH: FECN, BECN, reserved */
	};

	check_infiniband_bits(local_write, sizeof(local_write), mask);
}

void test_icrc_infiniband_covers_what_routers_keep(void)
{
	static const uint8_t
		mask[sizeof(global_write)] =
			{
				[0] = 0xff,	 [1] = 0xff,	 [2] = 0xff,
				[3] = 0xff,	 [4] = 0xff,	 [5] = 0xff,
				[6] = 0xff,	 [7] = 0xff, /* all of the LRH */
				[8] = 0x0f,	 [8 + 1] = 0xff, [8 + 2] = 0xff,
				[8 + 3] = 0xff,	 /* traffic class, flow label */
				[8 + 7] = 0xff,	 /* hop limit */
				[48 + 4] = 0xff, /* BTH: FECN, BECN, reserved */
			};

	check_infiniband_bits(global_write, sizeof(global_write), mask);
}

/* From the GRH on, as in an InfiniBand packet whose LRH is replaced by ones. */
void test_icrc_roce_v1_is_that_of_a_global_packet(void)
{
	const uint32_t right = sim_icrc_roce_v1(global_write + 8, sizeof(global_write) - 8);

	TEST_ASSERT_EQUAL_HEX32(sim_icrc_infiniband(global_write, sizeof(global_write)), right);
}

void test_icrc_roce_v1_covers_what_routers_keep(void)
{
	static const uint8_t mask[sizeof(global_write) - 8] = {
		[0] = 0x0f,	 [1] = 0xff, [2] = 0xff, [3] = 0xff, /* traffic class, flow label */
		[7] = 0xff,					     /* hop limit */
		[40 + 4] = 0xff,				     /* BTH: FECN, BECN, reserved */
	};
	const size_t length_bytes = sizeof(mask);
	const uint32_t right = sim_icrc_roce_v1(global_write + 8, length_bytes);

	for (size_t bit = 0; bit < 8 * (length_bytes - 4); bit++) {
		const uint8_t one = (uint8_t)(1 << bit % 8);
		char where[32];

		snprintf(where, sizeof(where), "byte %zu bit %zu", bit / 8, bit % 8);
		memcpy(datagram, global_write + 8, length_bytes);
		datagram[bit / 8] ^= one;
		TEST_ASSERT_EQUAL_INT_MESSAGE(!(mask[bit / 8] & one),
					      sim_icrc_roce_v1(datagram, length_bytes) != right,
					      where);
	}
}

/* Computes a CRC table from the polynomial 0x100b, low bit first. */
static uint16_t slow_vcrc(const uint8_t *bytes, size_t length_bytes)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < length_bytes; i++) {
		crc ^= bytes[i];
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xd008 : crc >> 1);
	}
	return (uint16_t)~crc;
}

void test_vcrc_of_every_byte_and_length(void)
{
	for (size_t length = 0; length < sizeof(datagram); length++)
		TEST_ASSERT_EQUAL_HEX16(slow_vcrc(datagram, length), sim_vcrc(datagram, length));
	for (unsigned int byte = 0; byte < 256; byte++) {
		datagram[0] = (uint8_t)byte;
		TEST_ASSERT_EQUAL_HEX16(slow_vcrc(datagram, 9), sim_vcrc(datagram, 9));
	}
	TEST_ASSERT_EQUAL_HEX16(slow_vcrc(local_write, sizeof(local_write)),
				sim_vcrc(local_write, sizeof(local_write)));
}
