/* SPDX-License-Identifier: MIT */
#include "test/support/trace_check.h"

#include <assert.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	XRCETH_BYTES = 4, /* before the other headers of a request */
	DETH_BYTES = 8,
	ICRC_BYTES = 4,
	ERF_BYTES = 16, /* in front of each InfiniBand frame: wiretap/erf_record.h of Wireshark */
	ERF_INFINIBAND = 21,
	ERF_RECEIVE_ERROR = 0x10,
	LRH_BYTES = 8,
	GRH_BYTES = 40,
	VCRC_BYTES = 2,
	ROCE_PORT = 4791,
	ROCE_V1 = 0x8915,  /* the Ethernet type */
	GAP_MAX = 1 << 16, /* a wider gap of PSNs begins a new numbering */
	MTU_UNKNOWN = 4096,
};

/* The properties of an opcode, by its low five bits, which mean the same on RC, UC, UD and XRC. */
enum {
	REQUEST = 1 << 0,
	FIRST = 1 << 1, /* packet of a message or a response */
	LAST = 1 << 2,
	SEND = 1 << 3,
	WRITE = 1 << 4,
	READ = 1 << 5, /* a request */
	ATOMIC = 1 << 6,
	READ_RESPONSE = 1 << 7,
	ATOMIC_RESPONSE = 1 << 8,
	ACK = 1 << 9,
	AETH = 1 << 10,
	RETH = 1 << 11,
	ATOMIC_WRITE = 1 << 12,
	ONLY = FIRST | LAST,
};

struct kind {
	uint16_t flags;
	uint8_t header_bytes; /* of the headers behind the BTH */
};

/* Order and headers as in Linux include/rdma/ib_pack.h and drivers/infiniband/sw/rxe. */
static const struct kind kinds[32] = {
	[0x00] = {REQUEST | SEND | FIRST, 0},
	[0x01] = {REQUEST | SEND, 0},
	[0x02] = {REQUEST | SEND | LAST, 0},
	[0x03] = {REQUEST | SEND | LAST, 4},
	[0x04] = {REQUEST | SEND | ONLY, 0},
	[0x05] = {REQUEST | SEND | ONLY, 4},
	[0x06] = {REQUEST | WRITE | FIRST | RETH, 16},
	[0x07] = {REQUEST | WRITE, 0},
	[0x08] = {REQUEST | WRITE | LAST, 0},
	[0x09] = {REQUEST | WRITE | LAST, 4},
	[0x0a] = {REQUEST | WRITE | ONLY | RETH, 16},
	[0x0b] = {REQUEST | WRITE | ONLY | RETH, 20},
	[0x0c] = {REQUEST | READ | ONLY | RETH, 16},
	[0x0d] = {READ_RESPONSE | FIRST | AETH, 4},
	[0x0e] = {READ_RESPONSE, 0},
	[0x0f] = {READ_RESPONSE | LAST | AETH, 4},
	[0x10] = {READ_RESPONSE | ONLY | AETH, 4},
	[0x11] = {ACK | AETH, 4},
	[0x12] = {ATOMIC_RESPONSE | AETH, 12},
	[0x13] = {REQUEST | ATOMIC | ONLY, 28},
	[0x14] = {REQUEST | ATOMIC | ONLY, 28},
	[0x16] = {REQUEST | SEND | LAST, 4},
	[0x17] = {REQUEST | SEND | ONLY, 4},
	[0x1d] = {REQUEST | ATOMIC_WRITE | ONLY | RETH, 16},
};

enum transport { RC = 0, UC = 1, UD = 3, XRC = 5 };

struct packet {
	uint32_t number; /* as Wireshark counts, from 1 */
	uint8_t source_mac[6];
	uint8_t source[16], dest[16]; /* GIDs, IPv4 addresses or LIDs */
	uint16_t port;		      /* 0 on InfiniBand and RoCE v1 */
	bool arrives;		      /* not marked as lost, and its ICRC is right */
	bool sound;		      /* its ICRC is right */
	uint8_t transport;
	uint16_t flags;
	uint8_t *bth; /* without the ICRC */
	size_t bth_bytes;
	uint32_t payload_bytes;
	uint32_t dest_qpn, source_qpn, psn;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t address;
	uint32_t rkey, length;
};

