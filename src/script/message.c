/* SPDX-License-Identifier: MIT */
/* Messages of the connection manager: MADs of QP 1, with the fields of docs/cm-messages.md. */
#include "src/script/run.h"

#include "src/base/count.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>
#include <verbena/error.h>

#define HEADER_BYTES	24
#define MANAGER_QPN	1
#define MANAGER_QKEY	0x80010000
#define SEND_ONLY_OF_UD 0x64
#define CLASS_CM	7
#define ATTRIBUTE_AT	16

#define PEER_COMM_ID	    0x5c000001 /* what the peer calls its end */
#define PEER_TRANSACTION_ID UINT64_C(0x5c00000000000001)

enum message {
#define CM_MESSAGE(message, attribute, about) MESSAGE_##message,
#include "sim/wire/cm_fields.def"
	MESSAGES,
};

static const struct {
	const char *name;
	uint16_t attribute;
} messages[MESSAGES] = {
#define CM_MESSAGE(message, attribute, about) [MESSAGE_##message] = {#message, attribute},
#include "sim/wire/cm_fields.def"
};

struct field {
	const char *name;
	enum message message;
	uint16_t byte; /* behind the header; of the header from its beginning */
	uint8_t bit;
	uint16_t bits; /* 0: bytes without an order */
	uint16_t bytes;
};

