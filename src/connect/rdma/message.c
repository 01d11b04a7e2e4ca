/* SPDX-License-Identifier: MIT */
#include "src/connect/rdma/message.h"

#include "src/connect/bytes.h"
#include "src/connect/object.h"

#include <stddef.h>

#define VERSION	      1
#define GREETING_HEAD "VBG"
#define CONFIRM_HEAD  "VBC"

/* --- messages --- */

/* The numbers of each body in their order; 4 or 8 bytes each. The piece of DATA follows them. */
struct field {
	uint8_t bytes, offset;
};

#define FIELD(member)                                                                   \
	{                                                                               \
		sizeof(((struct message *)0)->member), offsetof(struct message, member) \
	}
#define REGION                                                                                  \
	FIELD(region.access), FIELD(region.id), FIELD(region.addr), FIELD(region.length_bytes), \
		FIELD(region.lease_ns), FIELD(region.rkey)

static const struct field bodies[MESSAGE_TYPES][8] = {
	[MESSAGE_DATA] = {FIELD(length_bytes), FIELD(offset_bytes), FIELD(imm), FIELD(flags)},
	[MESSAGE_REQUEST] = {FIELD(length_bytes), FIELD(align_bytes), FIELD(access), FIELD(zero),
			     FIELD(lease_ns)},
	[MESSAGE_GRANT] = {FIELD(code), REGION},
	[MESSAGE_OFFER] = {REGION},
	[MESSAGE_HAND] = {FIELD(id)},
	[MESSAGE_ANSWER] = {FIELD(code)},
	[MESSAGE_RELEASE] = {FIELD(id)},
	[MESSAGE_ERROR] = {FIELD(code)},
};

uint32_t message_encode(const struct message *message, void *bytes)
{
	uint8_t *head = bytes, *at = head + HEADER_BYTES;

	for (const struct field *field = bodies[message->type]; field->bytes; field++) {
		const void *value = (const char *)message + field->offset;

		at = field->bytes == 4 ? put32(at, *(const uint32_t *)value)
				       : put64(at, *(const uint64_t *)value);
	}
	if (message->type == MESSAGE_DATA && message->piece_bytes) {
		memcpy(at, message->piece, message->piece_bytes);
		at += message->piece_bytes;
	}
	head[0] = 'V';
	head[1] = 'M';
	head[2] = VERSION;
	head[3] = (uint8_t)message->type;
	put32(head + 4, (uint32_t)(at - head) - HEADER_BYTES);
	put32(head + 8, message->credit);
	put32(head + 12, message->tag);
	return (uint32_t)(at - head);
}

/* Reads the numbers of a body. Returns their length, or UINT32_MAX if the body is shorter. */
static uint32_t get_body(const uint8_t *at, uint32_t length_bytes, struct message *message)
{
	uint32_t done = 0;

	for (const struct field *field = bodies[message->type]; field->bytes; field++) {
		void *value = (char *)message + field->offset;

		if (length_bytes - done < field->bytes)
			return UINT32_MAX;
		if (field->bytes == 4)
			*(uint32_t *)value = get32(at + done);
		else
			*(uint64_t *)value = get64(at + done);
		done += field->bytes;
	}
	return done;
}

static const char *check_data(const struct message *message)
{
	if (message->flags & ~(DATA_IMM | DATA_VOID))
		return "DATA with unknown flags";
	if (message->flags & DATA_VOID)
		return message->piece_bytes ? "void DATA with bytes" : NULL;
	if (message->offset_bytes > message->length_bytes ||
	    message->piece_bytes > message->length_bytes - message->offset_bytes)
		return "DATA beyond its total length";
	return message->length_bytes && !message->piece_bytes ? "DATA without bytes" : NULL;
}

static const char *check_body(const struct message *message)
{
	const struct region_record *region = &message->region;
	enum message_type type = message->type;

	if (type == MESSAGE_DATA)
		return check_data(message);
	if (type == MESSAGE_REQUEST)
		return message->access & ~VB_MR_ALL ? "a request with unknown access" : NULL;
	if ((type == MESSAGE_GRANT || type == MESSAGE_ANSWER || type == MESSAGE_ERROR) &&
	    message->code >= CODES)
		return "an unknown code";
	if (type != MESSAGE_GRANT && type != MESSAGE_OFFER)
		return NULL;
	if (region->access & ~VB_MR_ALL)
		return "a region with unknown access";
	if (region->addr + region->length_bytes < region->addr)
		return "a region whose addresses wrap around";
	return NULL;
}

const char *message_decode(const void *bytes, size_t length_bytes, struct message *message)
{
	const uint8_t *head = bytes;
	uint32_t body, numbers;

	if (length_bytes < HEADER_BYTES)
		return "a message shorter than its header";
	if (head[0] != 'V' || head[1] != 'M')
		return "a message with another beginning";
	if (head[2] != VERSION)
		return "a message of another version";
	if (!head[3] || head[3] >= MESSAGE_TYPES)
		return "a message of an unknown type";
	body = get32(head + 4);
	message->type = (enum message_type)head[3];
	message->credit = get32(head + 8);
	message->tag = get32(head + 12);
	if (body != length_bytes - HEADER_BYTES)
		return "a message of another length than its header says";
	numbers = get_body(head + HEADER_BYTES, body, message);
	if (message->type == MESSAGE_DATA ? numbers > body : numbers != body)
		return "a message of another length than its type has";
	message->piece = head + HEADER_BYTES + numbers;
	message->piece_bytes = body - numbers;
	return check_body(message);
}

int message_errno(uint32_t code)
{
	static const int errors[CODES] = {0, ENOMEM, EACCES, EDQUOT, ESTALE, EBUSY, EPROTO};

	return code < COUNT(errors) ? errors[code] : EPROTO;
}

/* --- greetings --- */

void greeting_encode(const struct greeting *greeting, uint8_t bytes[GREETING_BYTES])
{
	uint8_t *at = put32(put_head(bytes, GREETING_HEAD), greeting->status);

	vb_endpoint_encode(&greeting->endpoint, at);
	at = put32(at + VB_ENDPOINT_BYTES, greeting->message_bytes);
	at = put32(at, greeting->slots);
	at = put64(at, greeting->longest_bytes);
	put32(put32(at, FLIGHTS), 0);
}

int greeting_decode(const uint8_t bytes[GREETING_BYTES], struct greeting *greeting)
{
	int err = check_head("greeting", bytes, GREETING_HEAD);

	if (err)
		return err;
	greeting->status = get32(bytes + 4);
	if (greeting->status)
		return 0;
	err = vb_endpoint_decode(bytes + 8, VB_ENDPOINT_BYTES, &greeting->endpoint);
	if (err)
		return fail_because(err, "greeting");
	greeting->message_bytes = get32(bytes + 40);
	greeting->slots = get32(bytes + 44);
	greeting->longest_bytes = get64(bytes + 48);
	if (greeting->message_bytes < MESSAGE_MIN_BYTES ||
	    greeting->message_bytes > MESSAGE_MAX_BYTES)
		return fail(EBADMSG, "greeting: messages of %u bytes", greeting->message_bytes);
	if (greeting->slots < 2 || greeting->slots > SLOTS_MAX)
		return fail(EBADMSG, "greeting: %u slots", greeting->slots);
	return 0;
}

void confirm_encode(uint8_t bytes[CONFIRM_BYTES])
{
	put_head(bytes, CONFIRM_HEAD);
}

int confirm_check(const uint8_t bytes[CONFIRM_BYTES])
{
	return check_head("confirmation", bytes, CONFIRM_HEAD);
}