/* A PSN of an RC or XRC connection in one direction. */
struct slot {
	const struct packet *request; /* NULL: the trace does not have it */
	const struct packet *answer;
	uint32_t messages; /* how many have ended up to this PSN */
	bool delivered, asked, due, answered;
};

/* The requests in one direction of a connection. UC and UD use only `last`. */
struct stream {
	struct stream *next;
	uint8_t transport;
	uint8_t source[16], dest[16], source_mac[6];
	uint16_t port;
	uint32_t dest_qpn, source_qpn; /* source_qpn 0: not known before an answer */
	uint32_t first_psn, mtu;
	struct slot *slots;
	uint32_t count, room, delivered; /* delivered: how many slots from the first arrived */
	const struct packet *last;
	const struct packet *last_response;
	int64_t last_response_at;
	uint16_t in_message; /* SEND or WRITE, else 0 */
	uint32_t announced, got;
	bool dead;
};

struct check {
	FILE *report;
	int violations;
	struct packet *packets;
	size_t count, room;
	struct stream *streams;
	uint64_t last_ns;
	bool infiniband;
	uint32_t crc_table[256];
};

static void violate(struct check *c, uint32_t number, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void violate(struct check *c, uint32_t number, const char *fmt, ...)
{
	va_list args;

	c->violations++;
	if (!c->report)
		return;
	va_start(args, fmt);
	fprintf(c->report, "packet %u: ", number);
	vfprintf(c->report, fmt, args);
	fputc('\n', c->report);
	va_end(args);
}

static void *more(void *old, size_t bytes)
{
	void *memory = realloc(old, bytes);

	if (!memory)
		abort();
	return memory;
}

static uint32_t get(const uint8_t *at, unsigned int bytes)
{
	uint32_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

/* --- bytes --- */

static void make_crc_table(uint32_t *table)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
		table[i] = value;
	}
}

/* The headers whose first bytes an ICRC covers; routers may change some of their bits. */
enum cover { OVER_IPV4, OVER_IPV6, OVER_GRH, OVER_LRH, OVER_LRH_AND_GRH };

#define MASKED_BYTES 64

/* The bits that count as ones: those that routers may change, and reserved bits of the BTH. */
static const uint8_t masks[][MASKED_BYTES] = {
	[OVER_IPV4] = {[1] = 0xff, [8] = 0xff, [10] = 0xff, 0xff, [26] = 0xff, 0xff, [32] = 0xff},
	[OVER_IPV6] = {0x0f, 0xff, 0xff, 0xff, [7] = 0xff, [46] = 0xff, 0xff, [52] = 0xff},
	[OVER_GRH] = {0x0f, 0xff, 0xff, 0xff, [7] = 0xff, [44] = 0xff},
	[OVER_LRH] = {0xf0, [12] = 0xff},
	[OVER_LRH_AND_GRH] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff,
			      0xff, [15] = 0xff, [52] = 0xff},
};

/*
 * Returns true if the ICRC behind the bytes is right. It is the Ethernet CRC over the bytes and, on
 * Ethernet, over 8 bytes of ones before them, which stand for the missing LRH.
 */
static bool icrc_is_right(const struct check *c, enum cover cover, const uint8_t *data,
			  size_t bytes)
{
	const uint8_t *icrc = data + bytes;
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < 8 && cover <= OVER_GRH; i++)
		crc = crc >> 8 ^ c->crc_table[(crc ^ 0xff) & 0xff];
	for (size_t i = 0; i < bytes; i++) {
		uint8_t byte = data[i] | (i < MASKED_BYTES ? masks[cover][i] : 0);

		crc = crc >> 8 ^ c->crc_table[(crc ^ byte) & 0xff];
	}
	return ~crc == ((uint32_t)icrc[3] << 24 | (uint32_t)icrc[2] << 16 | (uint32_t)icrc[1] << 8 |
			icrc[0]);
}

