/* SPDX-License-Identifier: MIT */
/* The lines of a script that repeats a capture: the packets, and the calls that the device needs for them. */
#include "src/script/capture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096
#define GRH_BYTES  40

/* Opcodes of RC, without the transport. */
enum {
	SEND_FIRST = 0x00,
	SEND_LAST_IMM = 0x03,
	SEND_ONLY = 0x04,
	SEND_ONLY_IMM = 0x05,
	WRITE_FIRST = 0x06,
	WRITE_LAST_IMM = 0x09,
	WRITE_ONLY = 0x0a,
	WRITE_ONLY_IMM = 0x0b,
	READ_REQUEST = 0x0c,
	COMPARE_SWAP = 0x13,
	FETCH_ADD = 0x14,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
};

struct writer {
	const struct capture *capture;
	FILE *out;
	uint64_t last_ns;
	uint32_t next[SCRIPT_QPS_MAX];	   /* the device's next PSN */
	uint32_t expected[SCRIPT_QPS_MAX]; /* the peer's next PSN */
	unsigned int posts;
};

static uint8_t operation_of(const struct vb_packet *packet)
{
	return packet->opcode & 0x1f;
}

static const struct capture_qp *qp_of(const struct writer *writer, const struct capture_packet *at)
{
	return &writer->capture->qps[at->qp];
}

/* Writes the time of a line, which the first line of an instant has. On a real clock only repetitions have
 * one: the simulator answers at once. */
static void write_time(struct writer *writer, const struct capture_packet *at, bool is_repeated)
{
	char text[32];

	if (writer->capture->exact && at->time_ns > writer->last_ns)
		fprintf(writer->out, "+%s ",
			script_time_text(at->time_ns - writer->last_ns, text, sizeof(text)));
	else if (!writer->capture->exact && is_repeated)
		fprintf(writer->out, "within 10s ");
	writer->last_ns = at->time_ns;
}

static void write_qp_name(const struct writer *writer, const struct capture_packet *at)
{
	if (at->qp)
		fprintf(writer->out, " qp=q%d", at->qp);
	fputc('\n', writer->out);
}

/* --- packets --- */

static int64_t relative(uint32_t psn, uint32_t first)
{
	const uint32_t distance = (psn - first) & SCRIPT_PSN_MASK;

	return distance > 0x7fffff ? (int64_t)distance - 0x1000000 : distance;
}

static void write_headers(const struct writer *writer, const struct capture_packet *at)
{
	const struct vb_packet *packet = &at->packet;
	const struct capture_qp *qp = qp_of(writer, at);
	FILE *out = writer->out;

	if (packet->has & VB_PACKET_HAS_AETH)
		fprintf(out, " msn=%u", packet->msn);
	if (packet->has & VB_PACKET_HAS_AETH && (packet->syndrome & 0xe0) == 0x20)
		fprintf(out, " timer=%u", packet->syndrome & 0x1f);
	if (packet->has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC))
		fprintf(out, " addr=%" PRIu64,
			packet->remote_addr - (at->from_device ? qp->peer_base : qp->base));
	if (packet->has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC) && at->from_device)
		fprintf(out, " rkey=0x%x", packet->rkey);
	else if (packet->has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC) &&
		 packet->rkey != qp->rkey)
		fprintf(out, " rkey=bad");
	if (packet->has & VB_PACKET_HAS_RETH)
		fprintf(out, " dma=%u", packet->dma_bytes);
	if (operation_of(packet) == FETCH_ADD)
		fprintf(out, " add=%" PRIu64, packet->swap_add);
	if (operation_of(packet) == COMPARE_SWAP)
		fprintf(out, " compare=%" PRIu64 " swap=%" PRIu64, packet->compare,
			packet->swap_add);
	if (packet->has & VB_PACKET_HAS_ORIGINAL && at->from_device)
		fprintf(out, " original=*");
	else if (packet->has & VB_PACKET_HAS_ORIGINAL)
		fprintf(out, " original=%" PRIu64, packet->original);
	if (packet->has & VB_PACKET_HAS_IMM)
		fprintf(out, " imm=0x%x", packet->imm);
	if (packet->has & VB_PACKET_HAS_INVALIDATE)
		fprintf(out, " key=0x%x", packet->rkey);
	if (packet->has & VB_PACKET_HAS_DETH)
		fprintf(out, " qkey=0x%x", packet->qkey);
}

