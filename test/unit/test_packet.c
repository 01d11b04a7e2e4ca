/* SPDX-License-Identifier: MIT */
#include "sim/wire/checksum.h"
#include "sim/wire/field.h"
#include "sim/wire/icrc.h"
#include "test/unit/random_packet.h"
#include "unity.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t frame[SIM_FRAME_BYTES_MAX];
static uint8_t again[SIM_FRAME_BYTES_MAX];
static uint8_t payload[SIM_PATH_MTU_MAX];

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static int copy_faults(void *dst, const void *src, size_t length_bytes)
{
	(void)src;
	memset(dst, 0x5a, length_bytes); /* the copy fails in its middle */
	return 1;
}

void setUp(void)
{
	random_state = SEED;
	random_bytes(payload, sizeof(payload));
	memset(frame, 0xee, sizeof(frame));
	memset(again, 0xdd, sizeof(again));
}

void tearDown(void)
{
}

static void check_same_packet(const struct sim_packet *want, const struct sim_packet *got,
			      const char *where)
{
	struct sim_packet left = *want;
	struct sim_packet right = *got;

	left.spans = right.spans = NULL;
	left.span_count = right.span_count = 0;
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&left, &right, sizeof(left), where);
}

static void check_same_route(const struct sim_route *want, const struct sim_route *got,
			     const char *where)
{
	struct sim_route right = *got;

	right.udp_checksum = want->udp_checksum;
	right.udp_checksum_given = want->udp_checksum_given;
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(want, &right, sizeof(right), where);
}

/* The bytes from the BTH to the pad, and the route of the headers before them, say the same as the frame, of
 * which `got` and `got_route` were read. */
static void check_bare(size_t frame_bytes, const struct sim_packet *got,
		       const struct sim_route *got_route, const char *where)
{
	const size_t end_bytes = route.infiniband ? 6 : 4;
	struct sim_packet bare;
	struct sim_route bare_route;
	struct sim_span span;
	bool readable = false;
	const size_t length_bytes = sim_packet_write_bare(&packet, copy, again, &readable);

	TEST_ASSERT_TRUE_MESSAGE(readable, where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(frame_bytes - sim_route_bytes(&route) - end_bytes,
				       length_bytes, where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(frame + sim_route_bytes(&route), again, length_bytes,
					 where);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(
		"ok",
		sim_decode_str(sim_route_read(frame, frame_bytes, route.infiniband, &bare_route)),
		where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(got_route, &bare_route, sizeof(bare_route), where);
	TEST_ASSERT_EQUAL_STRING_MESSAGE("ok",
					 sim_decode_str(sim_packet_read_bare(
						 again, length_bytes, &bare_route, &bare, &span)),
					 where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(packet.payload_bytes, span.length_bytes, where);
	TEST_ASSERT_EQUAL_PTR_MESSAGE(&span, bare.spans, where);
	if (packet.payload_bytes)
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(payload, span.base, packet.payload_bytes, where);
	bare.spans = got->spans;
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(got, &bare, sizeof(bare), where);
}

/* Encodes and decodes a packet and compares; encodes the result and compares the bytes. */
static void check_round_trip(uint8_t opcode, bool ipv4, uint32_t payload_bytes)
{
	const struct sim_span spans[2] = {
		{payload, payload_bytes / 3},
		{payload + payload_bytes / 3, payload_bytes - payload_bytes / 3}};
	struct sim_packet got;
	struct sim_route got_route;
	struct sim_span got_span;
	char where[96];
	size_t length_bytes;

	random_packet(opcode);
	random_route(ipv4);
	packet.payload_bytes = payload_bytes;
	packet.spans = spans;
	packet.span_count = payload_bytes ? 2 : 0;
	snprintf(where, sizeof(where), "seed %u, %s, IPv%d, %u bytes", SEED,
		 sim_opcodes[opcode].name, ipv4 ? 4 : 6, payload_bytes);

	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(14 + (ipv4 ? 20 : 40) + 8 +
					       sim_opcodes[opcode].header_bytes + payload_bytes +
					       (4 - payload_bytes % 4) % 4 + 4,
				       length_bytes, where);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(
		"ok",
		sim_decode_str(sim_packet_decode(frame, length_bytes, &got, &got_span, &got_route)),
		where);
	check_same_packet(&packet, &got, where);
	check_same_route(&route, &got_route, where);
	if (payload_bytes) {
		TEST_ASSERT_EQUAL_UINT_MESSAGE(1, got.span_count, where);
		TEST_ASSERT_EQUAL_PTR_MESSAGE(&got_span, got.spans, where);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(payload_bytes, got_span.length_bytes, where);
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(payload, got_span.base, payload_bytes, where);
	}

	TEST_ASSERT_EQUAL_UINT_MESSAGE(
		length_bytes, sim_packet_encode(&got, &got_route, copy, again, NULL), where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(frame, again, length_bytes, where);
	check_bare(length_bytes, &got, &got_route, where);
}

void test_packet_round_trip_of_every_opcode_and_pad(void)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 255, 256, 1021, 1022, 1023, 4095, 4096};

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (sizes[i] && !(sim_opcodes[opcode].flags & SIM_OP_PAYLOAD))
				continue;
			check_round_trip((uint8_t)opcode, true, sizes[i]);
			check_round_trip((uint8_t)opcode, false, sizes[i]);
		}
	}
}

static void check_infiniband_round_trip(uint8_t opcode, bool grh, uint32_t payload_bytes)
{
	const struct sim_span in = {payload, payload_bytes};
	struct sim_packet got;
	struct sim_route got_route;
	struct sim_span got_span;
	char where[96];
	size_t length_bytes;

	random_packet(opcode);
	random_infiniband_route(grh);
	packet.payload_bytes = payload_bytes;
	packet.spans = &in;
	packet.span_count = payload_bytes > 0;
	snprintf(where, sizeof(where), "seed %u, %s, GRH %d, %u bytes", SEED,
		 sim_opcodes[opcode].name, grh, payload_bytes);

	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(8 + (grh ? 40 : 0) + sim_opcodes[opcode].header_bytes +
					       payload_bytes + (4 - payload_bytes % 4) % 4 + 4 + 2,
				       length_bytes, where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(length_bytes, sim_frame_bytes(&packet, &route), where);
	packet.slid = route.slid;
	packet.sl = route.sl;
	TEST_ASSERT_EQUAL_STRING_MESSAGE("ok",
					 sim_decode_str(sim_packet_decode_infiniband(
						 frame, length_bytes, &got, &got_span, &got_route)),
					 where);
	check_same_packet(&packet, &got, where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&route, &got_route, sizeof(route), where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(payload_bytes, got_span.length_bytes, where);
	if (payload_bytes)
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(payload, got_span.base, payload_bytes, where);
	check_bare(length_bytes, &got, &got_route, where);
}

void test_packet_infiniband_round_trip_of_every_opcode_and_pad(void)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 255, 4093, 4096};

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			if (sizes[i] && !(sim_opcodes[opcode].flags & SIM_OP_PAYLOAD))
				continue;
			check_infiniband_round_trip((uint8_t)opcode, false, sizes[i]);
			check_infiniband_round_trip((uint8_t)opcode, true, sizes[i]);
		}
	}
}