/*
 * Reads the addresses. Returns the size of the IP header, or 0 if a length or the checksum is
 * wrong.
 */
static size_t parse_ip(struct packet *p, const uint8_t *ip, size_t bytes, uint32_t ethertype)
{
	uint32_t sum = 0;

	if (ethertype == 0x86dd && bytes > IPV6_BYTES && get(ip + 4, 2) == bytes - IPV6_BYTES &&
	    ip[0] >> 4 == 6 && ip[6] == 17) {
		memcpy(p->source, ip + 8, 16);
		memcpy(p->dest, ip + 24, 16);
		return IPV6_BYTES;
	}
	if (ethertype != 0x0800 || bytes <= IPV4_BYTES || ip[0] != 0x45 || ip[9] != 17 ||
	    get(ip + 2, 2) != bytes)
		return 0;
	for (unsigned int i = 0; i < IPV4_BYTES; i += 2)
		sum += get(ip + i, 2);
	sum = (sum & 0xffff) + (sum >> 16);
	if (sum != 0xffff)
		return 0;
	memcpy(p->source, ip + 12, 4);
	memcpy(p->dest, ip + 16, 4);
	return IPV4_BYTES;
}

/* Returns true for RC and XRC, which have acknowledgements. */
static bool reliable(const struct packet *p)
{
	return p->transport == RC || p->transport == XRC;
}

/* The size of the headers between the BTH and those of the opcode. */
static size_t transport_bytes(const struct packet *p)
{
	if (p->transport == UD)
		return DETH_BYTES;
	return p->transport == XRC && p->flags & REQUEST ? XRCETH_BYTES : 0;
}

static void parse_headers(struct packet *p, const uint8_t *at)
{
	if (p->transport == UD) {
		p->source_qpn = get(at + 5, 3);
		return;
	}
	if (p->flags & (RETH | ATOMIC)) {
		p->address = (uint64_t)get(at, 4) << 32 | get(at + 4, 4);
		p->rkey = get(at + 8, 4);
		p->length = p->flags & RETH ? get(at + 12, 4) : 8;
	}
	if (p->flags & AETH) {
		p->syndrome = at[0];
		p->msn = get(at + 1, 3);
	}
}

/* Parses the BTH at `at` and the headers behind it. bytes does not count the ICRC. */
static bool parse_bth(struct packet *p, const uint8_t *at, size_t bytes)
{
	const struct kind *kind = &kinds[at[0] & 0x1f];
	unsigned int pad = at[1] >> 4 & 3;
	size_t head;

	p->transport = at[0] >> 5;
	p->flags = kind->flags;
	if ((!reliable(p) && p->transport != UC && p->transport != UD) || !p->flags ||
	    (!reliable(p) && !(p->flags & REQUEST)) || at[1] & 0x0f)
		return false;
	head = BTH_BYTES + transport_bytes(p) + kind->header_bytes;
	if (bytes < head + pad || bytes % 4)
		return false;
	p->payload_bytes = (uint32_t)(bytes - head - pad);
	p->dest_qpn = get(at + 5, 3);
	p->psn = get(at + 9, 3);
	p->bth = memcpy(more(NULL, bytes), at, bytes);
	p->bth_bytes = bytes;
	parse_headers(p, at + BTH_BYTES + (p->transport == XRC ? transport_bytes(p) : 0));
	return true;
}

/* Parses a RoCE v1 packet behind the Ethernet header. Returns false if it is none. */
static bool parse_roce_v1(const struct check *c, struct packet *p, const uint8_t *grh, size_t bytes)
{
	if (bytes < GRH_BYTES + BTH_BYTES + ICRC_BYTES || grh[0] >> 4 != 6 || grh[6] != 0x1b ||
	    get(grh + 4, 2) != bytes - GRH_BYTES)
		return false;
	memcpy(p->source, grh + 8, 16);
	memcpy(p->dest, grh + 24, 16);
	if (!parse_bth(p, grh + GRH_BYTES, bytes - GRH_BYTES - ICRC_BYTES))
		return false;
	p->sound = icrc_is_right(c, OVER_GRH, grh, bytes - ICRC_BYTES);
	return true;
}

