/* SPDX-License-Identifier: MIT */
/* A line becomes a packet, or is compared with one. Both read one table of fields. */
#include "src/script/run.h"

#include "src/base/count.h"

#include <inttypes.h>
#include <string.h>
#include <verbena/error.h>

#define MEMBER(name) offsetof(struct vb_packet, name), sizeof(((struct vb_packet *)0)->name)
#define ATOMICS	     VB_PACKET_HAS_ATOMIC

/* What a field of a packet is if the line does not say it. */
enum absent {
	FREE, /* not compared */
	FIXED,
	OF_DEVICE, /* the QPN, the key or the address of the device's side, or of the peer's side */
};

struct member {
	enum script_field field;
	size_t offset, size;
	unsigned int has;  /* the header of the field; 0: the BTH */
	uint8_t operation; /* only of this one; 0: of all that have the header */
	enum absent absent;
	uint64_t fixed;
	bool hexadecimal;
};

static const struct member members[] = {
	{SCRIPT_PSN, MEMBER(psn), .absent = FREE},
	{SCRIPT_LENGTH, MEMBER(payload_bytes), .absent = FIXED},
	{SCRIPT_ACK_REQUEST, MEMBER(ack_request), .absent = FREE},
	{SCRIPT_SOLICITED, MEMBER(solicited), .absent = FIXED},
	{SCRIPT_PKEY, MEMBER(pkey), .absent = FIXED, .fixed = 0xffff, .hexadecimal = true},
	{SCRIPT_DEST, MEMBER(dest_qpn), .absent = OF_DEVICE, .hexadecimal = true},
	{SCRIPT_SYNDROME, MEMBER(syndrome), VB_PACKET_HAS_AETH, .absent = FIXED,
	 .hexadecimal = true},
	{SCRIPT_MSN, MEMBER(msn), VB_PACKET_HAS_AETH},
	{SCRIPT_ADDR, MEMBER(remote_addr), VB_PACKET_HAS_RETH | ATOMICS},
	{SCRIPT_RKEY, MEMBER(rkey), VB_PACKET_HAS_RETH | ATOMICS, .absent = OF_DEVICE,
	 .hexadecimal = true},
	{SCRIPT_DMA, MEMBER(dma_bytes), VB_PACKET_HAS_RETH},
	{SCRIPT_IMM, MEMBER(imm), VB_PACKET_HAS_IMM, .hexadecimal = true},
	{SCRIPT_KEY, MEMBER(rkey), VB_PACKET_HAS_INVALIDATE, .hexadecimal = true},
	{SCRIPT_ADD, MEMBER(swap_add), ATOMICS, 0x14},
	{SCRIPT_COMPARE, MEMBER(compare), ATOMICS, 0x13},
	{SCRIPT_SWAP, MEMBER(swap_add), ATOMICS, 0x13},
	{SCRIPT_ORIGINAL, MEMBER(original), VB_PACKET_HAS_ORIGINAL},
	{SCRIPT_QKEY, MEMBER(qkey), VB_PACKET_HAS_DETH, .hexadecimal = true},
	{SCRIPT_SRQN, MEMBER(xrc_srqn), VB_PACKET_HAS_XRC, .hexadecimal = true},
	{SCRIPT_SOURCE_QPN, MEMBER(source_qpn), VB_PACKET_HAS_DETH, .absent = OF_DEVICE,
	 .hexadecimal = true},
};

/* --- data --- */

uint8_t script_pattern(uint64_t place)
{
	return (uint8_t)(place * 167 + (place >> 8) * 13 + 1);
}

void script_data(const struct script_line *line, uint8_t *bytes, size_t length_bytes)
{
	const struct script_value *data = &line->values[SCRIPT_DATA];

	for (size_t i = 0; i < length_bytes; i++)
		bytes[i] = data->digit_bytes ? data->digits[i % data->digit_bytes]
					     : script_pattern(data->number + i);
}

/* --- what values stand for --- */

static bool has_member(const struct member *member, unsigned int has, uint8_t opcode)
{
	return (!member->has || has & member->has) &&
	       (!member->operation || member->operation == (opcode & 0x1f));
}