static enum sim_decode decode_infiniband(size_t length_bytes)
{
	struct sim_span span;

	return sim_packet_decode_infiniband(frame, length_bytes, &packet, &span, &route);
}

/*
 * The sample packet of the specification, which test_icrc.c cites, with a VCRC that was added
 * here. It has virtual lane 7; the encoder sends on lane 0.
 */
void test_packet_of_the_specification(void)
{
	static const uint8_t sample[] = {0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20,
					 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a,
					 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2,
					 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85,
					 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4,
					 0x00, 0x00, 0x96, 0x25, 0xb7, 0x5a, 0x45, 0xfa};

	struct sim_span span;

	memcpy(frame, sample, sizeof(sample));
	TEST_ASSERT_EQUAL_STRING("ok", sim_decode_str(sim_packet_decode_infiniband(
					       frame, sizeof(sample), &packet, &span, &route)));
	TEST_ASSERT_EQUAL_HEX8(SIM_RC_WRITE_ONLY, packet.opcode);
	TEST_ASSERT_EQUAL_UINT8(1, route.sl);
	TEST_ASSERT_EQUAL_HEX16(0x375c, route.dlid);
	TEST_ASSERT_EQUAL_HEX16(0x17d2, route.slid);
	TEST_ASSERT_FALSE(route.has_grh);
	TEST_ASSERT_EQUAL_HEX16(0x2487, packet.pkey);
	TEST_ASSERT_EQUAL_HEX32(0x87b1b3, packet.dest_qpn);
	TEST_ASSERT_EQUAL_HEX32(0x0dec2a, packet.psn);
	TEST_ASSERT_EQUAL_HEX64(0x01710a1c015d4002, packet.remote_addr);
	TEST_ASSERT_EQUAL_HEX32(0x38f27a05, packet.rkey);
	TEST_ASSERT_EQUAL_UINT32(14, packet.dma_bytes);
	TEST_ASSERT_EQUAL_UINT32(14, packet.payload_bytes);
	TEST_ASSERT_EQUAL_UINT(sizeof(sample),
			       sim_packet_encode(&packet, &route, copy, again, NULL));
	again[0] |= 0x70;
	TEST_ASSERT_EQUAL_HEX8_ARRAY(sample, again, sizeof(sample) - 2);
}

static size_t small_infiniband_frame(bool grh)
{
	static struct sim_span span;

	span = (struct sim_span){payload, 5};
	random_packet(SIM_RC_SEND_ONLY);
	random_infiniband_route(grh);
	packet.payload_bytes = 5;
	packet.spans = &span;
	packet.span_count = 1;
	return sim_packet_encode(&packet, &route, copy, frame, NULL);
}

void test_packet_infiniband_truncated_anywhere(void)
{
	for (int grh = 0; grh < 2; grh++) {
		const size_t length_bytes = small_infiniband_frame(grh);

		for (size_t cut = 0; cut < length_bytes; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1);
			struct sim_span span;
			enum sim_decode result;

			memcpy(exact, frame, cut);
			result = sim_packet_decode_infiniband(exact, cut, &packet, &span, &route);
			free(exact);
			TEST_ASSERT_EQUAL_INT(SIM_DECODE_TRUNCATED, result);
		}
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode_infiniband(length_bytes));
	}
}

/* The LRH and GRH have the right length, but the packet ends inside the headers of its opcode. */
void test_packet_infiniband_truncated_extension_headers(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		size_t length_bytes;

		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		random_packet((uint8_t)opcode);
		random_infiniband_route(true);
		length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
		frame[5]--;
		frame[8 + 5] -= 4;
		TEST_ASSERT_EQUAL_INT_MESSAGE(SIM_DECODE_TRUNCATED,
					      decode_infiniband(length_bytes - 4),
					      sim_opcodes[opcode].name);
	}
}