/* Parses a RoCE v2 packet behind the Ethernet header. Returns false if it is none. */
static bool parse_roce_v2(const struct check *c, struct packet *p, const uint8_t *ip, size_t bytes,
			  uint32_t ethertype)
{
	const uint8_t *udp;
	size_t ip_bytes = parse_ip(p, ip, bytes, ethertype);

	if (!ip_bytes || bytes < ip_bytes + UDP_BYTES + BTH_BYTES + ICRC_BYTES)
		return false;
	udp = ip + ip_bytes;
	p->port = (uint16_t)get(udp, 2);
	if (get(udp + 2, 2) != ROCE_PORT || get(udp + 4, 2) != bytes - ip_bytes)
		return false;
	if (!parse_bth(p, udp + UDP_BYTES, bytes - ip_bytes - UDP_BYTES - ICRC_BYTES))
		return false;
	p->sound = icrc_is_right(c, ip_bytes == IPV4_BYTES ? OVER_IPV4 : OVER_IPV6, ip,
				 bytes - ICRC_BYTES);
	return true;
}

/* Returns false if the frame is no RoCE packet. */
static bool parse(const struct check *c, struct packet *p, const uint8_t *frame, size_t bytes)
{
	static const uint8_t lost_mac[6] = {0x02, 0, 0, 0, 0xde, 0xad};
	const uint8_t *rest = frame + ETHERNET_BYTES;
	uint32_t type;

	if (bytes < ETHERNET_BYTES)
		return false;
	memcpy(p->source_mac, frame + 6, 6);
	type = get(frame + 12, 2);
	bytes -= ETHERNET_BYTES;
	if (!(type == ROCE_V1 ? parse_roce_v1(c, p, rest, bytes)
			      : parse_roce_v2(c, p, rest, bytes, type)))
		return false;
	p->arrives = p->sound && memcmp(frame, lost_mac, 6) != 0;
	return true;
}

/* Polynomial 0x100b, low bit first. */
static bool vcrc_is_right(const uint8_t *lrh, size_t bytes)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < bytes; i++) {
		crc ^= lrh[i];
		for (unsigned int bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xd008 : crc >> 1);
	}
	return (lrh[bytes] | lrh[bytes + 1] << 8) == (uint16_t)~crc;
}

/* Returns false if the record is no InfiniBand frame from LRH to VCRC. */
static bool parse_infiniband(const struct check *c, struct packet *p, const uint8_t *record,
			     size_t record_bytes)
{
	const uint8_t *lrh = record + ERF_BYTES;
	size_t bth = LRH_BYTES, bytes;

	if (record_bytes < ERF_BYTES + LRH_BYTES + BTH_BYTES + ICRC_BYTES + VCRC_BYTES ||
	    record[8] != ERF_INFINIBAND || get(record + 10, 2) != record_bytes)
		return false;
	bytes = record_bytes - ERF_BYTES - VCRC_BYTES;
	if (get(record + 14, 2) != bytes + VCRC_BYTES || (lrh[1] & 3) < 2 || lrh[0] & 0x0f ||
	    4 * (get(lrh + 4, 2) & 0x7ff) != bytes || !vcrc_is_right(lrh, bytes))
		return false;
	if ((lrh[1] & 3) == 3) {
		bth += GRH_BYTES;
		if (bytes < bth + BTH_BYTES + ICRC_BYTES || lrh[LRH_BYTES] >> 4 != 6 ||
		    get(lrh + LRH_BYTES + 4, 2) != bytes - bth)
			return false;
	}
	memcpy(p->source, lrh + 6, 2);
	memcpy(p->dest, lrh + 2, 2);
	memcpy(p->source_mac, lrh + 6, 2);
	if (!parse_bth(p, lrh + bth, bytes - bth - ICRC_BYTES))
		return false;
	p->sound = icrc_is_right(c, bth > LRH_BYTES ? OVER_LRH_AND_GRH : OVER_LRH, lrh,
				 bytes - ICRC_BYTES);
	p->arrives = p->sound && !(record[9] & ERF_RECEIVE_ERROR);
	return true;
}