/* A READ response, an ACK or an atomic's answer has a PSN of the side that asked. */
static bool is_answer(uint8_t opcode)
{
	return (opcode & 0x1f) >= 0x0d && (opcode & 0x1f) <= 0x12;
}

/* Returns the number that the field's values count from. */
static uint64_t base_of(enum script_field field, bool from_device, uint8_t opcode,
			const struct script_qp *qp)
{
	if (field == SCRIPT_PSN)
		return from_device != is_answer(opcode) ? qp->psn : qp->peer_psn;
	if (field == SCRIPT_ADDR)
		return from_device ? SCRIPT_PEER_BASE : (uintptr_t)qp->buffer;
	return 0;
}

/* Returns the field that stands on the wire when the line does not say it. */
static uint64_t absent_value(const struct member *member, const struct script_line *line,
			     const struct script_qp *qp)
{
	const bool from_device = line->statement == SCRIPT_OUT;

	switch (member->field) {
	case SCRIPT_DEST:
		if (line->values[SCRIPT_GROUP].given)
			return SCRIPT_GROUP_QPN;
		return from_device ? qp->peer_qpn : qp->qp->qp_num;
	case SCRIPT_SOURCE_QPN:
		return from_device ? qp->qp->qp_num : qp->peer_qpn;
	case SCRIPT_RKEY:
		return from_device ? SCRIPT_PEER_RKEY : qp->mr->rkey;
	case SCRIPT_SYNDROME:
		return line->operation.syndrome |
		       (line->values[SCRIPT_TIMER].given ? line->values[SCRIPT_TIMER].number : 0);
	case SCRIPT_LENGTH:
		return line->values[SCRIPT_DATA].digit_bytes;
	default:
		return member->fixed;
	}
}

/* Returns the number that an address of a line counts from: a window may be of another QP's memory. */
static uint64_t memory_base(const struct script_run *run, const struct script_line *line)
{
	const struct script_value *key = &line->values[SCRIPT_RKEY];
	const unsigned int owner = key->is_name ? run->windows[key->number].of : line->qp;

	return line->statement == SCRIPT_OUT ? SCRIPT_PEER_BASE : (uintptr_t)run->qps[owner].buffer;
}

static uint64_t wire_value(const struct member *member, const struct script_run *run,
			   const struct script_line *line)
{
	const struct script_qp *qp = &run->qps[line->qp];
	const struct script_value *value = &line->values[member->field];
	const bool from_device = line->statement == SCRIPT_OUT;
	uint64_t number;

	if (!value->given)
		return absent_value(member, line, qp);
	if (member->field == SCRIPT_SRQN)
		return script_srqn(run, value);
	if (member->field == SCRIPT_ADDR)
		return value->number + memory_base(run, line);
	if (value->is_name)
		return script_key(run, line, value);
	if (value->bad)
		return (from_device ? SCRIPT_PEER_RKEY : qp->mr->rkey) ^ 0xffff00;
	number = value->number;
	if (!value->absolute)
		number += base_of(member->field, from_device, line->operation.opcode, qp);
	return member->field == SCRIPT_PSN ? number & SCRIPT_PSN_MASK : number;
}

static uint64_t get(const struct vb_packet *packet, const struct member *member)
{
	const uint8_t *at = (const uint8_t *)packet + member->offset;
	uint64_t wide;
	uint32_t word;
	uint16_t half;

	switch (member->size) {
	case 8:
		memcpy(&wide, at, 8);
		return wide;
	case 4:
		memcpy(&word, at, 4);
		return word;
	case 2:
		memcpy(&half, at, 2);
		return half;
	default:
		return *at;
	}
}

static void set(struct vb_packet *packet, const struct member *member, uint64_t number)
{
	uint8_t *at = (uint8_t *)packet + member->offset;
	const uint32_t word = (uint32_t)number;
	const uint16_t half = (uint16_t)number;

	if (member->size == 8)
		memcpy(at, &number, 8);
	else if (member->size == 4)
		memcpy(at, &word, 4);
	else if (member->size == 2)
		memcpy(at, &half, 2);
	else
		*at = (uint8_t)number;
}

/* --- making --- */