void test_packet_not_infiniband(void)
{
	static const struct {
		bool grh;
		uint8_t offset, bits;
		enum sim_decode want;
		const char *what;
	} rows[] = {
		{false, 0, 0x01, SIM_DECODE_NOT_INFINIBAND, "link version"},
		{false, 1, 0x02, SIM_DECODE_NOT_INFINIBAND, "raw, no next header"},
		{true, 1, 0x02, SIM_DECODE_NOT_INFINIBAND, "raw, IPv6"},
		{false, 5, 0x01, SIM_DECODE_TRUNCATED, "a word more than there is"},
		{false, 5, 0x08, SIM_DECODE_NOT_INFINIBAND, "nothing, not even the LRH"},
		{false, 5, 0x0c, SIM_DECODE_NOT_INFINIBAND, "less than there is"},
		{true, 8, 0x20, SIM_DECODE_NOT_INFINIBAND, "GRH version"},
		{true, 8 + 6, 0x01, SIM_DECODE_NOT_INFINIBAND, "GRH next header"},
		{true, 8 + 4, 0x01, SIM_DECODE_TRUNCATED, "GRH payload length, more"},
		{true, 8 + 5, 0x08, SIM_DECODE_NOT_INFINIBAND, "GRH payload length, less"},
		{false, 8 + 1, 0x01, SIM_DECODE_BAD_VERSION, "BTH version"},
		{false, 8, 0xc0, SIM_DECODE_BAD_OPCODE, "opcode"},
		{false, 1, 0x10, SIM_DECODE_BAD_ICRC, "service level"},
		{false, 0, 0x10, SIM_DECODE_BAD_VCRC, "virtual lane"},
		{true, 2, 0x10, SIM_DECODE_BAD_VCRC, "DLID, with a GRH"},
		{true, 8 + 7, 0x10, SIM_DECODE_BAD_VCRC, "hop limit"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t length_bytes = small_infiniband_frame(rows[i].grh);

		frame[rows[i].offset] ^= rows[i].bits;
		TEST_ASSERT_EQUAL_STRING_MESSAGE(sim_decode_str(rows[i].want),
						 sim_decode_str(decode_infiniband(length_bytes)),
						 rows[i].what);
	}
}

/* The LRH has the right length, and nothing follows it. */
void test_packet_of_an_lrh_only(void)
{
	small_infiniband_frame(false);
	frame[5] = 2;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_TRUNCATED, decode_infiniband(8 + 2));
}

void test_packet_infiniband_bad_pad(void)
{
	struct sim_span none = {payload, 0};
	size_t length_bytes;

	small_infiniband_frame(false);
	packet.payload_bytes = 0;
	packet.spans = &none;
	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	frame[8 + 1] |= 0x10;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_PAD, decode_infiniband(length_bytes));
}