/* --- streams --- */

static bool goes(const struct packet *p, const uint8_t *source, const uint8_t *dest, uint16_t port)
{
	return p->port == port && !memcmp(p->source, source, 16) && !memcmp(p->dest, dest, 16);
}

static bool belongs(const struct stream *s, const struct packet *p)
{
	if (s->transport != p->transport)
		return false;
	if (s->transport == UD)
		return s->source_qpn == p->source_qpn && !memcmp(s->source_mac, p->source_mac, 6);
	return s->dest_qpn == p->dest_qpn && goes(p, s->source, s->dest, s->port);
}

/*
 * Finds the path MTU: the payload of a packet of the connection that is not the last of its
 * message.
 */
static uint32_t find_mtu(const struct check *c, const struct packet *p)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct packet *other = &c->packets[i];

		if (other->transport == p->transport && !(other->flags & LAST) &&
		    !(other->flags & ACK) && !(other->flags & ATOMIC_RESPONSE) &&
		    (goes(other, p->source, p->dest, p->port) ||
		     goes(other, p->dest, p->source, p->port)))
			return other->payload_bytes;
	}
	return MTU_UNKNOWN;
}

static struct stream *stream_of(struct check *c, const struct packet *p)
{
	struct stream *s;

	for (s = c->streams; s; s = s->next)
		if (belongs(s, p))
			return s;
	s = more(NULL, sizeof(*s));
	*s = (struct stream){
		.next = c->streams,
		.transport = p->transport,
		.port = p->port,
		.dest_qpn = p->dest_qpn,
		.source_qpn = p->source_qpn,
		.first_psn = p->psn,
		.mtu = reliable(p) ? find_mtu(c, p) : 0,
		.last_response_at = -1,
	};
	memcpy(s->source, p->source, 16);
	memcpy(s->dest, p->dest, 16);
	memcpy(s->source_mac, p->source_mac, 6);
	c->streams = s;
	return s;
}

static int32_t psn_ahead(uint32_t psn, uint32_t of)
{
	return (int32_t)((psn - of) << 8) >> 8;
}

/* The index of a PSN in its stream; it may be negative, or beyond the end. */
static int64_t place(const struct stream *s, uint32_t psn)
{
	return (int64_t)s->count + psn_ahead(psn, s->first_psn + s->count);
}

static uint32_t messages_before(const struct stream *s, int64_t at)
{
	return at > 0 ? s->slots[at - 1].messages : 0;
}

static uint32_t psns_of(const struct stream *s, const struct packet *p)
{
	if (!(p->flags & READ) || p->length <= s->mtu)
		return 1;
	return (p->length - 1) / s->mtu + 1;
}

static void append(struct stream *s, const struct packet *request, uint32_t count)
{
	uint32_t ended = messages_before(s, s->count);

	if (s->count + count > s->room) {
		s->room = 2 * (s->count + count);
		s->slots = more(s->slots, s->room * sizeof(*s->slots));
	}
	for (uint32_t i = 0; i < count; i++) {
		bool last = request && request->flags & LAST && i + 1 == count;

		s->slots[s->count++] = (struct slot){
			.request = request,
			.messages = ended + last,
			.due = request && request->flags & (READ | ATOMIC | ATOMIC_WRITE),
			.delivered = !request, /* a missing request counts as delivered */
		};
	}
}

/* --- requests of RC and XRC --- */

