/* SPDX-License-Identifier: MIT */
/* Packets of the wire `udp`, and a plain UDP socket that stands for a peer. */
#ifndef TEST_UNIT_UDP_PEER_H
#define TEST_UNIT_UDP_PEER_H

#include "backends/sim/wire/udp_private.h"

#include "sim/wire/bytes.h"
#include "sim/wire/icrc.h"
#include "unity.h"

#include <arpa/inet.h>
#include <infiniband/opcode.h>
#include <string.h>
#include <unistd.h>

#define UDP_PAYLOAD_MAX 2048

static uint8_t udp_payload[UDP_PAYLOAD_MAX];

static int udp_copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

/* Returns the route of a packet between two addresses. */
static inline struct sim_route udp_route(const union ibv_gid *source, const union ibv_gid *dest)
{
	struct sim_route between = {
		.hop_limit = 64, .udp_source_port = SIM_UDP_PORT, .ip_fragment = 0x4000};

	memcpy(between.source_gid, source, 16);
	memcpy(between.dest_gid, dest, 16);
	return between;
}

/* Encodes a UC SEND_ONLY whose payload is a counting of bytes. Returns the length of the frame. */
static inline size_t udp_encode(const struct sim_route *by, uint32_t psn, uint32_t payload_bytes,
				uint8_t *frame)
{
	const struct sim_span span = {udp_payload, payload_bytes};
	const struct sim_packet sent = {
		.opcode = IBV_OPCODE_UC_SEND_ONLY,
		.pkey = 0xffff,
		.dest_qpn = 0x12,
		.psn = psn,
		.payload_bytes = payload_bytes,
		.spans = &span,
		.span_count = payload_bytes > 0,
	};

	for (uint32_t i = 0; i < payload_bytes; i++)
		udp_payload[i] = (uint8_t)(psn + i);
	return sim_packet_encode(&sent, by, udp_copy, frame, NULL);
}

/* A plain socket, which is bound to port 4791 of an address, or to any port if it is 0. */
static inline int udp_plain(const union ibv_gid *gid, uint16_t port)
{
	union udp_sockaddr at;
	const socklen_t bytes = udp_sockaddr(gid->raw, &at);
	const int fd = socket(at.any.sa_family, SOCK_DGRAM, 0);

	at.v4.sin_port = htons(port); /* the port of IPv6 is at the same place */
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, bind(fd, &at.any, bytes), "bind");
	return fd;
}

static inline void udp_plain_send(int fd, const union ibv_gid *to, const void *datagram,
				  size_t bytes)
{
	union udp_sockaddr at;
	const socklen_t at_bytes = udp_sockaddr(to->raw, &at);

	TEST_ASSERT_EQUAL_INT_MESSAGE(bytes, sendto(fd, datagram, bytes, 0, &at.any, at_bytes),
				      "sendto");
}

static inline union ibv_gid udp_gid(const char *text)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (inet_pton(AF_INET, text, gid.raw + 12) != 1)
		TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, text, gid.raw));
	return gid;
}

#endif