/* A packet with a wrong ICRC or VCRC is decoded whole, and every bit counts for the checksums. */
void test_packet_bad_vcrc_and_icrc(void)
{
	const size_t length_bytes = small_infiniband_frame(true);
	struct sim_packet want = packet;

	want.slid = route.slid;
	want.sl = route.sl;
	for (unsigned int bit = 0; bit < 48; bit++) {
		frame[length_bytes - 6 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		TEST_ASSERT_EQUAL_INT(bit < 32 ? SIM_DECODE_BAD_ICRC : SIM_DECODE_BAD_VCRC,
				      decode_infiniband(length_bytes));
		check_same_packet(&want, &packet, "after a bad CRC");
		frame[length_bytes - 6 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

void test_packet_infiniband_survives_noise(void)
{
	for (unsigned int round = 0; round < 20000; round++) {
		const size_t length_bytes = small_infiniband_frame(round & 1);
		const size_t cut = random_u64() % (length_bytes + 1);
		uint8_t *exact = malloc(cut ? cut : 1);
		struct sim_span span;

		for (unsigned int i = 0; i < round % 4 + 1; i++)
			frame[random_u64() % length_bytes] = (uint8_t)random_u64();
		memcpy(exact, frame, cut);
		sim_packet_decode_infiniband(exact, cut, &packet, &span, &route);
		TEST_ASSERT_TRUE(
			packet.span_count == 0 ||
			((const uint8_t *)span.base >= exact &&
			 (const uint8_t *)span.base + span.length_bytes + 6 <= exact + cut));
		free(exact);
	}
}

static void check_each(uint8_t want, const uint8_t *bytes, size_t length_bytes)
{
	while (length_bytes--)
		TEST_ASSERT_EQUAL_HEX8(want, *bytes++);
}

void test_packet_grh_of_infiniband(void)
{
	uint8_t grh[40];

	small_infiniband_frame(true);
	sim_packet_grh(&packet, &route, grh);
	TEST_ASSERT_EQUAL_HEX8_ARRAY(frame + 8, grh, 40);
	small_infiniband_frame(false);
	sim_packet_grh(&packet, &route, grh);
	check_each(0xcc, grh, 40);
}

/* Makes an RC SEND_ONLY of 5 bytes over IPv4 or IPv6, which the tests of bad input change. */
static size_t small_frame(bool ipv4)
{
	static struct sim_span span;

	span = (struct sim_span){payload, 5};
	random_packet(SIM_RC_SEND_ONLY);
	random_route(ipv4);
	packet.payload_bytes = 5;
	packet.spans = &span;
	packet.span_count = 1;
	return sim_packet_encode(&packet, &route, copy, frame, NULL);
}

static enum sim_decode decode(size_t length_bytes)
{
	struct sim_span span;

	return sim_packet_decode(frame, length_bytes, &packet, &span, &route);
}

/* Checks the layout of RFC 791, RFC 768 and the BTH against offsets that are written here. */
void test_packet_layout_of_a_write(void)
{
	static const uint8_t want[] = {
		0x02, 0x0b, 0,	  0,	0,    2,    0x02, 0x0a, 0,    0,    0,	  1,	0x08,
		0x00, 0x45, 0x03, 0x00, 0x40, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x14, 0x74,
		10,   0,    0,	  1,	10,   0,    0,	  2,	0xc0, 0x11, 0x12, 0xb7, 0x00,
		0x2c, 0x00, 0x00, 0x0a, 0xf0, 0xff, 0xff, 0xc0, 0x01, 0x02, 0x03, 0x80, 0xaa,
		0xbb, 0xcc, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xde, 0xad, 0xbe,
		0xef, 0x00, 0x00, 0x00, 0x01, 0x7e, 0x00, 0x00, 0x00,
	};
	static const uint8_t byte = 0x7e;
	const struct sim_span span = {&byte, 1};
	const struct sim_packet write = {
		.opcode = SIM_RC_WRITE_ONLY,
		.flags = ALL_FLAGS,
		.span_count = 1,
		.spans = &span,
		.payload_bytes = 1,
		.pkey = 0xffff,
		.dest_qpn = 0x010203,
		.psn = 0xaabbcc,
		.remote_addr = 0x1122334455667788,
		.rkey = 0xdeadbeef,
		.dma_bytes = 1,
	};
	const struct sim_route path = {
		.dest_mac = {0x02, 0x0b, 0, 0, 0, 2},
		.source_mac = {0x02, 0x0a, 0, 0, 0, 1},
		.source_gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
		.dest_gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
		.traffic_class = 3,
		.hop_limit = 64,
		.udp_source_port = 0xc011,
		.ip_id = 0x1234,
		.ip_fragment = 0x4000,
	};

	TEST_ASSERT_EQUAL_UINT(sizeof(want) + 4,
			       sim_packet_encode(&write, &path, copy, frame, NULL));
	TEST_ASSERT_EQUAL_HEX8_ARRAY(want, frame, sizeof(want));
}

/* Every shorter length, in a buffer of exactly that length for AddressSanitizer. */
void test_packet_truncated_anywhere(void)
{
	for (int ipv4 = 0; ipv4 < 2; ipv4++) {
		const size_t length_bytes = small_frame(ipv4);

		for (size_t cut = 0; cut < length_bytes; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1);
			struct sim_span span;
			enum sim_decode result;

			memcpy(exact, frame, cut);
			result = sim_packet_decode(exact, cut, &packet, &span, &route);
			free(exact);
			TEST_ASSERT_EQUAL_INT(SIM_DECODE_TRUNCATED, result);
		}
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode(length_bytes));
	}
}

/* The IP header is right, but the datagram is too short for its opcode. */
void test_packet_truncated_extension_headers(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		size_t length_bytes;

		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		random_packet((uint8_t)opcode);
		random_route(false);
		length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
		frame[14 + 5] -= 4;	 /* IPv6 payload length */
		frame[14 + 40 + 5] -= 4; /* UDP length */
		TEST_ASSERT_EQUAL_INT_MESSAGE(SIM_DECODE_TRUNCATED, decode(length_bytes - 4),
					      sim_opcodes[opcode].name);
	}
}

void test_packet_not_roce(void)
{
	static const struct {
		bool ipv4;
		uint8_t offset;
		const char *what;
	} rows[] = {
		{true, 12, "ethertype"},
		{true, 14, "IPv4 version"},
		{true, 14 + 9, "IPv4 protocol"},
		{true, 14 + 10, "IPv4 header checksum"},
		{true, 14 + 8, "IPv4 TTL without its checksum"},
		{true, 14 + 20 + 2, "UDP port"},
		{false, 14 + 6, "IPv6 next header"},
		{false, 14, "IPv6 version"},
		{false, 14 + 40 + 3, "UDP port"},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t length_bytes = small_frame(rows[i].ipv4);

		frame[rows[i].offset] ^= 0x10;
		TEST_ASSERT_EQUAL_INT_MESSAGE(SIM_DECODE_NOT_ROCE, decode(length_bytes),
					      rows[i].what);
	}
}

void test_packet_fragments_are_not_roce(void)
{
	size_t length_bytes;

	small_frame(true);
	route.ip_fragment = 0x2000;
	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_NOT_ROCE, decode(length_bytes));
	small_frame(true);
	route.ip_fragment = 0x0001;
	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_NOT_ROCE, decode(length_bytes));
}

void test_packet_udp_length_must_fit(void)
{
	size_t length_bytes = small_frame(true);

	frame[14 + 20 + 5] += 4;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_TRUNCATED, decode(length_bytes));
	frame[14 + 20 + 5] -= 8;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_NOT_ROCE, decode(length_bytes));
}

void test_packet_bad_version(void)
{
	const size_t length_bytes = small_frame(true);

	frame[14 + 20 + 8 + 1] |= 0x01;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_VERSION, decode(length_bytes));
}

void test_packet_bad_opcode(void)
{
	const size_t length_bytes = small_frame(true);

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		frame[14 + 20 + 8] = (uint8_t)opcode;
		TEST_ASSERT_EQUAL_INT(!(sim_opcodes[opcode].flags & SIM_OP_VALID),
				      decode(length_bytes) == SIM_DECODE_BAD_OPCODE);
	}
}