/* A message is FIRST, MIDDLEs, LAST or ONLY, of one operation, and as long as announced. */
static void check_message(struct check *c, struct stream *s, const struct packet *p)
{
	uint16_t what = p->flags & (SEND | WRITE | READ | ATOMIC | ATOMIC_WRITE);

	if (p->flags & FIRST ? s->in_message : s->in_message != what)
		violate(c, p->number, "message: opcode 0x%02x does not follow", p->bth[0]);
	if (p->flags & FIRST) {
		s->announced = p->length;
		s->got = 0;
	}
	s->got += p->payload_bytes;
	if (!(p->flags & LAST) && p->payload_bytes != s->mtu)
		violate(c, p->number, "message: %u bytes, the path MTU is %u", p->payload_bytes,
			s->mtu);
	if (what == ATOMIC_WRITE && p->payload_bytes != 8)
		violate(c, p->number, "message: an ATOMIC WRITE of %u bytes", p->payload_bytes);
	if (p->flags & LAST && what & (WRITE | ATOMIC_WRITE) && s->got != s->announced)
		violate(c, p->number, "message: %u bytes, announced were %u", s->got, s->announced);
	s->in_message = p->flags & LAST ? 0 : what;
}

/* A repeated request differs only in AckReq; a READ may begin in its middle. */
static bool same(const struct stream *s, const struct packet *old, const struct packet *new)
{
	uint64_t done;

	if (old->flags & READ) {
		done = (uint64_t)((new->psn - old->psn) & 0xffffff) * s->mtu;
		return new->flags == old->flags &&new->rkey == old->rkey &&new->address ==
		       old->address + done &&new->length + done == old->length;
	}
	return old->bth_bytes == new->bth_bytes && !memcmp(old->bth, new->bth, 8) &&
	       !((old->bth[8] ^ new->bth[8]) & 0x7f) &&
	       !memcmp(old->bth + 9, new->bth + 9, old->bth_bytes - 9);
}

static void take_new(struct check *c, struct stream *s, const struct packet *p, int64_t at)
{
	if (at > s->count) {
		violate(c, p->number, "psn: 0x%06x, the next is 0x%06x", p->psn,
			(s->first_psn + s->count) & 0xffffff);
		append(s, NULL, (uint32_t)(at - s->count));
		s->in_message = p->flags & FIRST ? 0 : p->flags & (SEND | WRITE);
	}
	check_message(c, s, p);
	append(s, p, psns_of(s, p));
}

static void take_again(struct check *c, struct stream *s, const struct packet *p, int64_t at)
{
	struct slot *slot = &s->slots[at];

	if (!slot->request)
		slot->request = p;
	else if (!same(s, slot->request, p))
		violate(c, p->number, "repeat: PSN 0x%06x is not what packet %u was", p->psn,
			slot->request->number);
}

static void take_request(struct check *c, const struct packet *p)
{
	struct stream *s = stream_of(c, p);
	int64_t at = place(s, p->psn);

	if (s->dead)
		violate(c, p->number, "dead: a request behind a NAK that ended the connection");
	if (at < 0 || at > (int64_t)s->count + GAP_MAX) {
		violate(c, p->number, "psn: 0x%06x, the first was 0x%06x, the next is 0x%06x",
			p->psn, s->first_psn, (s->first_psn + s->count) & 0xffffff);
		return;
	}
	if (at < s->count)
		take_again(c, s, p, at);
	else
		take_new(c, s, p, at);
	assert(s->slots && at < s->count);
	s->slots[at].asked = true;
	for (uint32_t i = 0; p->arrives && i < psns_of(s, p) && at + i < s->count; i++)
		s->slots[at + i].delivered = true;
	while (s->delivered < s->count && s->slots[s->delivered].delivered)
		s->delivered++;
}

/* --- answers --- */

static struct stream *asked_by(struct check *c, const struct packet *p)
{
	for (struct stream *s = c->streams; s; s = s->next) {
		int64_t at = place(s, p->psn);

		if (s->transport != p->transport || !goes(p, s->dest, s->source, s->port) ||
		    (s->source_qpn && s->source_qpn != p->dest_qpn))
			continue;
		/* If both ends have one address, only the PSN tells the directions apart. */
		if (!s->source_qpn && (at < 0 || at >= s->count))
			continue;
		s->source_qpn = p->dest_qpn;
		return s;
	}
	return NULL;
}

static void check_msn(struct check *c, const struct packet *p, uint32_t least, uint32_t most)
{
	if (p->msn < (least & 0xffffff) || p->msn > (most & 0xffffff))
		violate(c, p->number, "msn: %u, %u to %u messages were done", p->msn, least, most);
}

