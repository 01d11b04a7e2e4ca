/* SPDX-License-Identifier: MIT */
#include "src/connect/rdma/message.h"

#include "src/connect/bytes.h"
#include "src/connect/object.h"

#define VERSION	      1
#define GREETING_HEAD "VBG"
#define CONFIRM_HEAD  "VBC"

/* --- messages --- */

/* The length of each type's body; DATA's is at least this. */
static const uint32_t body_bytes[MESSAGE_TYPES] = {
	[MESSAGE_DATA] = DATA_HEAD_BYTES,
	[MESSAGE_CREDIT] = 0,
	[MESSAGE_REQUEST] = 32,
	[MESSAGE_GRANT] = 4 + REGION_BYTES,
	[MESSAGE_OFFER] = REGION_BYTES,
	[MESSAGE_HAND] = 8,
	[MESSAGE_ANSWER] = 4,
	[MESSAGE_RELEASE] = 8,
	[MESSAGE_BYE] = 0,
	[MESSAGE_ERROR] = 4,
};

static uint8_t *put_region(uint8_t *at, const struct region_record *region)
{
	at = put32(at, region->access);
	at = put64(at, region->id);
	at = put64(at, region->addr);
	at = put64(at, region->length_bytes);
	at = put64(at, region->lease_ns);
	return put32(at, region->rkey);
}

static const char *get_region(const uint8_t *at, struct region_record *region)
{
	region->access = get32(at);
	region->id = get64(at + 4);
	region->addr = get64(at + 12);
	region->length_bytes = get64(at + 20);
	region->lease_ns = get64(at + 28);
	region->rkey = get32(at + 36);
	if (region->access & ~VB_MR_ALL)
		return "a region with unknown access";
	if (region->addr + region->length_bytes < region->addr)
		return "a region whose addresses wrap around";
	return NULL;
}

static uint8_t *put_data(uint8_t *at, const struct message *message)
{
	at = put64(at, message->length_bytes);
	at = put64(at, message->offset_bytes);
	at = put32(at, message->imm);
	at = put32(at, message->flags);
	if (message->piece_bytes)
		memcpy(at, message->piece, message->piece_bytes);
	return at + message->piece_bytes;
}

static uint8_t *put_body(uint8_t *at, const struct message *message)
{
	switch (message->type) {
	case MESSAGE_DATA:
		return put_data(at, message);
	case MESSAGE_REQUEST:
		at = put64(at, message->length_bytes);
		at = put64(at, message->align_bytes);
		at = put32(at, message->access);
		at = put32(at, 0);
		return put64(at, message->lease_ns);
	case MESSAGE_GRANT:
		return put_region(put32(at, message->code), &message->region);
	case MESSAGE_OFFER:
		return put_region(at, &message->region);
	case MESSAGE_HAND:
	case MESSAGE_RELEASE:
		return put64(at, message->id);
	case MESSAGE_ANSWER:
	case MESSAGE_ERROR:
		return put32(at, message->code);
	default:
		return at;
	}
}

uint32_t message_encode(const struct message *message, void *bytes)
{
	uint8_t *head = bytes, *end = put_body(head + HEADER_BYTES, message);

	head[0] = 'V';
	head[1] = 'M';
	head[2] = VERSION;
	head[3] = (uint8_t)message->type;
	put32(head + 4, (uint32_t)(end - head) - HEADER_BYTES);
	put32(head + 8, message->credit);
	put32(head + 12, message->tag);
	return (uint32_t)(end - head);
}

static const char *get_data(const uint8_t *at, uint32_t length_bytes, struct message *message)
{
	message->length_bytes = get64(at);
	message->offset_bytes = get64(at + 8);
	message->imm = get32(at + 16);
	message->flags = get32(at + 20);
	message->piece = at + DATA_HEAD_BYTES;
	message->piece_bytes = length_bytes - DATA_HEAD_BYTES;
	if (message->flags & ~(DATA_IMM | DATA_VOID))
		return "DATA with unknown flags";
	if (message->flags & DATA_VOID)
		return message->piece_bytes ? "void DATA with bytes" : NULL;
	if (message->offset_bytes > message->length_bytes ||
	    message->piece_bytes > message->length_bytes - message->offset_bytes)
		return "DATA beyond its total length";
	if (!message->piece_bytes && message->length_bytes)
		return "DATA without bytes";
	return NULL;
}

static const char *get_body(const uint8_t *at, uint32_t length_bytes, struct message *message)
{
	switch (message->type) {
	case MESSAGE_DATA:
		return get_data(at, length_bytes, message);
	case MESSAGE_REQUEST:
		message->length_bytes = get64(at);
		message->align_bytes = get64(at + 8);
		message->access = get32(at + 16);
		message->lease_ns = get64(at + 24);
		return message->access & ~VB_MR_ALL ? "a request with unknown access" : NULL;
	case MESSAGE_GRANT:
		message->code = get32(at);
		return message->code < CODES ? get_region(at + 4, &message->region)
					     : "an unknown code";
	case MESSAGE_OFFER:
		return get_region(at, &message->region);
	case MESSAGE_HAND:
	case MESSAGE_RELEASE:
		message->id = get64(at);
		return NULL;
	case MESSAGE_ANSWER:
	case MESSAGE_ERROR:
		message->code = get32(at);
		return message->code < CODES ? NULL : "an unknown code";
	default:
		return NULL;
	}
}

const char *message_decode(const void *bytes, size_t length_bytes, struct message *message)
{
	const uint8_t *head = bytes;
	uint32_t body;

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
	if (message->type == MESSAGE_DATA ? body < DATA_HEAD_BYTES
					  : body != body_bytes[message->type])
		return "a message of another length than its type has";
	return get_body(head + HEADER_BYTES, body, message);
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