static const struct field fields[] = {
#define CM_FIELD(message, field, name, byte, bit, bits) \
	{name, MESSAGE_##message, byte, bit, bits, ((bit) + (bits) + 7) / 8},
#define CM_BYTES(message, field, name, byte, bytes) {name, MESSAGE_##message, byte, 0, 0, bytes},
#include "sim/wire/cm_fields.def"
};

/* --- the table --- */

unsigned int script_message_find(const char *name)
{
	for (unsigned int i = MESSAGE_NONE + 1; i < MESSAGES; i++)
		if (strcmp(messages[i].name, name) == 0)
			return i;
	return MESSAGE_NONE;
}

int script_message_field(unsigned int message, const char *name)
{
	for (size_t i = 0; i < COUNT(fields); i++)
		if (fields[i].message == message && strcmp(fields[i].name, name) == 0)
			return (int)i;
	return message == MESSAGE_NONE ? -1 : script_message_field(MESSAGE_NONE, name);
}

uint64_t script_message_max(int field)
{
	return fields[field].bits ? UINT64_MAX >> (64 - fields[field].bits) : 0;
}

unsigned int script_message_bytes(int field)
{
	return fields[field].bits ? 0 : fields[field].bytes;
}

/* --- numbers in a MAD --- */

static size_t place_of(const struct field *field)
{
	return field->byte + (field->message == MESSAGE_NONE ? 0u : HEADER_BYTES);
}

static uint64_t get(const uint8_t *mad, const struct field *field)
{
	const unsigned int shift = field->bytes * 8u - field->bit - field->bits;
	uint64_t number = 0;

	for (unsigned int i = 0; i < field->bytes; i++)
		number = number << 8 | mad[place_of(field) + i];
	return number >> shift & (UINT64_MAX >> (64 - field->bits));
}

static void set(uint8_t *mad, const struct field *field, uint64_t number)
{
	const unsigned int shift = field->bytes * 8u - field->bit - field->bits;
	const uint64_t mask = UINT64_MAX >> (64 - field->bits) << shift;
	uint8_t *at = mad + place_of(field);

	number = number << shift & mask;
	for (unsigned int i = 0; i < field->bytes; i++) {
		const unsigned int low = (field->bytes - 1u - i) * 8u;

		at[i] = (uint8_t)((at[i] & ~(mask >> low)) | number >> low);
	}
}

/* Sets a field of the message if the message has it. */
static void set_named(uint8_t *mad, unsigned int message, const char *name, uint64_t number)
{
	const int field = script_message_field(message, name);

	if (field >= 0)
		set(mad, &fields[field], number);
}

/* --- making --- */

static void set_bytes(uint8_t *mad, const char *name, const uint8_t *bytes, size_t length_bytes)
{
	const int field = script_message_field(script_message_find("REQ"), name);

	memcpy(mad + place_of(&fields[field]), bytes, length_bytes);
}

/* The header that Linux puts before the private data of a REQ: Linux drivers/infiniband/core/cma.c, struct cma_hdr. */
static void set_private_header(uint8_t *mad, const struct script_wire *wire)
{
	uint8_t header[36] = {[1] = 4 << 4, [2] = 0xc0, [3] = 0x00};

	memcpy(header + 16, wire->peer_ip, 4);
	memcpy(header + 32, wire->ip, 4);
	set_bytes(mad, "private_data", header, sizeof(header));
}

/* What each message of the peer has unless its line says otherwise. */
static void set_defaults(uint8_t *mad, const struct script_run *run, const struct script_line *line)
{
	const struct script_manager *manager = &run->manager;
	const struct {
		const char *name;
		uint64_t number;
	} rows[] = {
		{"base_version", 1},
		{"class", CLASS_CM},
		{"class_version", 2},
		{"method", 3},
		{"attribute_id", messages[line->message].attribute},
		{"transaction_id", manager->heard ? manager->transaction_id : PEER_TRANSACTION_ID},
		{"local_comm_id", PEER_COMM_ID},
		{"remote_comm_id", manager->comm_id},
		{"remote_qpn", manager->qpn},
		{"request_id", manager->heard ? manager->comm_id : PEER_COMM_ID},
		{"service_id", SCRIPT_TCP_SERVICE + SCRIPT_LISTEN_PORT},
		{"local_ca_guid", run->wire->peer_guid},
		{"local_qpn", SCRIPT_PEER_QPN},
		{"starting_psn", SCRIPT_PEER_PSN},
		{"responder_resources", 4},
		{"initiator_depth", 4},
		{"partition_key", 0xffff},
		{"retry_count", 6},
		{"rnr_retry_count", 6},
		{"path_mtu", 3},
		{"remote_cm_response_timeout", 20},
		{"local_cm_response_timeout", 20},
		{"max_cm_retries", 15},
		{"primary_local_lid", run->wire->infiniband ? run->wire->peer_lid : 0xffff},
		{"primary_remote_lid", run->wire->infiniband ? run->wire->lid : 0xffff},
		{"primary_packet_rate", 2},
		{"primary_hop_limit", 64},
		{"primary_subnet_local", run->wire->infiniband},
		{"primary_local_ack_timeout", 18},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		set_named(mad, line->message, rows[i].name, rows[i].number);
	if (line->message != MESSAGE_REQ)
		return;
	set_bytes(mad, "primary_local_gid", run->wire->peer_gid.raw, 16);
	set_bytes(mad, "primary_remote_gid", run->wire->gid.raw, 16);
	set_private_header(mad, run->wire);
}

size_t script_message_make(const struct script_run *run, const struct script_line *line,
			   uint8_t *frame)
{
	const struct script_wire *wire = run->wire;
	uint8_t mad[SCRIPT_MAD_BYTES] = {0};
	struct vb_packet packet = {
		.opcode = SEND_ONLY_OF_UD,
		.has = wire->infiniband ? VB_PACKET_HAS_LIDS : VB_PACKET_HAS_GIDS,
		.pkey = 0xffff,
		.dest_qpn = MANAGER_QPN,
		.source_qpn = MANAGER_QPN,
		.qkey = MANAGER_QKEY,
		.psn = run->wire->frame_count & SCRIPT_PSN_MASK,
		.payload_bytes = sizeof(mad),
		.slid = wire->peer_lid,
		.dlid = wire->lid,
	};

	memcpy(packet.source_gid, &wire->peer_gid, 16);
	memcpy(packet.dest_gid, &wire->gid, 16);
	set_defaults(mad, run, line);
	for (unsigned int i = 0; i < line->message_field_count; i++) {
		const struct script_message_value *given = &line->message_fields[i];
		const struct field *field = &fields[given->field];

		if (field->bits)
			set(mad, field, given->value.number);
		else
			memcpy(mad + place_of(field), given->value.digits,
			       given->value.digit_bytes);
	}
	return vb_packet_encode(&packet, mad, frame);
}

/* --- comparing --- */

/* Returns the MAD of a frame of the connection manager; NULL for other frames. */
static const uint8_t *mad_of(const struct script_wire *wire, const struct script_frame *frame)
{
	const size_t tail_bytes = 4 + (wire->infiniband ? 2 : 0);
	const uint8_t *mad = frame->bytes + frame->length_bytes - tail_bytes - SCRIPT_MAD_BYTES;
	struct vb_packet packet;

	if (vb_packet_decode(frame->bytes, frame->length_bytes, wire->infiniband, &packet) ||
	    packet.opcode != SEND_ONLY_OF_UD || packet.dest_qpn != MANAGER_QPN ||
	    packet.payload_bytes != SCRIPT_MAD_BYTES || mad[1] != CLASS_CM)
		return NULL;
	return mad;
}

static unsigned int message_of(const uint8_t *mad)
{
	const unsigned int attribute = (unsigned int)mad[ATTRIBUTE_AT] << 8 | mad[ATTRIBUTE_AT + 1];

	for (unsigned int i = MESSAGE_NONE + 1; i < MESSAGES; i++)
		if (messages[i].attribute == attribute)
			return i;
	return MESSAGE_NONE;
}

const char *script_message_name(const struct script_wire *wire, const struct script_frame *frame)
{
	const uint8_t *mad = mad_of(wire, frame);
	const unsigned int message = mad ? message_of(mad) : MESSAGE_NONE;

	return message == MESSAGE_NONE ? NULL : messages[message].name;
}

/* Keeps the IDs and the QPN of the device's end: the peer's answers name them. */
static void learn(struct script_manager *manager, const uint8_t *mad, unsigned int message)
{
	const int qpn = script_message_field(message, "local_qpn");
	const int names[] = {script_message_field(message, "local_comm_id"),
			     script_message_field(message, "request_id")};

	manager->heard = true;
	manager->transaction_id =
		get(mad, &fields[script_message_field(message, "transaction_id")]);
	if (qpn >= 0)
		manager->qpn = (uint32_t)get(mad, &fields[qpn]);
	for (size_t i = 0; i < COUNT(names); i++)
		if (names[i] >= 0)
			manager->comm_id = (uint32_t)get(mad, &fields[names[i]]);
}

/* Writes the bytes as digits, as many as the line has. */
static void show_bytes(const uint8_t *bytes, size_t length_bytes, char *text, size_t size_bytes)
{
	size_t used = (size_t)snprintf(text, size_bytes, "x");

	for (size_t i = 0; i < length_bytes && used + 2 < size_bytes; i++)
		used += (size_t)snprintf(text + used, size_bytes - used, "%02x", bytes[i]);
}

static bool compare_field(struct script_run *run, const struct script_message_value *given,
			  const uint8_t *mad)
{
	const struct field *field = &fields[given->field];
	const struct script_value *value = &given->value;
	const uint64_t got = field->bits ? get(mad, field) : 0;
	const bool equal = value->any || (field->bits ? got == value->number
						      : memcmp(mad + place_of(field), value->digits,
							       value->digit_bytes) == 0);
	char wanted_text[48] = "*", got_text[48];

	if (field->bits) {
		if (!value->any)
			snprintf(wanted_text, sizeof(wanted_text), "0x%" PRIx64, value->number);
		snprintf(got_text, sizeof(got_text), "0x%" PRIx64, got);
	} else {
		if (!value->any)
			show_bytes(value->digits, value->digit_bytes, wanted_text,
				   sizeof(wanted_text));
		show_bytes(mad + place_of(field), value->any ? field->bytes : value->digit_bytes,
			   got_text, sizeof(got_text));
	}
	script_row(run->failure, field->name, wanted_text, got_text, !equal);
	return equal;
}

bool script_message_compare(struct script_run *run, const struct script_line *line,
			    const struct script_frame *frame)
{
	const uint8_t *mad = mad_of(run->wire, frame);
	const unsigned int got = mad ? message_of(mad) : MESSAGE_NONE;
	bool equal = got == line->message;
	struct vb_packet packet;

	vb_packet_decode(frame->bytes, frame->length_bytes, run->wire->infiniband, &packet);
	script_row(run->failure, "message", messages[line->message].name,
		   got ? messages[got].name
		       : script_operation_name(packet.opcode, packet.has, packet.syndrome),
		   !equal);
	for (unsigned int i = 0; equal && i < line->message_field_count; i++)
		equal &= compare_field(run, &line->message_fields[i], mad);
	if (mad)
		learn(&run->manager, mad, got);
	return equal || script_fail(run->failure, line, "the packet of the device is another one");
}