static void write_packet(struct writer *writer, const struct capture_packet *at, bool is_repeated)
{
	const struct vb_packet *packet = &at->packet;
	const struct capture_qp *qp = qp_of(writer, at);
	const bool by_device = at->from_device != capture_is_answer(packet);

	write_time(writer, at, is_repeated && at->from_device);
	fprintf(writer->out, "%c %s psn=%" PRId64, at->from_device ? '>' : '<',
		script_operation_name(packet->opcode, packet->has, packet->syndrome),
		relative(packet->psn, by_device ? qp->psn : qp->peer_psn));
	if (packet->payload_bytes)
		fprintf(writer->out, " length=%u", packet->payload_bytes);
	write_headers(writer, at);
	if (packet->pkey != 0xffff)
		fprintf(writer->out, " pkey=0x%x", packet->pkey);
	if (packet->solicited)
		fprintf(writer->out, " solicited");
	if (packet->ack_request)
		fprintf(writer->out, " ack_request");
	if (at->wrong_icrc && !at->from_device)
		fprintf(writer->out, " icrc=bad");
	write_qp_name(writer, at);
}

/* --- what the device posts --- */

static const char *work_of(uint8_t first, uint8_t last)
{
	switch (first) {
	case SEND_FIRST:
	case SEND_ONLY:
	case SEND_ONLY_IMM:
	case SEND_ONLY_INV:
		return last == SEND_LAST_IMM || last == SEND_ONLY_IMM	? "SEND_WITH_IMM"
		       : last == SEND_LAST_INV || last == SEND_ONLY_INV ? "SEND_WITH_INV"
									: "SEND";
	case READ_REQUEST:
		return "RDMA_READ";
	case COMPARE_SWAP:
		return "ATOMIC_CMP_AND_SWP";
	case FETCH_ADD:
		return "ATOMIC_FETCH_AND_ADD";
	default:
		return last == WRITE_LAST_IMM || last == WRITE_ONLY_IMM ? "RDMA_WRITE_WITH_IMM"
									: "RDMA_WRITE";
	}
}

static bool is_first(uint8_t operation)
{
	return operation == SEND_FIRST || operation == WRITE_FIRST;
}

/* Returns the last packet of a message, and adds up its bytes. */
static const struct capture_packet *find_last(const struct writer *writer, unsigned int first,
					      uint64_t *bytes)
{
	const struct capture_packet *from = &writer->capture->packets[first], *last = from;
	uint32_t psn = from->packet.psn;

	*bytes = from->packet.payload_bytes;
	for (unsigned int i = first + 1;
	     is_first(operation_of(&from->packet)) && i < writer->capture->count; i++) {
		const struct capture_packet *at = &writer->capture->packets[i];
		const uint8_t operation = operation_of(&at->packet);

		if (at->qp != from->qp || !at->from_device || capture_is_answer(&at->packet) ||
		    at->packet.psn != ((psn + 1) & SCRIPT_PSN_MASK))
			continue;
		psn = at->packet.psn;
		*bytes += at->packet.payload_bytes;
		last = at;
		if (operation != 0x01 && operation != 0x07)
			break;
	}
	return last;
}