/* 8 bytes on the wire are 5 and a pad of 3. With a smaller pad count the payload is longer. */
void test_packet_bad_pad(void)
{
	const size_t length_bytes = small_frame(true);
	struct sim_span none = {payload, 0};
	size_t empty_bytes;

	/*
	 * With one byte less in all lengths, the bytes behind the headers are no multiple of four.
	 */
	frame[14 + 3] -= 1;
	frame[14 + 20 + 5] -= 1;
	frame[14 + 11] += 1; /* so that the checksum of the header stays right */
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_PAD, decode(length_bytes - 1));

	small_frame(true);
	packet.payload_bytes = 0;
	packet.spans = &none;
	empty_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	frame[14 + 20 + 8 + 1] |= 0x10;
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_PAD, decode(empty_bytes));
}

/* A packet with a bad ICRC is decoded whole, and every bit counts for the ICRC. */
void test_packet_bad_icrc(void)
{
	const size_t length_bytes = small_frame(false);
	const struct sim_packet want = packet;

	for (unsigned int bit = 0; bit < 32; bit++) {
		frame[length_bytes - 4 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_ICRC, decode(length_bytes));
		check_same_packet(&want, &packet, "after a bad ICRC");
		frame[length_bytes - 4 + bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	frame[length_bytes - 9] ^= 1; /* payload */
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_ICRC, decode(length_bytes));
}

/* A short frame has Ethernet's padding behind the datagram. */
void test_packet_ethernet_padding_is_no_part_of_it(void)
{
	struct sim_span span;
	size_t length_bytes;

	random_packet(SIM_RC_SEND_ONLY);
	random_route(true);
	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_UINT(58, length_bytes);
	memset(frame + length_bytes, 0, 2);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, sim_packet_decode(frame, 60, &packet, &span, &route));
	TEST_ASSERT_EQUAL_UINT(0, packet.payload_bytes);
	TEST_ASSERT_EQUAL_UINT(0, packet.span_count);
}

/* Random bytes, and right frames with random changes, are refused without a crash. */
void test_packet_survives_noise(void)
{
	for (unsigned int round = 0; round < 20000; round++) {
		const size_t length_bytes = small_frame(round & 1);
		const size_t cut = random_u64() % (length_bytes + 1);
		uint8_t *exact = malloc(cut ? cut : 1);
		struct sim_span span;

		for (unsigned int i = 0; i < round % 4 + 1; i++)
			frame[random_u64() % length_bytes] = (uint8_t)random_u64();
		memcpy(exact, frame, cut);
		sim_packet_decode(exact, cut, &packet, &span, &route);
		TEST_ASSERT_TRUE(
			packet.span_count == 0 ||
			((const uint8_t *)span.base >= exact &&
			 (const uint8_t *)span.base + span.length_bytes + 4 <= exact + cut));
		free(exact);
	}
}

/* --- RoCE v1 --- */

static void check_roce_v1_round_trip(uint8_t opcode, uint32_t payload_bytes)
{
	const struct sim_span in = {payload, payload_bytes};
	struct sim_packet got;
	struct sim_route got_route;
	struct sim_span got_span;
	char where[96];
	size_t length_bytes;

	random_packet(opcode);
	random_roce_v1_route();
	packet.payload_bytes = payload_bytes;
	packet.spans = &in;
	packet.span_count = payload_bytes > 0;
	snprintf(where, sizeof(where), "seed %u, %s, RoCE v1, %u bytes", SEED,
		 sim_opcodes[opcode].name, payload_bytes);

	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(14 + 40 + sim_opcodes[opcode].header_bytes + payload_bytes +
					       (4 - payload_bytes % 4) % 4 + 4,
				       length_bytes, where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(length_bytes, sim_frame_bytes(&packet, &route), where);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(
		"ok",
		sim_decode_str(sim_packet_decode(frame, length_bytes, &got, &got_span, &got_route)),
		where);
	check_same_packet(&packet, &got, where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(&route, &got_route, sizeof(route), where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(payload_bytes, got_span.length_bytes, where);
	if (payload_bytes)
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(payload, got_span.base, payload_bytes, where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(
		length_bytes, sim_packet_encode(&got, &got_route, copy, again, NULL), where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(frame, again, length_bytes, where);
	check_bare(length_bytes, &got, &got_route, where);
}

void test_packet_roce_v1_round_trip_of_every_opcode_and_pad(void)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 255, 4093, 4096};

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			if (!sizes[i] || sim_opcodes[opcode].flags & SIM_OP_PAYLOAD)
				check_roce_v1_round_trip((uint8_t)opcode, sizes[i]);
	}
}

static size_t small_roce_v1_frame(void)
{
	static struct sim_span span;

	span = (struct sim_span){payload, 5};
	random_packet(SIM_RC_SEND_ONLY);
	random_roce_v1_route();
	packet.payload_bytes = 5;
	packet.spans = &span;
	packet.span_count = 1;
	return sim_packet_encode(&packet, &route, copy, frame, NULL);
}

/*
 * The expected bytes: Ethernet with type 0x8915; a GRH with version 6, traffic class, flow label,
 * 20 bytes from BTH to ICRC, next header 0x1b, hop limit and GIDs; the BTH.
 */
void test_packet_layout_of_roce_v1(void)
{
	static const uint8_t want[] = {
		0x02, 0x0b, 0,	  0,	0,    2,    0x02, 0x0a, 0,    0,    0,	  1, 0x89, 0x15,
		0x60, 0x3a, 0xbc, 0xde, 0x00, 0x14, 0x1b, 64,	0,    0,    0,	  0, 0,	   0,
		0,    0,    0,	  0,	0xff, 0xff, 10,	  0,	0,    1,    0,	  0, 0,	   0,
		0,    0,    0,	  0,	0,    0,    0xff, 0xff, 10,   0,    0,	  2, 0x11, 0x40,
		0xff, 0xff, 0x00, 0x01, 0x02, 0x03, 0x00, 0xaa, 0xbb, 0xcc, 0x1f, 0, 0,	   7,
	};
	const struct sim_packet ack = {
		.opcode = SIM_RC_ACK,
		.flags = SIM_PACKET_MIGRATED,
		.syndrome = 0x1f,
		.msn = 7,
		.pkey = 0xffff,
		.dest_qpn = 0x010203,
		.psn = 0xaabbcc,
	};
	const struct sim_route path = {
		.roce_v1 = true,
		.dest_mac = {0x02, 0x0b, 0, 0, 0, 2},
		.source_mac = {0x02, 0x0a, 0, 0, 0, 1},
		.source_gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
		.dest_gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
		.traffic_class = 3,
		.flow_label = 0xabcde,
		.hop_limit = 64,
	};

	TEST_ASSERT_EQUAL_UINT(sizeof(want) + 4, sim_packet_encode(&ack, &path, copy, frame, NULL));
	TEST_ASSERT_EQUAL_HEX8_ARRAY(want, frame, sizeof(want));
}

void test_packet_roce_v1_truncated_anywhere(void)
{
	const size_t length_bytes = small_roce_v1_frame();

	for (size_t cut = 0; cut < length_bytes; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);
		struct sim_span span;
		enum sim_decode result;

		memcpy(exact, frame, cut);
		result = sim_packet_decode(exact, cut, &packet, &span, &route);
		free(exact);
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_TRUNCATED, result);
	}
	memset(frame + length_bytes, 0, 3); /* Ethernet's padding */
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode(length_bytes + 3));
	TEST_ASSERT_EQUAL_UINT(5, packet.payload_bytes);
}

