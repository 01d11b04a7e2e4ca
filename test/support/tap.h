/* SPDX-License-Identifier: MIT */
/*
 * A tap on the simulated wire that keeps whole packets: their addresses, the bits of the BTH, and
 * every byte from the BTH to the payload. ts_watch() of support.h keeps less and holds more packets;
 * a world has one of the two at a time.
 */
#ifndef TEST_SUPPORT_TAP_H
#define TEST_SUPPORT_TAP_H

#include "test/support/support.h"

#define TS_TAP_PACKETS 512
#define TS_TAP_BYTES   1200 /* the longest packet that the tap keeps whole: path MTU 1024 */

#define TS_TRANSPORT 0xe0 /* the bits of the opcode that name the transport */

struct ts_packet {
	uint64_t now_ns;
	bool lost;
	/* The headers before the BTH. Zeros stand for fields that the frame does not have. */
	uint8_t source_gid[16], dest_gid[16]; /* of the IP header or GRH; IPv4 as ::ffff:a.b.c.d */
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	uint16_t udp_source_port;
	uint8_t sl;
	uint16_t slid, dlid;
	bool has_grh;
	/* The BTH. */
	uint8_t opcode;
	bool solicited, migrated, ack_request;
	uint16_t pkey;
	uint32_t dest_qpn, psn;
	/* From the BTH up to the pad, without the ICRC. */
	uint32_t length_bytes;
	uint8_t bytes[TS_TAP_BYTES];
};

struct ts_tap {
	struct vt *t;
	unsigned int count;
	struct ts_packet packets[TS_TAP_PACKETS];
};

/* Keeps the packets of the world from now on until the test ends. Needs VT_NEEDS_SIM. */
struct ts_tap *ts_tap(struct vt *t);

/* Returns true if the opcode is one of a request, on any transport. */
bool ts_is_request(uint8_t opcode);

/* Returns packet `index` of those to a QPN, requests or answers; NULL if there are not so many. */
const struct ts_packet *ts_tap_request(const struct ts_tap *tap, uint32_t dest_qpn,
				       unsigned int index);
const struct ts_packet *ts_tap_answer(const struct ts_tap *tap, uint32_t dest_qpn,
				      unsigned int index);
unsigned int ts_tap_requests(const struct ts_tap *tap, uint32_t dest_qpn);
unsigned int ts_tap_answers(const struct ts_tap *tap, uint32_t dest_qpn);

/* Returns the 32 bits at an offset behind the BTH, in host order. */
uint32_t ts_tap_word(const struct ts_packet *packet, unsigned int offset);

#endif
