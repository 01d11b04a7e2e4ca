/* SPDX-License-Identifier: MIT */
/* Which QPs the packets of a capture belong to, and what these QPs need. */
#include "src/script/capture.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_QPN	  0xffffffu /* the destination of a multicast */
#define TRANSPORT(opcode) ((opcode)&0xe0)
#define TIMER_UNIT_NS	  4096

bool script_capture_add(struct capture *capture, const struct capture_packet *packet)
{
	struct capture_packet *more =
		realloc(capture->packets, (capture->count + 1) * sizeof(*more));

	if (!more)
		return false;
	capture->packets = more;
	more[capture->count++] = *packet;
	return true;
}

bool capture_is_answer(const struct vb_packet *packet)
{
	return TRANSPORT(packet->opcode) == 0 && (packet->opcode & 0x1f) >= 0x0d &&
	       (packet->opcode & 0x1f) <= 0x12;
}

uint32_t capture_psns(const struct capture_qp *qp, const struct vb_packet *packet)
{
	const bool is_read = packet->opcode == 0x0c;

	return is_read && packet->dma_bytes
		       ? (packet->dma_bytes + qp->mtu_bytes - 1) / qp->mtu_bytes
		       : 1;
}

/* --- the device --- */

/* Writes the address of a packet's sender: a GID, an IPv4 address, or a LID. */
static void write_source(const struct vb_packet *packet, bool infiniband, char *text,
			 size_t size_bytes)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};

	if (infiniband)
		snprintf(text, size_bytes, "%u", packet->slid);
	else if (memcmp(packet->source_gid, ipv4, sizeof(ipv4)) == 0)
		inet_ntop(AF_INET, packet->source_gid + 12, text, (socklen_t)size_bytes);
	else
		inet_ntop(AF_INET6, packet->source_gid, text, (socklen_t)size_bytes);
}

/* Marks what the device has sent. Returns false if it has sent nothing. */
static bool find_device(struct capture *capture)
{
	char device[64], text[64];
	bool is_there = false;

	if (!capture->count)
		return false;
	write_source(&capture->packets[0].packet, capture->infiniband, device, sizeof(device));
	if (capture->device)
		snprintf(device, sizeof(device), "%s", capture->device);
	for (unsigned int i = 0; i < capture->count; i++) {
		struct capture_packet *at = &capture->packets[i];

		write_source(&at->packet, capture->infiniband, text, sizeof(text));
		at->from_device = strcmp(text, device) == 0;
		is_there |= at->from_device;
	}
	return is_there;
}

/* --- pairs of QPNs --- */

static enum ibv_qp_type type_of(uint8_t opcode)
{
	switch (TRANSPORT(opcode)) {
	case 0x00:
		return IBV_QPT_RC;
	case 0x20:
		return IBV_QPT_UC;
	case 0x60:
		return IBV_QPT_UD;
	default:
		return IBV_QPT_DRIVER;
	}
}

/* Returns true if an answer has the PSN of an earlier request in the other direction. */
static bool answers(const struct capture_packet *answer, const struct capture_packet *request)
{
	return capture_is_answer(&answer->packet) && !capture_is_answer(&request->packet) &&
	       answer->from_device != request->from_device &&
	       type_of(request->packet.opcode) == IBV_QPT_RC &&
	       answer->packet.psn == request->packet.psn;
}

static struct capture_qp *find_qp(struct capture *capture, enum ibv_qp_type type, uint32_t qpn,
				  bool is_peer)
{
	for (unsigned int i = 0; i < capture->qp_count; i++) {
		struct capture_qp *qp = &capture->qps[i];

		if (qp->type == type && (is_peer ? qp->has_peer_qpn && qp->peer_qpn == qpn
						 : qp->has_qpn && qp->qpn == qpn))
			return qp;
	}
	return NULL;
}

/* Returns the QP that lacks the side of a QPN, and that an answer to the QPN or from it names; NULL: none. */
static struct capture_qp *find_partner_of(struct capture *capture, const struct capture_packet *own)
{
	for (unsigned int i = 0; i < capture->count; i++) {
		const struct capture_packet *other = &capture->packets[i];
		struct capture_qp *qp;

		if (!answers(own, other) && !answers(other, own))
			continue;
		qp = find_qp(capture, IBV_QPT_RC, other->packet.dest_qpn, other->from_device);
		if (qp && !(own->from_device ? qp->has_peer_qpn : qp->has_qpn))
			return qp;
	}
	return NULL;
}

/* The same for any packet to the QPN: an ACK has the PSN of the last request only. */
static struct capture_qp *find_partner(struct capture *capture, unsigned int at)
{
	const struct capture_packet *own = &capture->packets[at];
	struct capture_qp *qp = NULL;