void test_packet_not_roce_v1(void)
{
	static const struct {
		size_t at;
		uint8_t value;
		enum sim_decode want;
	} rows[] = {
		{12, 0x88, SIM_DECODE_NOT_ROCE}, /* the Ethernet type */
		{13, 0x16, SIM_DECODE_NOT_ROCE},
		{14, 0x40, SIM_DECODE_NOT_ROCE}, /* the version */
		{20, 17, SIM_DECODE_NOT_ROCE},	 /* the next header: UDP */
		{19, 4, SIM_DECODE_TRUNCATED},	 /* no room for a BTH */
		{14 + 40 + 1, 0x31, SIM_DECODE_BAD_VERSION},
		{14 + 40, 0x15, SIM_DECODE_BAD_OPCODE},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t length_bytes = small_roce_v1_frame();

		frame[rows[i].at] = rows[i].value;
		TEST_ASSERT_EQUAL_INT(rows[i].want, decode(length_bytes));
	}
}

/* A change of the bits that routers may change is accepted; any other change is not. */
void test_packet_roce_v1_bad_icrc(void)
{
	static const size_t changes[] = {15, 16, 17, 21, 14 + 40 + 4};
	static const size_t keeps[] = {22, 38, 14 + 40 + 2, 14 + 40 + 12, 14 + 40 + 12 + 8};
	size_t length_bytes;

	for (unsigned int i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		length_bytes = small_roce_v1_frame();
		frame[changes[i]] ^= 0x40;
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode(length_bytes));
	}
	for (unsigned int i = 0; i < sizeof(keeps) / sizeof(keeps[0]); i++) {
		length_bytes = small_roce_v1_frame();
		frame[keeps[i]] ^= 0x40;
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_BAD_ICRC, decode(length_bytes));
	}
}

void test_packet_roce_v1_survives_noise(void)
{
	for (unsigned int round = 0; round < 10000; round++) {
		const size_t length_bytes = small_roce_v1_frame();
		const size_t cut = random_u64() % (length_bytes + 1);
		uint8_t *exact = malloc(cut ? cut : 1);
		struct sim_span span;

		for (unsigned int i = 0; i < round % 4 + 1; i++)
			frame[random_u64() % length_bytes] = (uint8_t)random_u64();
		memcpy(exact, frame, cut);
		sim_packet_decode(exact, cut, &packet, &span, &route);
		TEST_ASSERT_TRUE(
			packet.span_count == 0 ||
			((const uint8_t *)span.base >= exact &&
			 (const uint8_t *)span.base + span.length_bytes + 4 <= exact + cut));
		free(exact);
	}
}

void test_packet_grh_of_roce_v1(void)
{
	uint8_t grh[40];

	small_roce_v1_frame();
	sim_packet_grh(&packet, &route, grh);
	TEST_ASSERT_EQUAL_HEX8_ARRAY(frame + 14, grh, 40);
}

void test_packet_unreadable_payload_becomes_zero(void)
{
	static const uint8_t zeros[8];
	size_t length_bytes;
	bool readable;

	small_frame(true);
	sim_packet_encode(&packet, &route, copy, frame, &readable);
	TEST_ASSERT_TRUE(readable);
	length_bytes = sim_packet_encode(&packet, &route, copy_faults, frame, &readable);
	TEST_ASSERT_FALSE(readable);
	TEST_ASSERT_EQUAL_HEX8_ARRAY(zeros, frame + length_bytes - 12, 8);
	TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode(length_bytes));
}