/* Returns how long the memory of a QP is. */
static uint64_t buffer_of(const struct capture_qp *qp)
{
	const uint64_t bytes =
		qp->buffer_bytes > SCRIPT_BUFFER ? qp->buffer_bytes : SCRIPT_BUFFER - GRH_BYTES;

	return (bytes + GRH_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Returns a number of retries that the device has not exceeded. */
static unsigned int retries_of(unsigned int repeated, bool had_to_repeat)
{
	return had_to_repeat && repeated < 7 ? repeated : 7;
}

static void write_post(struct writer *writer, unsigned int first)
{
	const struct capture_packet *from = &writer->capture->packets[first];
	const struct capture_qp *qp = qp_of(writer, from);
	const uint8_t operation = operation_of(&from->packet);
	uint64_t bytes;
	const struct capture_packet *last = find_last(writer, first, &bytes);

	if (from->packet.has & VB_PACKET_HAS_RETH)
		bytes = from->packet.dma_bytes;
	write_time(writer, from, false);
	fprintf(writer->out, "post_send %s id=%u", work_of(operation, operation_of(&last->packet)),
		++writer->posts);
	if (bytes && operation != COMPARE_SWAP && operation != FETCH_ADD)
		fprintf(writer->out, " length=%" PRIu64, bytes);
	if (from->packet.has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC))
		fprintf(writer->out, " addr=%" PRIu64 " rkey=0x%x",
			from->packet.remote_addr - qp->peer_base, from->packet.rkey);
	if (operation == FETCH_ADD)
		fprintf(writer->out, " add=%" PRIu64, from->packet.swap_add);
	if (operation == COMPARE_SWAP)
		fprintf(writer->out, " compare=%" PRIu64 " swap=%" PRIu64, from->packet.compare,
			from->packet.swap_add);
	if (last->packet.has & VB_PACKET_HAS_IMM)
		fprintf(writer->out, " imm=0x%x", last->packet.imm);
	if (last->packet.has & VB_PACKET_HAS_INVALIDATE)
		fprintf(writer->out, " key=0x%x", last->packet.rkey);
	if (from->packet.has & VB_PACKET_HAS_DETH)
		fprintf(writer->out, " qkey=0x%x", from->packet.qkey);
	if (last->packet.solicited)
		fprintf(writer->out, " solicited");
	write_qp_name(writer, from);
}

/* --- what the device receives --- */

static bool needs_receive(uint8_t operation)
{
	switch (operation) {
	case SEND_FIRST:
	case SEND_ONLY:
	case SEND_ONLY_IMM:
	case SEND_ONLY_INV:
	case WRITE_LAST_IMM:
	case WRITE_ONLY_IMM:
		return true;
	default:
		return false;
	}
}

/* Returns true if the device's next answer of the QP refuses the request's PSN. */
static bool is_refused(const struct writer *writer, unsigned int request)
{
	const struct capture_packet *from = &writer->capture->packets[request];

	for (unsigned int i = request + 1; i < writer->capture->count; i++) {
		const struct capture_packet *at = &writer->capture->packets[i];

		if (at->qp == from->qp && at->from_device && capture_is_answer(&at->packet))
			return at->packet.psn == from->packet.psn &&
			       at->packet.has & VB_PACKET_HAS_AETH &&
			       (at->packet.syndrome & 0xe0) != 0;
	}
	return false;
}

static void take_request(struct writer *writer, unsigned int index)
{
	const struct capture_packet *at = &writer->capture->packets[index];
	const struct capture_qp *qp = qp_of(writer, at);
	const bool is_new = qp->type != IBV_QPT_RC || (at->packet.psn == writer->expected[at->qp] &&
						       !is_refused(writer, index));

	if (!is_new || at->wrong_icrc)
		return;
	writer->expected[at->qp] =
		(at->packet.psn + capture_psns(qp, &at->packet)) & SCRIPT_PSN_MASK;
	if (!needs_receive(operation_of(&at->packet)))
		return;
	write_time(writer, at, false);
	fprintf(writer->out, "post_recv id=%u length=%" PRIu64, ++writer->posts, buffer_of(qp));
	write_qp_name(writer, at);
}

/* --- lines --- */

static void write_qp(const struct writer *writer, int index)
{
	const struct capture_qp *qp = &writer->capture->qps[index];

	fprintf(writer->out, "qp q%d %s first_psn=%u first_peer_psn=%u", index,
		vb_qp_type_str(qp->type), qp->psn, qp->peer_psn);
	if (qp->type != IBV_QPT_UD)
		fprintf(writer->out, " mtu=%u", qp->mtu_bytes);
	else if (qp->qkey)
		fprintf(writer->out, " qkey=0x%x", qp->qkey);
	fprintf(writer->out, " buffer=%" PRIu64 " max_wr=1024", buffer_of(qp));
	if (qp->type == IBV_QPT_RC)
		fprintf(writer->out,
			" max_rd_atomic=16 max_dest_rd_atomic=16 retry_cnt=%u rnr_retry=%u",
			retries_of(qp->retries, qp->retries),
			retries_of(qp->rnr_retries, qp->had_rnr));
	if (qp->timeout >= 0)
		fprintf(writer->out, " timeout=%d", qp->timeout);
	if (qp->rnr_timer >= 0)
		fprintf(writer->out, " min_rnr_timer=%d", qp->rnr_timer);
	fputc('\n', writer->out);
}

static void write_line(struct writer *writer, unsigned int index)
{
	const struct capture_packet *at = &writer->capture->packets[index];
	const struct vb_packet *packet = &at->packet;
	const struct capture_qp *qp = qp_of(writer, at);
	bool is_repeated = false;

	if (packet->lost && !at->from_device)
		return;
	if (!at->from_device && !capture_is_answer(packet))
		take_request(writer, index);
	if (at->from_device && !capture_is_answer(packet)) {
		is_repeated = packet->psn != writer->next[at->qp];
		if (!is_repeated)
			writer->next[at->qp] =
				(packet->psn + capture_psns(qp, packet)) & SCRIPT_PSN_MASK;
		if (!is_repeated && work_of(operation_of(packet), 0) &&
		    (is_first(operation_of(packet)) || needs_receive(operation_of(packet)) ||
		     packet->has & (VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC)) &&
		    operation_of(packet) != WRITE_LAST_IMM)
			write_post(writer, index);
	}
	write_packet(writer, at, is_repeated);
}

bool script_write(struct capture *capture, FILE *out, char *why, size_t why_bytes)
{
	struct writer writer = {.capture = capture, .out = out};

	if (!capture_find_qps(capture, why, why_bytes))
		return false;
	fprintf(out, "source a capture, by verbena trace to-script\n\n");
	for (unsigned int i = 0; i < capture->qp_count; i++) {
		write_qp(&writer, (int)i);
		writer.next[i] = capture->qps[i].psn;
		writer.expected[i] = capture->qps[i].peer_psn;
	}
	fprintf(out, "ignore completions\n\n");
	writer.last_ns = capture->count ? capture->packets[0].time_ns : 0;
	for (unsigned int i = 0; i < capture->count; i++)
		if (capture->packets[i].qp >= 0)
			write_line(&writer, i);
	return true;
}