static void set_addresses(struct vb_packet *packet, const struct script_wire *wire,
			  const struct script_value *group)
{
	packet->has = wire->infiniband ? VB_PACKET_HAS_LIDS : VB_PACKET_HAS_GIDS;
	memcpy(packet->source_gid, &wire->peer_gid, 16);
	memcpy(packet->dest_gid, &wire->gid, 16);
	packet->slid = wire->peer_lid;
	packet->dlid = wire->lid;
	if (group->given) {
		const union ibv_gid gid = script_group_gid(wire, group->number);

		packet->has |= VB_PACKET_HAS_GIDS;
		memcpy(packet->dest_gid, &gid, 16);
		packet->dlid = script_group_lid(wire, group->number);
	}
}

size_t script_packet_make(const struct script_run *run, const struct script_line *line,
			  const struct script_qp *to, uint8_t *frame)
{
	const struct script_wire *wire = run->wire;
	struct vb_packet packet = {.opcode = line->operation.opcode};
	uint8_t payload[VB_FRAME_BYTES_MAX];
	size_t length_bytes;

	for (size_t i = 0; i < COUNT(members); i++)
		if (has_member(&members[i], line->has, packet.opcode))
			set(&packet, &members[i], wire_value(&members[i], run, line));
	if (to)
		packet.dest_qpn = to->qp->qp_num;
	set_addresses(&packet, wire, &line->values[SCRIPT_GROUP]);
	script_data(line, payload,
		    packet.payload_bytes < sizeof(payload) ? packet.payload_bytes : 0);
	length_bytes = vb_packet_encode(&packet, payload, frame);
	if (line->values[SCRIPT_ICRC].bad && length_bytes)
		frame[length_bytes - 1 - (wire->infiniband ? 2 : 0)] ^= 0xff;
	return length_bytes;
}

/* --- showing --- */

static void show(const struct member *member, uint64_t number, bool from_device, uint8_t opcode,
		 const struct script_qp *qp, char *text, size_t size_bytes)
{
	const uint64_t base = qp ? base_of(member->field, from_device, opcode, qp) : 0;
	int64_t from_base = (int64_t)(number - base);
	char words[40];

	switch (member->field) {
	case SCRIPT_PSN:
		from_base = (int64_t)((number - base) & SCRIPT_PSN_MASK);
		if (from_base > 0x7fffff)
			from_base -= 0x1000000;
		snprintf(text, size_bytes, "%" PRId64 " (@%" PRIu64 ")", from_base, number);
		break;
	case SCRIPT_ADDR:
		snprintf(text, size_bytes, "%" PRId64 " (0x%" PRIx64 ")", from_base, number);
		break;
	case SCRIPT_SYNDROME:
		snprintf(text, size_bytes, "0x%02" PRIx64 " %s", number,
			 vb_syndrome_text((uint8_t)number, words, sizeof(words)));
		break;
	default:
		snprintf(text, size_bytes, member->hexadecimal ? "0x%" PRIx64 : "%" PRIu64, number);
	}
}

/* --- comparing --- */

/* Returns false if the line leaves the field open. */
static bool is_compared(const struct member *member, const struct script_line *line)
{
	const struct script_value *value = &line->values[member->field];

	if (value->given)
		return !value->any;
	if (member->field == SCRIPT_DEST || member->field == SCRIPT_SYNDROME)
		return true;
	return !line->rest_any && member->absent != FREE;
}

static bool is_equal(const struct member *member, const struct script_line *line, uint64_t wanted,
		     uint64_t got)
{
	const bool named = member->field == SCRIPT_SYNDROME && !line->values[member->field].given;
	const struct script_value *timer = &line->values[SCRIPT_TIMER];
	const uint8_t mask = timer->given && !timer->any ? 0xff : line->operation.mask;

	return named ? ((wanted ^ got) & mask) == 0 : wanted == got;
}

static bool compare_member(const struct member *member, const struct script_run *run,
			   const struct script_line *line, const struct vb_packet *packet)
{
	const struct script_qp *qp = &run->qps[line->qp];
	const uint64_t wanted = wire_value(member, run, line), got = get(packet, member);
	const bool compared = is_compared(member, line);
	const bool equal = !compared || is_equal(member, line, wanted, got);
	char wanted_text[64] = "*", got_text[64];

	if (compared)
		show(member, wanted, true, packet->opcode, qp, wanted_text, sizeof(wanted_text));
	show(member, got, true, packet->opcode, qp, got_text, sizeof(got_text));
	script_row(run->failure, script_fields[member->field].name, wanted_text, got_text, !equal);
	return equal;
}