	for (unsigned int i = at; i < capture->count && !qp; i++) {
		const struct capture_packet *like = &capture->packets[i];

		if (like->from_device == own->from_device &&
		    like->packet.dest_qpn == own->packet.dest_qpn)
			qp = find_partner_of(capture, like);
	}
	return qp;
}

/* The only other QP of UC or UD without the packet's side is the other end. */
static struct capture_qp *find_half(struct capture *capture, enum ibv_qp_type type, bool is_peer)
{
	for (unsigned int i = 0; i < capture->qp_count; i++) {
		struct capture_qp *qp = &capture->qps[i];

		if (qp->type == type && type != IBV_QPT_RC &&
		    !(is_peer ? qp->has_peer_qpn : qp->has_qpn))
			return qp;
	}
	return NULL;
}

/* Finds or makes the QP of a packet. Returns NULL if there are too many. */
static struct capture_qp *place(struct capture *capture, unsigned int at)
{
	const struct capture_packet *own = &capture->packets[at];
	const enum ibv_qp_type type = type_of(own->packet.opcode);
	const bool is_peer = own->from_device;
	struct capture_qp *qp = find_qp(capture, type, own->packet.dest_qpn, is_peer);

	if (!qp && type == IBV_QPT_RC)
		qp = find_partner(capture, at);
	if (!qp)
		qp = find_half(capture, type, is_peer);
	if (!qp && capture->qp_count < SCRIPT_QPS_MAX) {
		qp = &capture->qps[capture->qp_count++];
		*qp = (struct capture_qp){.type = type, .timeout = -1, .rnr_timer = -1};
	}
	if (qp && is_peer) {
		qp->peer_qpn = own->packet.dest_qpn;
		qp->has_peer_qpn = true;
	} else if (qp) {
		qp->qpn = own->packet.dest_qpn;
		qp->has_qpn = true;
	}
	return qp;
}

/* --- what a QP needs --- */

static void take_psn(struct capture_qp *qp, const struct capture_packet *at)
{
	if (capture_is_answer(&at->packet))
		return;
	if (at->from_device && !qp->has_psn) {
		qp->psn = at->packet.psn;
		qp->has_psn = true;
	} else if (!at->from_device && !qp->has_peer_psn) {
		qp->peer_psn = at->packet.psn;
		qp->has_peer_psn = true;
	}
}

/* A FIRST or MIDDLE packet has the path MTU. */
static void take_mtu(struct capture_qp *qp, const struct vb_packet *packet)
{
	switch (packet->opcode & 0x1f) {
	case 0x00:
	case 0x01:
	case 0x06:
	case 0x07:
	case 0x0d:
	case 0x0e:
		if (vb_bytes_to_mtu(packet->payload_bytes))
			qp->mtu_bytes = packet->payload_bytes;
		break;
	default:
		break;
	}
}

static void take_memory(struct capture_qp *qp, const struct capture_packet *at)
{
	const struct vb_packet *packet = &at->packet;
	const uint64_t page = packet->remote_addr & ~(uint64_t)4095;

	if (!(packet->has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC)) || !packet->remote_addr)
		return;
	if (at->from_device) {
		if (!qp->has_peer_base || page < qp->peer_base)
			qp->peer_base = page;
		qp->has_peer_base = true;
		return;
	}
	if (!qp->has_base || page < qp->base)
		qp->base = page;
	qp->has_base = true;
	if (!qp->has_rkey)
		qp->rkey = packet->rkey;
	qp->has_rkey = true;
}

static void take_timer(struct capture_qp *qp, const struct capture_packet *at)
{
	if (at->from_device && at->packet.has & VB_PACKET_HAS_AETH &&
	    (at->packet.syndrome & 0xe0) == 0x20 && qp->rnr_timer < 0)
		qp->rnr_timer = at->packet.syndrome & 0x1f;
	if (!at->from_device && at->packet.has & VB_PACKET_HAS_DETH && !qp->qkey)
		qp->qkey = at->packet.qkey;
}

/* Takes the ack timeout from a repeated request: the time since the last packet of its QP. */
static void take_timeout(struct capture *capture, unsigned int last)
{
	const struct capture_packet *own = &capture->packets[last];
	struct capture_qp *qp = &capture->qps[own->qp];

	for (unsigned int i = last; i-- > 0 && qp->timeout < 0;) {
		const struct capture_packet *before = &capture->packets[i];

		for (int code = 1; before->qp == own->qp && code < 32; code++)
			if (own->time_ns - before->time_ns == (uint64_t)TIMER_UNIT_NS << code)
				qp->timeout = code;
	}
}

/* Returns true if a request of the device has an earlier PSN than the next new one. */
static bool was_sent(struct capture_qp *qp, const struct vb_packet *packet)
{
	if (((packet->psn - qp->next_psn) & SCRIPT_PSN_MASK) > SCRIPT_PSN_MASK / 2)
		return true;
	qp->next_psn = (packet->psn + capture_psns(qp, packet)) & SCRIPT_PSN_MASK;
	return false;
}