/* Returns the sum of RFC 1071 over big-endian words: 0xffff for a right checksum. */
static uint32_t rfc1071(uint32_t sum, const uint8_t *bytes, size_t length_bytes)
{
	for (size_t i = 0; i < length_bytes; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The checksum is made right, so that only the field itself is wrong. */
void test_packet_of_another_ipv4(void)
{
	static const struct {
		uint8_t offset, value;
	} rows[] = {{0, 0x46}, {0, 0x55}, {9, 6}};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t length_bytes = small_frame(true);
		uint8_t *ip = frame + 14;
		uint32_t sum;

		ip[rows[i].offset] = rows[i].value;
		ip[10] = ip[11] = 0;
		sum = ~rfc1071(0, ip, 20);
		ip[10] = (uint8_t)(sum >> 8);
		ip[11] = (uint8_t)sum;
		TEST_ASSERT_EQUAL_INT(SIM_DECODE_NOT_ROCE, decode(length_bytes));
	}
}

void test_packet_checksums(void)
{
	size_t length_bytes;
	uint32_t sum;

	small_frame(true);
	TEST_ASSERT_EQUAL_HEX32(0xffff, rfc1071(0, frame + 14, 20));
	TEST_ASSERT_EQUAL_HEX8(0, frame[14 + 20 + 6]);
	TEST_ASSERT_EQUAL_HEX8(0, frame[14 + 20 + 7]);

	for (unsigned int round = 0; round < 100; round++) {
		length_bytes = small_frame(false);
		sum = rfc1071(17 + (uint32_t)(length_bytes - 54), frame + 14 + 8, 32);
		sum = rfc1071(sum, frame + 54, length_bytes - 54);
		TEST_ASSERT_EQUAL_HEX32(0xffff, sum);
	}

	/* The checksum stays as it was captured, even if it is 0. */
	route.udp_checksum_given = true;
	route.udp_checksum = 0;
	sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_HEX8(0, frame[54 + 6] | frame[54 + 7]);
	route.udp_checksum = 0xabcd;
	sim_packet_encode(&packet, &route, copy, frame, NULL);
	TEST_ASSERT_EQUAL_HEX8(0xab, frame[54 + 6]);
	TEST_ASSERT_EQUAL_HEX8(0xcd, frame[54 + 7]);
}

void test_packet_grh(void)
{
	uint8_t grh[40];

	small_frame(false);
	sim_packet_grh(&packet, &route, grh);
	TEST_ASSERT_EQUAL_HEX8_ARRAY(frame + 14, grh, 40);

	small_frame(true);
	sim_packet_grh(&packet, &route, grh);
	for (unsigned int i = 0; i < 20; i++)
		TEST_ASSERT_EQUAL_HEX8(0xcc, grh[i]);
	TEST_ASSERT_EQUAL_HEX8_ARRAY(frame + 14, grh + 20, 20);
}

void test_packet_source_port_is_symmetric(void)
{
	unsigned int different = 0;

	for (uint32_t a = 16; a < 80; a++) {
		for (uint32_t b = 16; b < 80; b++) {
			TEST_ASSERT_EQUAL_HEX16(sim_udp_source_port(a, b),
						sim_udp_source_port(b, a));
			TEST_ASSERT_TRUE(sim_udp_source_port(a, b) >= 0xc000);
		}
	}
	for (uint32_t qpn = 16; qpn < 1016; qpn++)
		different +=
			sim_udp_source_port(qpn, qpn + 1) != sim_udp_source_port(qpn + 1, qpn + 2);
	TEST_ASSERT_TRUE(different > 990);
	TEST_ASSERT_TRUE(sim_udp_source_port(0xffffff, 0xfffffe) >= 0xc000);
}

/*
 * Packets between Linux's rxe and a user-space peer, captured by tcpdump. The second has a wrong
 * ICRC on purpose.
 */
static void check_capture(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *capture = pcap_open_offline(path, error);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	struct sim_span span;
	unsigned int number = 0;
	char where[32];

	TEST_ASSERT_NOT_NULL_MESSAGE(capture, error);
	while (pcap_next_ex(capture, &header, &bytes) == 1) {
		enum sim_decode result =
			sim_packet_decode(bytes, header->caplen, &packet, &span, &route);
		const size_t same_bytes = header->caplen - (number == 1 ? 4 : 0);

		number++;
		snprintf(where, sizeof(where), "frame %u", number);
		TEST_ASSERT_EQUAL_STRING_MESSAGE(number == 2 ? "bad ICRC" : "ok",
						 sim_decode_str(result), where);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(
			header->caplen, sim_packet_encode(&packet, &route, copy, frame, NULL),
			where);
		TEST_ASSERT_EQUAL_MEMORY_MESSAGE(bytes, frame, same_bytes, where);
		if (number == 2)
			TEST_ASSERT_EQUAL_INT(SIM_DECODE_OK, decode(header->caplen));
	}
	pcap_close(capture);
	TEST_ASSERT_EQUAL_UINT(23, number);
}

void test_packet_kernel_capture_ipv4(void)
{
	check_capture("test/data/rxe-capture-ipv4.pcap");
}

void test_packet_kernel_capture_ipv6(void)
{
	check_capture("test/data/rxe-capture-ipv6.pcap");
}

/* Linux include/rdma/ib_verbs.h, rdma_calc_flow_label and rdma_flow_label_to_udp_sport. */
void test_packet_source_port_of_small_numbers(void)
{
	TEST_ASSERT_EQUAL_HEX16(0xc001, sim_udp_source_port(1, 1));
	TEST_ASSERT_EQUAL_HEX16(0xc002, sim_udp_source_port(1, 2));
	TEST_ASSERT_EQUAL_HEX16(0xc001, sim_udp_source_port(0x80, 0x80));
}

/* RFC 1071. The folded sum carries into bit 32 once more. */
void test_packet_checksum_folds_every_carry(void)
{
	static const uint8_t data[12] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	const uint16_t sum = sim_checksum_end(sim_checksum_add(0, data, sizeof(data)));
	uint8_t bytes[2];

	memcpy(bytes, &sum, sizeof(bytes));
	TEST_ASSERT_EQUAL_HEX8(0xfe, bytes[0]);
	TEST_ASSERT_EQUAL_HEX8(0xff, bytes[1]);
}

void test_packet_decode_names(void)
{
	TEST_ASSERT_EQUAL_STRING("truncated", sim_decode_str(SIM_DECODE_TRUNCATED));
	TEST_ASSERT_EQUAL_STRING("unknown", sim_decode_str((enum sim_decode)99));
}

/* The value of a field as the decoder reads it; the pad and the version are not in the packet. */
static uint64_t value_of(const struct sim_packet *got, enum sim_field field)
{
	switch (field) {
	case SIM_FIELD_OPCODE:
		return got->opcode;
	case SIM_FIELD_SOLICITED:
		return (got->flags & SIM_PACKET_SOLICITED) != 0;
	case SIM_FIELD_PKEY:
		return got->pkey;
	case SIM_FIELD_DEST_QPN:
		return got->dest_qpn;
	case SIM_FIELD_ACK_REQUEST:
		return (got->flags & SIM_PACKET_ACK_REQUEST) != 0;
	case SIM_FIELD_PSN:
		return got->psn;
	case SIM_FIELD_SYNDROME:
		return got->syndrome;
	case SIM_FIELD_MSN:
		return got->msn;
	case SIM_FIELD_REMOTE_ADDR:
		return got->remote_addr;
	case SIM_FIELD_RKEY:
		return got->rkey;
	case SIM_FIELD_DMA_BYTES:
		return got->dma_bytes;
	case SIM_FIELD_SWAP_ADD:
		return got->swap_add;
	case SIM_FIELD_COMPARE:
		return got->compare;
	case SIM_FIELD_ORIGINAL:
		return got->original;
	case SIM_FIELD_QKEY:
		return got->qkey;
	case SIM_FIELD_SOURCE_QPN:
		return got->source_qpn;
	case SIM_FIELD_IMM_DATA:
		return be32toh(got->imm_data);
	default:
		return got->xrc_srqn;
	}
}

static bool is_decoded(enum sim_field field)
{
	return field != SIM_FIELD_PAD && field != SIM_FIELD_VERSION && field != SIM_FIELD_OPCODE;
}

/* Replaces a field, keeps some of its bits, and turns them; no other field changes. */
static void check_field(uint8_t opcode, enum sim_field field, const char *where)
{
	const uint64_t max = sim_field_max(field);
	const uint64_t value = random_u64() & max, mask = random_u64(), flip = random_u64() & max;
	const struct sim_field_place *place;
	struct sim_packet got, before;
	size_t offset = 0, length_bytes;
	struct sim_span span;
	uint64_t want;

	random_packet(opcode);
	random_route(true);
	before = packet;
	length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
	place = sim_field_find(opcode, field, &offset);
	if (!place)
		return;
	want = ((value_of(&before, field) & ~mask) | (value & mask)) & max;
	want ^= flip;
	sim_field_change(frame + sim_route_bytes(&route), place, offset,
			 &(struct sim_bits){value, mask, flip});
	sim_packet_seal(frame, length_bytes, &route);
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		SIM_DECODE_OK, sim_packet_decode(frame, length_bytes, &got, &span, &route), where);
	TEST_ASSERT_EQUAL_HEX64_MESSAGE(want, value_of(&got, field), where);
	for (enum sim_field other = 0; other < SIM_FIELDS; other++)
		if (other != field && is_decoded(other))
			TEST_ASSERT_EQUAL_HEX64_MESSAGE(value_of(&before, other),
							value_of(&got, other), where);
}