static bool compare_data(const struct script_line *line, const struct script_wire *wire,
			 const struct script_frame *frame, const struct vb_packet *packet,
			 struct script_failure *failure)
{
	const size_t tail_bytes = 4 + (wire->infiniband ? 2 : 0);
	const uint32_t length_bytes = packet->payload_bytes;
	const uint8_t *payload = frame->bytes + frame->length_bytes - tail_bytes -
				 (-length_bytes & 3) - length_bytes;
	uint8_t wanted[VB_FRAME_BYTES_MAX];
	char wanted_text[48], got_text[48];

	if (!line->values[SCRIPT_DATA].given || line->values[SCRIPT_DATA].any)
		return true;
	script_data(line, wanted, length_bytes);
	for (uint32_t i = 0; i < length_bytes; i++) {
		if (payload[i] == wanted[i])
			continue;
		snprintf(wanted_text, sizeof(wanted_text), "byte %u is 0x%02x", i, wanted[i]);
		snprintf(got_text, sizeof(got_text), "byte %u is 0x%02x", i, payload[i]);
		script_row(failure, "data", wanted_text, got_text, true);
		return false;
	}
	return true;
}

/* A line that names a group wants its GID as the packet's destination. */
static bool compare_group(const struct script_run *run, const struct script_line *line,
			  const struct vb_packet *packet)
{
	const struct script_value *group = &line->values[SCRIPT_GROUP];
	const union ibv_gid wanted = script_group_gid(run->wire, group->number);
	const bool equal = memcmp(packet->dest_gid, &wanted, 16) == 0;

	if (group->given && !group->any && !equal)
		script_row(run->failure, "group", "the group's GID", "another GID", true);
	return !group->given || group->any || equal;
}

bool script_packet_compare(const struct script_run *run, const struct script_line *line,
			   const struct script_frame *frame)
{
	const struct script_wire *wire = run->wire;
	struct script_failure *failure = run->failure;
	struct vb_packet packet;
	const int err =
		vb_packet_decode(frame->bytes, frame->length_bytes, wire->infiniband, &packet);
	bool equal = packet.opcode == line->operation.opcode;
	const char *name;

	if (err)
		return script_fail(failure, line,
				   "the device has sent a frame that is no packet: %s",
				   vb_last_error());
	name = script_operation_name(packet.opcode, packet.has, packet.syndrome);
	script_row(failure, "packet", line->operation.name, name,
		   strcmp(name, line->operation.name) != 0);
	for (size_t i = 0; i < COUNT(members); i++)
		if (has_member(&members[i], packet.has & line->has, packet.opcode))
			equal &= compare_member(&members[i], run, line, &packet);
	equal &= compare_group(run, line, &packet);
	equal &= compare_data(line, wire, frame, &packet, failure);
	return equal || script_fail(failure, line, "the packet of the device is another one");
}

void script_packet_tell(const struct script_run *run, const struct script_frame *frame)
{
	const struct script_qp *qp = &run->qps[0];
	struct vb_packet packet;
	char text[64];

	vb_packet_decode(frame->bytes, frame->length_bytes, run->wire->infiniband, &packet);
	for (unsigned int i = 0; i < run->script->qp_count; i++)
		if (run->qps[i].peer_qpn == packet.dest_qpn)
			qp = &run->qps[i];
	if (script_message_name(run->wire, frame))
		script_row(run->failure, "message", NULL, script_message_name(run->wire, frame),
			   true);
	script_row(run->failure, "packet", NULL,
		   script_operation_name(packet.opcode, packet.has, packet.syndrome), true);
	for (size_t i = 0; i < COUNT(members); i++) {
		if (!has_member(&members[i], packet.has, packet.opcode))
			continue;
		show(&members[i], get(&packet, &members[i]), true, packet.opcode, qp, text,
		     sizeof(text));
		script_row(run->failure, script_fields[members[i].field].name, NULL, text, false);
	}
}