/* Enlarges the memory of the QP to hold the message. */
static void take_message(struct capture_qp *qp, const struct capture_packet *at)
{
	const uint8_t operation = at->packet.opcode & 0x1f;
	uint64_t *bytes = &qp->message_bytes[at->from_device];

	if (capture_is_answer(&at->packet))
		return;
	if (operation == 0x00 || operation == 0x06 || operation == 0x04 || operation == 0x0a)
		*bytes = 0;
	*bytes += at->packet.payload_bytes;
	if (*bytes > qp->buffer_bytes)
		qp->buffer_bytes = *bytes;
	if (at->from_device && at->packet.dma_bytes > qp->buffer_bytes)
		qp->buffer_bytes = at->packet.dma_bytes;
}

/* Counts how often the device repeats a request before an answer comes. */
static void take_retries(struct capture_qp *qp, const struct capture_packet *at, bool is_repeated)
{
	bool is_burst = false; /* the request follows the one before it */

	if (!at->from_device && capture_is_answer(&at->packet)) {
		qp->after_rnr =
			at->packet.has & VB_PACKET_HAS_AETH && (at->packet.syndrome & 0xe0) == 0x20;
		qp->had_rnr |= qp->after_rnr;
		qp->timeouts = 0;
		if (!qp->after_rnr)
			qp->rnr_waits = 0;
		return;
	}
	if (at->from_device && !capture_is_answer(&at->packet)) {
		is_burst = at->packet.psn == ((qp->last_psn + 1) & SCRIPT_PSN_MASK);
		qp->last_psn = at->packet.psn;
	}
	if (!is_repeated || is_burst)
		return;
	if (qp->after_rnr)
		qp->rnr_waits++;
	else
		qp->timeouts++;
	qp->after_rnr = false;
	if (qp->timeouts > qp->retries)
		qp->retries = qp->timeouts;
	if (qp->rnr_waits > qp->rnr_retries)
		qp->rnr_retries = qp->rnr_waits;
}

static void take_sizes(struct capture *capture)
{
	for (unsigned int i = 0; i < capture->count; i++) {
		const struct capture_packet *at = &capture->packets[i];
		struct capture_qp *qp = at->qp < 0 ? NULL : &capture->qps[at->qp];
		const uint64_t end = at->packet.remote_addr + at->packet.dma_bytes;
		bool is_repeated;

		if (!qp)
			continue;
		is_repeated = at->from_device && !capture_is_answer(&at->packet) &&
			      was_sent(qp, &at->packet);
		take_message(qp, at);
		take_retries(qp, at, is_repeated);
		if (!at->from_device && qp->has_base && at->packet.has & VB_PACKET_HAS_RETH &&
		    end > qp->base && end - qp->base > qp->buffer_bytes)
			qp->buffer_bytes = end - qp->base;
		if (is_repeated)
			take_timeout(capture, i);
	}
}

/* Leaves out what a script does not take from a capture: packets of other transports, of QP 0 and 1, to multicast
 * groups, and from a device to itself. */
static bool is_left_out(const struct vb_packet *packet)
{
	const bool is_own = packet->has & VB_PACKET_HAS_GIDS
				    ? memcmp(packet->source_gid, packet->dest_gid, 16) == 0
				    : packet->slid == packet->dlid;

	return type_of(packet->opcode) == IBV_QPT_DRIVER || packet->dest_qpn < 2 ||
	       packet->dest_qpn == GROUP_QPN || is_own;
}

bool capture_find_qps(struct capture *capture, char *why, size_t why_bytes)
{
	if (!find_device(capture)) {
		snprintf(why, why_bytes, "the capture has no packet of the device %s",
			 capture->device ? capture->device : "(it has no packet)");
		return false;
	}
	for (unsigned int i = 0; i < capture->count; i++) {
		struct capture_packet *at = &capture->packets[i];
		struct capture_qp *qp;

		at->qp = -1;
		if (is_left_out(&at->packet))
			continue;
		qp = place(capture, i);
		if (!qp) {
			snprintf(why, why_bytes,
				 "the capture has more than %d QPs of the device; capture fewer of "
				 "them",
				 SCRIPT_QPS_MAX);
			return false;
		}
		at->qp = (int)(qp - capture->qps);
		take_psn(qp, at);
		take_mtu(qp, &at->packet);
		take_memory(qp, at);
		take_timer(qp, at);
	}
	if (!capture->qp_count) {
		snprintf(why, why_bytes,
			 "the capture has no packet of RC, UC or UD between the device and a peer");
		return false;
	}
	for (unsigned int i = 0; i < capture->qp_count; i++) {
		capture->qps[i].next_psn = capture->qps[i].psn;
		if (!capture->qps[i].mtu_bytes)
			capture->qps[i].mtu_bytes = 4096;
	}
	take_sizes(capture);
	return true;
}
