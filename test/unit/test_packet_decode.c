/* SPDX-License-Identifier: MIT */
/* <verbena/packet.h>: frames as struct vb_packet, and what is wrong with a frame. */
#include "backends/sim/backend.h"
#include "sim/net/trace.h"
#include "sim/wire/bytes.h"
#include "test/unit/random_packet.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/packet.h>

#define PAYLOAD_BYTES 5
/* The offset of the BTH over IPv4. */
#define IPV4_BTH (14 + 20 + 8)

static const char *const networks[] = {
	"RoCE v2 over IPv4", "RoCE v2 over IPv6", "RoCE v1", "InfiniBand", "InfiniBand with a GRH",
};

enum { NETWORKS = sizeof(networks) / sizeof(networks[0]), IPV4 = 0, INFINIBAND = 3 };

static uint8_t frame[SIM_FRAME_BYTES_MAX];
static char where[96];

void setUp(void)
{
	random_state = SEED;
}

void tearDown(void)
{
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

static const char *sentence(void)
{
	static char text[512];

	return vb_why_text(vb_backend_sim.last_why(), text, sizeof(text));
}

/* Encodes a random packet of the opcode; returns the frame's length. */
static size_t make_frame(uint8_t opcode, unsigned int network)
{
	static const uint8_t payload[PAYLOAD_BYTES] = {1, 2, 3, 4, 5};
	static const struct sim_span span = {payload, PAYLOAD_BYTES};

	random_packet(opcode);
	if (network < 2)
		random_route(network == IPV4);
	else if (network == 2)
		random_roce_v1_route();
	else
		random_infiniband_route(network > INFINIBAND);
	if (sim_opcodes[opcode].flags & SIM_OP_PAYLOAD) {
		packet.payload_bytes = PAYLOAD_BYTES;
		packet.spans = &span;
		packet.span_count = 1;
	}
	snprintf(where, sizeof(where), "seed %u, opcode 0x%02x, %s", SEED, opcode,
		 networks[network]);
	return sim_packet_encode(&packet, &route, copy, frame, NULL);
}

static bool names(const char *name, const char *word)
{
	return strstr(name, word) != NULL;
}

/* Returns the headers that a packet of this name has. */
static unsigned int headers_of(const char *name)
{
	const bool response = names(name, "RESPONSE") || names(name, "ACKNOWLEDGE");
	const bool cnp = strcmp(name, "CNP") == 0;
	unsigned int has = 0;

	if (names(name, "WRITE_FIRST") || names(name, "WRITE_ONLY") ||
	    names(name, "READ_REQUEST") || names(name, "ATOMIC_WRITE"))
		has |= VB_PACKET_HAS_RETH;
	if (response && !names(name, "MIDDLE"))
		has |= VB_PACKET_HAS_AETH;
	if (names(name, "IMMEDIATE"))
		has |= VB_PACKET_HAS_IMM;
	if (names(name, "INVALIDATE"))
		has |= VB_PACKET_HAS_INVALIDATE;
	if (names(name, "SWAP") || names(name, "FETCH"))
		has |= VB_PACKET_HAS_ATOMIC;
	if (names(name, "ATOMIC_ACKNOWLEDGE"))
		has |= VB_PACKET_HAS_ORIGINAL;
	if ((names(name, "UD ") || names(name, "RD ")) && !response)
		has |= VB_PACKET_HAS_DETH;
	if (names(name, "XRC ") && !response && !cnp)
		has |= VB_PACKET_HAS_XRC;
	return has;
}

/* The fields of headers that a packet does not have are 0 on both sides. */
static void check_fields(const struct vb_packet *got, unsigned int network)
{
	const bool infiniband = network >= INFINIBAND;
	const bool gids = network != INFINIBAND;
	const unsigned int has = headers_of(got->opcode_name) | (gids ? VB_PACKET_HAS_GIDS : 0) |
				 (infiniband ? VB_PACKET_HAS_LIDS : 0);

	TEST_ASSERT_EQUAL_HEX_MESSAGE(has, got->has, where);
	TEST_ASSERT_EQUAL_HEX8_MESSAGE(packet.opcode, got->opcode, where);
	TEST_ASSERT_EQUAL_INT_MESSAGE((packet.flags & SIM_PACKET_SOLICITED) != 0, got->solicited,
				      where);
	TEST_ASSERT_EQUAL_INT_MESSAGE((packet.flags & SIM_PACKET_ACK_REQUEST) != 0,
				      got->ack_request, where);
	TEST_ASSERT_FALSE_MESSAGE(got->lost, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.pkey, got->pkey, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.dest_qpn, got->dest_qpn, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.source_qpn, got->source_qpn, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.psn, got->psn, where);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(packet.payload_bytes, got->payload_bytes, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.syndrome, got->syndrome, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.msn, got->msn, where);
	TEST_ASSERT_EQUAL_HEX64_MESSAGE(packet.remote_addr, got->remote_addr, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.rkey, got->rkey, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.dma_bytes, got->dma_bytes, where);
	TEST_ASSERT_EQUAL_HEX64_MESSAGE(packet.swap_add, got->swap_add, where);
	TEST_ASSERT_EQUAL_HEX64_MESSAGE(packet.compare, got->compare, where);
	TEST_ASSERT_EQUAL_HEX64_MESSAGE(packet.original, got->original, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(be32toh(packet.imm_data), got->imm, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.qkey, got->qkey, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(packet.xrc_srqn, got->xrc_srqn, where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(route.source_gid, got->source_gid, 16, where);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(route.dest_gid, got->dest_gid, 16, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(route.slid, got->slid, where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(route.dlid, got->dlid, where);
}

void test_packet_decode_of_every_opcode_on_every_network(void)
{
	unsigned int count = 0;

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (!sim_opcodes[opcode].name)
			continue;
		for (unsigned int network = 0; network < NETWORKS; network++, count++) {
			const size_t length_bytes = make_frame((uint8_t)opcode, network);
			struct vb_packet got;

			memset(&got, 0xee, sizeof(got));
			TEST_ASSERT_EQUAL_INT_MESSAGE(
				0,
				vb_packet_decode(frame, length_bytes, network >= INFINIBAND, &got),
				where);
			TEST_ASSERT_EQUAL_STRING_MESSAGE(sim_opcodes[opcode].name, got.opcode_name,
							 where);
			check_fields(&got, network);
		}
	}
	TEST_ASSERT_EQUAL_UINT(85 * NETWORKS, count);
}

void test_packet_decode_truncated_anywhere(void)
{
	static const uint8_t opcodes[] = {SIM_RC_SEND_ONLY_IMM, SIM_RC_FETCH_ADD, SIM_RC_ATOMIC_ACK,
					  SIM_UD_SEND_ONLY};
	struct vb_packet got;

	for (unsigned int network = 0; network < NETWORKS; network++) {
		for (unsigned int i = 0; i < sizeof(opcodes); i++) {
			const size_t length_bytes = make_frame(opcodes[i], network);

			for (size_t cut = 0; cut < length_bytes; cut++) {
				/* A read behind the end of the block is seen by a sanitizer. */
				uint8_t *block = malloc(cut ? cut : 1);

				memcpy(block, frame, cut);
				TEST_ASSERT_EQUAL_INT_MESSAGE(
					EBADMSG,
					vb_packet_decode(block, cut, network >= INFINIBAND, &got),
					where);
				free(block);
				TEST_ASSERT_EQUAL_HEX_MESSAGE(VB_WHY_PACKET_TRUNCATED,
							      vb_backend_sim.last_why()->reason,
							      where);
			}
		}
	}
	make_frame(SIM_UD_SEND_ONLY, IPV4);
	TEST_ASSERT_EQUAL_INT(EBADMSG, vb_packet_decode(frame, 60, false, &got));
	TEST_ASSERT_EQUAL_STRING(
		"vb_packet_decode: the frame of 60 bytes is shorter than its headers say; give the "
		"whole frame, up to the ICRC or (InfiniBand) the VCRC",
		sentence());
}

/* Where the payload of a frame begins. */
static const uint8_t *payload_of(size_t length_bytes, uint32_t payload_bytes, bool infiniband)
{
	return frame + length_bytes - (infiniband ? 2 : 0) - 4 - (-payload_bytes & 3) -
	       payload_bytes;
}

void test_packet_encode_is_the_opposite_of_decode(void)
{
	static const unsigned int roce_v1 = 2;
	uint8_t again[VB_FRAME_BYTES_MAX];

	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		for (unsigned int network = 0; sim_opcodes[opcode].name && network < NETWORKS;
		     network++) {
			const bool infiniband = network >= INFINIBAND;
			const size_t length_bytes = make_frame((uint8_t)opcode, network);
			struct vb_packet first, second;
			size_t again_bytes;

			if (network == roce_v1)
				continue;
			vb_packet_decode(frame, length_bytes, infiniband, &first);
			again_bytes = vb_packet_encode(
				&first, payload_of(length_bytes, first.payload_bytes, infiniband),
				again);
			TEST_ASSERT_EQUAL_UINT_MESSAGE(length_bytes, again_bytes, where);
			TEST_ASSERT_EQUAL_INT_MESSAGE(
				0, vb_packet_decode(again, again_bytes, infiniband, &second),
				where);
			check_fields(&second, network);
			memcpy(frame, again, again_bytes);
			if (first.payload_bytes)
				TEST_ASSERT_EQUAL_MEMORY_MESSAGE(
					"\1\2\3\4\5",
					payload_of(again_bytes, PAYLOAD_BYTES, infiniband),
					PAYLOAD_BYTES, where);
		}
	}
}

void test_packet_encode_refuses(void)
{
	struct vb_packet wrong = {.opcode = 0x1c};

	TEST_ASSERT_EQUAL_UINT(0, vb_packet_encode(&wrong, "", frame));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_ENCODE_OPCODE, vb_backend_sim.last_why()->reason);
	TEST_ASSERT_EQUAL_STRING(
		"vb_packet_encode: opcode 0x1c is reserved, so it is unknown which headers the "
		"packet has; encode a packet with an opcode that has a name, and change its BTH in "
		"the frame",
		sentence());
	wrong = (struct vb_packet){.opcode = SIM_RC_SEND_ONLY, .payload_bytes = 4097};
	TEST_ASSERT_EQUAL_UINT(0, vb_packet_encode(&wrong, frame, frame));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_ENCODE_PAYLOAD, vb_backend_sim.last_why()->reason);
	TEST_ASSERT_EQUAL_STRING(
		"vb_packet_encode: the payload has 4097 bytes, and the longest payload of a packet "
		"4096 bytes; send a longer message as several packets",
		sentence());
}

static void expect(size_t length_bytes, bool infiniband, enum vb_reason reason, const char *text,
		   struct vb_packet *got)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(
		EBADMSG, vb_packet_decode(frame, length_bytes, infiniband, got), where);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(text, sentence(), where);
	TEST_ASSERT_EQUAL_HEX_MESSAGE(reason, vb_backend_sim.last_why()->reason, where);
}

void test_packet_decode_wrong_icrc_leaves_the_headers(void)
{
	for (unsigned int network = 0; network < NETWORKS; network++) {
		const bool infiniband = network >= INFINIBAND;
		const size_t length_bytes = make_frame(SIM_RC_WRITE_ONLY_IMM, network);
		struct vb_packet got;

		/* In the payload. */
		frame[length_bytes - (infiniband ? 2 : 0) - 4 - 8] ^= 1;
		expect(length_bytes, infiniband, VB_WHY_PACKET_ICRC,
		       "vb_packet_decode: the ICRC of the RC RDMA_WRITE_ONLY_WITH_IMMEDIATE packet "
		       "is wrong; look for what has changed the frame: every port drops it",
		       &got);
		check_fields(&got, network);
	}
}

void test_packet_decode_wrong_vcrc_leaves_the_headers(void)
{
	const size_t length_bytes = make_frame(SIM_RC_ACK, INFINIBAND);
	struct vb_packet got;

	frame[length_bytes - 1] ^= 0x80;
	expect(length_bytes, true, VB_WHY_PACKET_VCRC,
	       "vb_packet_decode: the VCRC of the RC ACKNOWLEDGE packet is wrong; look for what "
	       "has "
	       "changed the frame on this link: every port drops it",
	       &got);
	check_fields(&got, INFINIBAND);
}

void test_packet_decode_of_wrong_headers(void)
{
	size_t length_bytes = make_frame(SIM_RC_SEND_ONLY, IPV4);
	struct vb_packet got;

	frame[IPV4_BTH] = 0x1c;
	expect(length_bytes, false, VB_WHY_PACKET_OPCODE,
	       "vb_packet_decode: opcode 0x1c of the BTH is reserved; leave out the packet: every "
	       "port drops it",
	       &got);
	TEST_ASSERT_NULL(got.opcode_name);
	TEST_ASSERT_EQUAL_HEX8(0x1c, got.opcode);
	TEST_ASSERT_EQUAL_HEX(packet.psn, got.psn);
	TEST_ASSERT_EQUAL_HEX(VB_PACKET_HAS_GIDS, got.has);

	length_bytes = make_frame(SIM_RC_SEND_ONLY, IPV4);
	frame[IPV4_BTH + 1] |= 1;
	expect(length_bytes, false, VB_WHY_PACKET_VERSION,
	       "vb_packet_decode: the transport header version (TVer) of the BTH is not 0; leave "
	       "out the packet: every port drops it",
	       &got);
	TEST_ASSERT_EQUAL_HEX(packet.dest_qpn, got.dest_qpn);

	length_bytes = make_frame(SIM_RC_ACK, IPV4);
	frame[IPV4_BTH + 1] |= 0x30;
	expect(length_bytes, false, VB_WHY_PACKET_PAD,
	       "vb_packet_decode: the pad count of the BTH does not fit the payload: payload and "
	       "pad are a multiple of 4 bytes; leave out the packet: every port drops it",
	       &got);
	TEST_ASSERT_EQUAL_STRING("RC ACKNOWLEDGE", got.opcode_name);
}

void test_packet_decode_of_another_protocol(void)
{
	size_t length_bytes = make_frame(SIM_RC_SEND_ONLY, IPV4);
	struct vb_packet got;
	char text[256];

	sim_store_be16(frame + 12, 0x0806); /* ARP */
	snprintf(text, sizeof(text),
		 "vb_packet_decode: the frame of %zu bytes is no packet of RoCE: RoCE v2 is UDP to "
		 "port 4791 over IPv4 or IPv6, RoCE v1 has the Ethertype 0x8915; leave out the "
		 "frame, or decode it as a frame of InfiniBand",
		 length_bytes);
	expect(length_bytes, false, VB_WHY_PACKET_NOT_ROCE, text, &got);
	TEST_ASSERT_EQUAL_HEX(0, got.has);

	length_bytes = make_frame(SIM_RC_SEND_ONLY, INFINIBAND);
	frame[1] &= 0xfc; /* a raw packet */
	snprintf(text, sizeof(text),
		 "vb_packet_decode: the frame of %zu bytes is no packet of InfiniBand's transport: "
		 "the LRH or the GRH has another version, next header or length; leave out the "
		 "frame, or decode it as a frame of Ethernet",
		 length_bytes);
	expect(length_bytes, true, VB_WHY_PACKET_NOT_INFINIBAND, text, &got);
}

void test_packet_decode_shows_the_mark_of_a_lost_packet(void)
{
	const size_t length_bytes = make_frame(SIM_RC_SEND_ONLY, IPV4);
	struct vb_packet got;

	memcpy(frame, sim_trace_lost_mac, sizeof(sim_trace_lost_mac));
	TEST_ASSERT_EQUAL_INT(0, vb_packet_decode(frame, length_bytes, false, &got));
	TEST_ASSERT_TRUE(got.lost);
	frame[5] ^= 1;
	TEST_ASSERT_EQUAL_INT(0, vb_packet_decode(frame, length_bytes, false, &got));
	TEST_ASSERT_FALSE(got.lost);
}

/* ibv_modify_qp(3), min_rnr_timer. */
void test_syndrome_text_of_rnr_naks(void)
{
	static const char *const times[32] = {
		"655.36", "0.01",  "0.02",  "0.03",   "0.04",	"0.06",	  "0.08",   "0.12",
		"0.16",	  "0.24",  "0.32",  "0.48",   "0.64",	"0.96",	  "1.28",   "1.92",
		"2.56",	  "3.84",  "5.12",  "7.68",   "10.24",	"15.36",  "20.48",  "30.72",
		"40.96",  "61.44", "81.92", "122.88", "163.84", "245.76", "327.68", "491.52",
	};
	char text[32], expected[32];

	for (unsigned int code = 0; code < 32; code++) {
		snprintf(expected, sizeof(expected), "RNR NAK (%s ms)", times[code]);
		TEST_ASSERT_EQUAL_STRING(
			expected, vb_syndrome_text((uint8_t)(0x20 | code), text, sizeof(text)));
	}
}

void test_syndrome_text_of_acks_and_naks(void)
{
	static const struct {
		uint8_t syndrome;
		const char *text;
	} rows[] = {
		{0x00, "ACK"},
		{0x1f, "ACK"},
		{0x60, "NAK: PSN sequence error"},
		{0x61, "NAK: invalid request"},
		{0x62, "NAK: remote access error"},
		{0x63, "NAK: remote operational error"},
		{0x64, "NAK: invalid RD request"},
		{0x65, "NAK: reserved code 5"},
		{0x7f, "NAK: reserved code 31"},
		{0x40, "reserved syndrome 0x40"},
		{0xff, "reserved syndrome 0xff"},
	};
	char text[32];

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		TEST_ASSERT_EQUAL_STRING(rows[i].text,
					 vb_syndrome_text(rows[i].syndrome, text, sizeof(text)));
	TEST_ASSERT_EQUAL_PTR(text, vb_syndrome_text(0x62, text, 8));
	TEST_ASSERT_EQUAL_STRING("NAK: re", text);
}