/* Returns true if every earlier READ and atomic was answered: only then does a NAK take effect. */
static bool all_answered(const struct stream *s, int64_t at)
{
	while (at-- > 0)
		if (s->slots[at].due && !s->slots[at].answered)
			return false;
	return true;
}

static void take_ack(struct check *c, struct stream *s, const struct packet *p, int64_t at)
{
	bool ack = !(p->syndrome & 0x60), rnr = (p->syndrome & 0x60) == 0x20;
	bool gap = p->syndrome == 0x60;
	int64_t needed = gap ? at : at + 1;

	if (p->syndrome >> 7 || (p->syndrome & 0x60) == 0x40 ||
	    (!ack && !rnr && p->syndrome > 0x64))
		violate(c, p->number, "answer: syndrome 0x%02x does not exist", p->syndrome);
	if (s->delivered < needed) {
		violate(c, p->number, "answer: to PSN 0x%06x, but 0x%06x has not arrived", p->psn,
			(s->first_psn + s->delivered) & 0xffffff);
		return;
	}
	check_msn(c, p, messages_before(s, ack ? at + 1 : at), messages_before(s, s->delivered));
	if (!ack && !rnr && !gap && p->arrives && all_answered(s, at))
		s->dead = true;
}

/* The answer to an ATOMIC WRITE is that to a READ of 0 bytes. */
static void check_read_size(struct check *c, struct stream *s, const struct packet *p, int64_t at)
{
	const struct packet *read = s->slots[at].request;
	uint32_t offset = (p->psn - read->psn) & 0xffffff;
	uint32_t rest = read->flags & READ ? read->length - offset * s->mtu : 0;
	bool last = offset + 1 == psns_of(s, read);

	if (!(p->flags & LAST) == last || p->payload_bytes != (last ? rest : s->mtu))
		violate(c, p->number, "response: %u bytes as opcode 0x%02x, packet %u has %u left",
			p->payload_bytes, p->bth[0], read->number, rest);
	if (p->flags & AETH) {
		int64_t end = at - offset + psns_of(s, read);
		uint32_t done = messages_before(s, end <= s->count ? end : s->count);

		check_msn(c, p, done, done);
	}
}

static void take_read_response(struct check *c, struct stream *s, const struct packet *p,
			       int64_t at)
{
	struct slot *slot = &s->slots[at];
	const struct packet *before = s->last_response;
	bool again; /* a fault rule duplicated the packet */

	if (!slot->request || !(slot->request->flags & (READ | ATOMIC_WRITE)) || !slot->delivered) {
		violate(c, p->number, "response: no READ of PSN 0x%06x has arrived", p->psn);
		return;
	}
	if (p->flags & FIRST && !slot->asked)
		violate(c, p->number, "response: begins at PSN 0x%06x, which none asked for",
			p->psn);
	again = before && s->last_response_at == at && before->bth_bytes == p->bth_bytes &&
		!memcmp(before->bth, p->bth, p->bth_bytes);
	if (!(p->flags & FIRST) && !again &&
	    (!before || before->flags & LAST || s->last_response_at != at - 1))
		violate(c, p->number, "response: 0x%06x does not follow", p->psn);
	s->last_response = p;
	s->last_response_at = at;
	check_read_size(c, s, p, at);
	if (p->arrives)
		slot->answered = true;
}

static void take_atomic_response(struct check *c, struct stream *s, const struct packet *p,
				 int64_t at)
{
	struct slot *slot = &s->slots[at];

	if (!slot->request || !(slot->request->flags & ATOMIC) || !slot->delivered) {
		violate(c, p->number, "response: no atomic of PSN 0x%06x has arrived", p->psn);
		return;
	}
	check_msn(c, p, slot->messages, slot->messages);
	if (slot->answer &&
	    memcmp(slot->answer->bth + BTH_BYTES + 4, p->bth + BTH_BYTES + 4, 8) != 0)
		violate(c, p->number, "response: another value than packet %u's",
			slot->answer->number);
	slot->answer = p;
	if (p->arrives)
		slot->answered = true;
}

