/* SPDX-License-Identifier: MIT */
#include "src/connect/rdma/message.h"

#include "src/connect/bytes.h"
#include "src/connect/object.h"

#define VERSION	      1
#define GREETING_HEAD "VBG"

/* --- messages --- */

static inline uint8_t *move32(uint8_t *at, uint32_t *number, bool reads)
{
	if (!reads)
		return put32(at, *number);
	*number = get32(at);
	return at + sizeof(*number);
}

static inline uint8_t *move64(uint8_t *at, uint64_t *number, bool reads)
{
	if (!reads)
		return put64(at, *number);
	*number = get64(at);
	return at + sizeof(*number);
}

/* Reads or writes the numbers of a body, but the piece of DATA. Returns the address behind them. */
static inline uint8_t *move_body(struct message *message, uint8_t *at, bool reads)
{
	struct region_record *region = &message->region;

	switch (message->type) {
	case MESSAGE_DATA:
		at = move64(at, &message->length_bytes, reads);
		at = move64(at, &message->offset_bytes, reads);
		at = move32(at, &message->imm, reads);
		return move32(at, &message->flags, reads);
	case MESSAGE_REQUEST:
		at = move64(at, &message->length_bytes, reads);
		at = move64(at, &message->align_bytes, reads);
		at = move32(at, &message->access, reads);
		at = move32(at, &message->zero, reads);
		return move64(at, &message->lease_ns, reads);
	case MESSAGE_GRANT:
		at = move32(at, &message->code, reads);
		/* fall through */
	case MESSAGE_OFFER:
		at = move32(at, &region->access, reads);
		at = move64(at, &region->id, reads);
		at = move64(at, &region->addr, reads);
		at = move64(at, &region->length_bytes, reads);
		at = move64(at, &region->lease_ns, reads);
		return move32(at, &region->rkey, reads);
	case MESSAGE_HAND:
	case MESSAGE_RELEASE:
		return move64(at, &message->id, reads);
	case MESSAGE_ANSWER:
	case MESSAGE_ERROR:
		return move32(at, &message->code, reads);
	default:
		return at;
	}
}

static const uint8_t numbers_bytes[MESSAGE_TYPES] = {
	[MESSAGE_DATA] = DATA_HEAD_BYTES,
	[MESSAGE_REQUEST] = 32,
	[MESSAGE_GRANT] = 44,
	[MESSAGE_OFFER] = 40,
	[MESSAGE_HAND] = 8,
	[MESSAGE_ANSWER] = 4,
	[MESSAGE_RELEASE] = 8,
	[MESSAGE_ERROR] = 4,
};

uint32_t message_encode(struct message *message, void *bytes)
{
	uint8_t *head = bytes, *at = move_body(message, head + HEADER_BYTES, false);

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

const char *message_decode(void *bytes, size_t length_bytes, struct message *message)
{
	uint8_t *head = bytes;
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
	numbers = numbers_bytes[message->type];
	if (message->type == MESSAGE_DATA ? numbers > body : numbers != body)
		return "a message of another length than its type has";
	message->piece = move_body(message, head + HEADER_BYTES, true);
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
