/* SPDX-License-Identifier: MIT */
#include "test/support/tap.h"

#include <arpa/inet.h>
#include <verbena/sim.h>

#define ETHERNET_BYTES 14
#define IPV4_BYTES     20
#define IPV6_BYTES     40
#define UDP_BYTES      8
#define LRH_BYTES      8
#define BTH_BYTES      12
#define ICRC_BYTES     4
#define VCRC_BYTES     2

static uint32_t get16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

static uint32_t get24(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 8 | bytes[2];
}

static uint32_t get32(const uint8_t *bytes)
{
	return get16(bytes) << 16 | get16(bytes + 2);
}

static void read_ipv4(struct ts_packet *packet, const uint8_t *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

	packet->traffic_class = ip[1];
	packet->hop_limit = ip[8];
	memcpy(packet->source_gid, mapped, sizeof(mapped));
	memcpy(packet->source_gid + 12, ip + 12, 4);
	memcpy(packet->dest_gid, mapped, sizeof(mapped));
	memcpy(packet->dest_gid + 12, ip + 16, 4);
}

/* An IPv6 header and a GRH have one layout. */
static void read_ipv6(struct ts_packet *packet, const uint8_t *ip)
{
	packet->has_grh = true;
	packet->traffic_class = (uint8_t)(get16(ip) >> 4);
	packet->flow_label = get32(ip) & 0xfffff;
	packet->hop_limit = ip[7];
	memcpy(packet->source_gid, ip + 8, 16);
	memcpy(packet->dest_gid, ip + 24, 16);
}

/* Reads the headers before the BTH and returns the offset of the BTH. */
static size_t read_route(const struct vt *t, struct ts_packet *packet, const uint8_t *frame)
{
	size_t at = ETHERNET_BYTES;

	if (t->a.port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		packet->sl = frame[1] >> 4;
		packet->dlid = (uint16_t)get16(frame + 2);
		packet->slid = (uint16_t)get16(frame + 6);
		if ((frame[1] & 3) != 3)
			return LRH_BYTES;
		read_ipv6(packet, frame + LRH_BYTES);
		return LRH_BYTES + IPV6_BYTES;
	}
	if (frame[12] == 0x08) {
		read_ipv4(packet, frame + at);
		at += IPV4_BYTES;
	} else {
		read_ipv6(packet, frame + at);
		at += IPV6_BYTES;
	}
	if (frame[12] == 0x89) /* RoCE v1 has no UDP header */
		return at;
	packet->udp_source_port = (uint16_t)get16(frame + at);
	return at + UDP_BYTES;
}

static void saw(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes, bool lost)
{
	struct ts_tap *tap = arg;
	struct ts_packet *packet = &tap->packets[tap->count];
	size_t at, end = length_bytes - ICRC_BYTES;
	const uint8_t *bth;

	if (tap->count == TS_TAP_PACKETS)
		return;
	memset(packet, 0, sizeof(*packet));
	at = read_route(tap->t, packet, frame);
	if (tap->t->a.port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		end -= VCRC_BYTES;
	bth = frame + at;
	packet->now_ns = now_ns;
	packet->lost = lost;
	packet->opcode = bth[0];
	packet->solicited = bth[1] & 0x80;
	packet->migrated = bth[1] & 0x40;
	packet->pkey = (uint16_t)get16(bth + 2);
	packet->dest_qpn = get24(bth + 5);
	packet->ack_request = bth[8] & 0x80;
	packet->psn = get24(bth + 9);
	packet->length_bytes = (uint32_t)(end - at);
	memcpy(packet->bytes, bth,
	       packet->length_bytes < TS_TAP_BYTES ? packet->length_bytes : TS_TAP_BYTES);
	tap->count++;
}

static void unwatch(void *arg)
{
	struct ts_tap *tap = arg;

	vb_sim_watch(ts_sim(tap->t), NULL, NULL);
}

struct ts_tap *ts_tap(struct vt *t)
{
	struct ts_tap *tap = vt_alloc(t, sizeof(*tap));

	tap->t = t;
	vb_sim_watch(ts_sim(t), saw, tap);
	vt_defer(t, unwatch, tap);
	return tap;
}

bool ts_is_request(uint8_t opcode)
{
	const uint8_t operation = opcode & (uint8_t)~TS_TRANSPORT;

	return operation < TS_READ_FIRST || operation > TS_ATOMIC_ACK;
}

static const struct ts_packet *find(const struct ts_tap *tap, uint32_t dest_qpn, bool request,
				    unsigned int index)
{
	for (unsigned int i = 0; i < tap->count; i++) {
		const struct ts_packet *packet = &tap->packets[i];

		if (packet->dest_qpn == dest_qpn && ts_is_request(packet->opcode) == request &&
		    index-- == 0)
			return packet;
	}
	return NULL;
}

static unsigned int count(const struct ts_tap *tap, uint32_t dest_qpn, bool request)
{
	unsigned int n = 0;

	while (find(tap, dest_qpn, request, n))
		n++;
	return n;
}

const struct ts_packet *ts_tap_request(const struct ts_tap *tap, uint32_t dest_qpn,
				       unsigned int index)
{
	return find(tap, dest_qpn, true, index);
}

const struct ts_packet *ts_tap_answer(const struct ts_tap *tap, uint32_t dest_qpn,
				      unsigned int index)
{
	return find(tap, dest_qpn, false, index);
}

unsigned int ts_tap_requests(const struct ts_tap *tap, uint32_t dest_qpn)
{
	return count(tap, dest_qpn, true);
}

unsigned int ts_tap_answers(const struct ts_tap *tap, uint32_t dest_qpn)
{
	return count(tap, dest_qpn, false);
}

uint32_t ts_tap_word(const struct ts_packet *packet, unsigned int offset)
{
	return get32(packet->bytes + BTH_BYTES + offset);
}