static void take_answer(struct check *c, const struct packet *p)
{
	struct stream *s = asked_by(c, p);
	int64_t at = s ? place(s, p->psn) : -1;

	if (at < 0 || at >= s->count) {
		violate(c, p->number, "answer: nothing was sent with PSN 0x%06x", p->psn);
		return;
	}
	if (p->flags & ACK)
		take_ack(c, s, p, at);
	else if (p->flags & READ_RESPONSE)
		take_read_response(c, s, p, at);
	else
		take_atomic_response(c, s, p, at);
}

/* --- UC and UD --- */

/* The PSNs of UC and UD have no gaps. The same packet may come twice in a row. */
static void take_unreliable(struct check *c, const struct packet *p)
{
	struct stream *s = stream_of(c, p);
	const struct packet *last = s->last;
	bool again =
		last && last->bth_bytes == p->bth_bytes && !memcmp(last->bth, p->bth, p->bth_bytes);

	if (last && !again && p->psn != ((last->psn + 1) & 0xffffff))
		violate(c, p->number, "psn: 0x%06x behind 0x%06x", p->psn, last->psn);
	if (p->transport == UC && !again &&
	    (p->flags & FIRST ? s->in_message : s->in_message != (p->flags & (SEND | WRITE))))
		violate(c, p->number, "message: opcode 0x%02x does not follow", p->bth[0]);
	s->in_message = p->flags & LAST ? 0 : p->flags & (SEND | WRITE);
	s->last = p;
}

static void take(struct check *c, const struct packet *p)
{
	if (!p->sound) {
		violate(c, p->number, "icrc: wrong");
		return;
	}
	if (!reliable(p))
		take_unreliable(c, p);
	else if (p->flags & REQUEST)
		take_request(c, p);
	else
		take_answer(c, p);
}

static void read_packet(struct check *c, uint32_t number, const struct pcap_pkthdr *header,
			const u_char *frame)
{
	/* pcap_open_offline_with_tstamp_precision() makes tv_usec count nanoseconds. */
	uint64_t now_ns = (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
	struct packet p = {.number = number};
	bool parsed;

	if (now_ns < c->last_ns)
		violate(c, number, "time: goes back");
	c->last_ns = now_ns;
	parsed = c->infiniband ? parse_infiniband(c, &p, frame, header->caplen)
			       : parse(c, &p, frame, header->caplen);
	if (header->caplen != header->len || !parsed) {
		violate(c, number, "frame: not a sound one of %s",
			c->infiniband ? "InfiniBand" : "RoCE");
		return;
	}
	if (c->count == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		c->packets = more(c->packets, c->room * sizeof(*c->packets));
	}
	c->packets[c->count++] = p;
}

static void end(struct check *c)
{
	while (c->streams) {
		struct stream *s = c->streams;

		c->streams = s->next;
		free(s->slots);
		free(s);
	}
	for (size_t i = 0; i < c->count; i++)
		free(c->packets[i].bth);
	free(c->packets);
}

int trace_check(const char *path, FILE *report)
{
	char error[PCAP_ERRBUF_SIZE] = "";
	struct check c = {.report = report};
	struct pcap_pkthdr *header;
	const u_char *frame;
	uint32_t number = 0;
	pcap_t *pcap;
	int rc;

	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
	if (!pcap) {
		if (report)
			fprintf(report, "%s\n", error);
		return -1;
	}
	c.infiniband = pcap_datalink(pcap) == DLT_ERF;
	make_crc_table(c.crc_table);
	while ((rc = pcap_next_ex(pcap, &header, &frame)) == 1)
		read_packet(&c, ++number, header, frame);
	if (rc != PCAP_ERROR_BREAK)
		violate(&c, number, "frame: %s", pcap_geterr(pcap));
	pcap_close(pcap);
	for (size_t i = 0; i < c.count; i++)
		take(&c, &c.packets[i]);
	end(&c);
	return c.violations;
}
