/* SPDX-License-Identifier: MIT */
/*
 * Packets of the kernel's SoftRoCE (the captures in test/data), as the wire `udp` receives them: without
 * the headers that the kernel takes off. The second packet of each has a wrong ICRC on purpose.
 */
#include "test/unit/udp_peer.h"

#include <pcap/pcap.h>
#include <stdio.h>

static uint8_t buffer[UDP_BUFFER_BYTES];
static union ibv_gid receiver;

void setUp(void)
{
	memset(&receiver, 0, sizeof(receiver));
}

void tearDown(void)
{
}

/* What the kernel hands over of a frame. */
static void take_off(const uint8_t *frame, size_t frame_bytes, struct udp_arrival *arrival)
{
	const bool ipv4 = frame[12] == 0x08;
	const size_t udp_at = 14 + (ipv4 ? 20 : 40);

	*arrival = (struct udp_arrival){
		.payload = buffer + UDP_HEAD_BYTES,
		.bytes = frame_bytes - udp_at - 8,
		.source_port = sim_load_be16(frame + udp_at),
		.traffic_class = ipv4 ? frame[15] : (uint8_t)(sim_load_be32(frame + 14) >> 20),
		.hop_limit = ipv4 ? frame[22] : frame[21],
		.dest_gid = &receiver,
	};
	memset(buffer, 0xcc, sizeof(buffer));
	memcpy(arrival->payload, frame + udp_at + 8, arrival->bytes);
	memset(&receiver, 0, 16);
	if (!ipv4) {
		memcpy(arrival->source_gid, frame + 22, 16);
		memcpy(receiver.raw, frame + 38, 16);
		return;
	}
	memset(arrival->source_gid + 10, 0xff, 2);
	memcpy(arrival->source_gid + 12, frame + 26, 4);
	memset(receiver.raw + 10, 0xff, 2);
	memcpy(receiver.raw + 12, frame + 30, 4);
}

/* The frame is the captured one, but for its MACs, the flow label, which the kernel does not tell, and the
 * UDP checksum, which the kernel has checked. */
static void expect_frame(const uint8_t *captured, size_t captured_bytes, uint8_t *frame,
			 size_t frame_bytes, const char *where)
{
	const bool ipv4 = captured[12] == 0x08;

	TEST_ASSERT_EQUAL_UINT_MESSAGE(captured_bytes, frame_bytes, where);
	memcpy(frame, captured, 12);
	memcpy(frame + 14 + (ipv4 ? 20 : 40) + 6, captured + 14 + (ipv4 ? 20 : 40) + 6, 2);
	if (!ipv4)
		memcpy(frame + 15, captured + 15, 3);
	TEST_ASSERT_EQUAL_MEMORY_MESSAGE(captured, frame, frame_bytes, where);
}

/* Byte 4 of the BTH, FECN and BECN, is not covered by the ICRC. */
static void expect_refused(const uint8_t *frame, size_t frame_bytes, const char *where)
{
	struct udp_arrival arrival;
	uint16_t identification;
	size_t made_bytes;

	take_off(frame, frame_bytes, &arrival);
	for (size_t bit = 0; bit < arrival.bytes * 8; bit++) {
		uint8_t *made;

		if (bit / 8 == 4)
			continue;
		take_off(frame, frame_bytes, &arrival);
		arrival.payload[bit / 8] ^= (uint8_t)(1 << bit % 8);
		made = udp_frame_make(&arrival, &made_bytes);
		TEST_ASSERT_FALSE_MESSAGE(sim_packet_identify(made, made_bytes, &identification),
					  where);
	}
}

static unsigned int read_capture(const char *path)
{
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *file = pcap_open_offline(path, error);
	struct pcap_pkthdr *header;
	const uint8_t *frame;
	unsigned int count = 0;

	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	while (pcap_next_ex(file, &header, &frame) == 1) {
		struct udp_arrival arrival;
		uint16_t identification;
		size_t made_bytes;
		uint8_t *made;
		char where[300];

		snprintf(where, sizeof(where), "%s, frame %u", path, ++count);
		take_off(frame, header->caplen, &arrival);
		made = udp_frame_make(&arrival, &made_bytes);
		TEST_ASSERT_EQUAL_INT_MESSAGE(
			count != 2, sim_packet_identify(made, made_bytes, &identification), where);
		if (count == 2)
			continue;
		expect_frame(frame, header->caplen, made, made_bytes, where);
		expect_refused(frame, header->caplen, where);
	}
	pcap_close(file);
	return count;
}

void test_packets_of_the_kernel_over_ipv4(void)
{
	TEST_ASSERT_EQUAL_UINT(23, read_capture("test/data/rxe-capture-ipv4.pcap"));
}

void test_packets_of_the_kernel_over_ipv6(void)
{
	TEST_ASSERT_EQUAL_UINT(23, read_capture("test/data/rxe-capture-ipv6.pcap"));
}