void test_packet_fields_are_changed_where_they_stand(void)
{
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!(sim_opcodes[opcode].flags & SIM_OP_VALID))
			continue;
		for (enum sim_field field = 0; field < SIM_FIELDS; field++) {
			char where[64];

			snprintf(where, sizeof(where), "seed %u, %s, field %d", SEED,
				 sim_opcodes[opcode].name, field);
			if (is_decoded(field))
				check_field((uint8_t)opcode, field, where);
		}
	}
}

void test_packet_fields_that_stop_the_decoder(void)
{
	static const struct {
		enum sim_field field;
		uint64_t value;
		enum sim_decode want;
	} rows[] = {
		{SIM_FIELD_VERSION, 1, SIM_DECODE_BAD_VERSION},
		{SIM_FIELD_VERSION, 15, SIM_DECODE_BAD_VERSION},
		{SIM_FIELD_OPCODE, 0x1f, SIM_DECODE_BAD_OPCODE},
		{SIM_FIELD_PAD, 1, SIM_DECODE_BAD_PAD},
		{SIM_FIELD_PAD, 3, SIM_DECODE_BAD_PAD},
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sim_field_place *place;
		size_t offset, length_bytes;
		struct sim_span span;

		random_packet(SIM_RC_SEND_ONLY);
		random_route(false);
		length_bytes = sim_packet_encode(&packet, &route, copy, frame, NULL);
		place = sim_field_find(SIM_RC_SEND_ONLY, rows[i].field, &offset);
		sim_field_change(frame + sim_route_bytes(&route), place, offset,
				 &(struct sim_bits){rows[i].value, UINT64_MAX, 0});
		sim_packet_seal(frame, length_bytes, &route);
		TEST_ASSERT_EQUAL_INT(rows[i].want, sim_packet_decode(frame, length_bytes, &packet,
								      &span, &route));
	}
}
