/* SPDX-License-Identifier: MIT */
/*
 * Encoding and decoding of the formats in docs/agent-messages.md.
 */
#ifndef SRC_CONNECT_RDMA_MESSAGE_H
#define SRC_CONNECT_RDMA_MESSAGE_H

#include <verbena/rdma.h>

#define GREETING_BYTES	  64
#define CONFIRM_HEAD	  "VBC" /* the whole confirmation is a head */
#define HEADER_BYTES	  16
#define DATA_HEAD_BYTES	  24 /* of the body, before the piece */
#define MESSAGE_MIN_BYTES 128
#define MESSAGE_MAX_BYTES (1u << 20)
#define SLOTS_MAX	  1024

/* Reads, writes and atomics of a connection that the device may have at the same time. */
#define FLIGHTS 32

#define DATA_IMM  1u
#define DATA_VOID 2u

enum message_type {
	MESSAGE_DATA = 1,
	MESSAGE_CREDIT,
	MESSAGE_REQUEST,
	MESSAGE_GRANT,
	MESSAGE_OFFER,
	MESSAGE_HAND,
	MESSAGE_ANSWER,
	MESSAGE_RELEASE,
	MESSAGE_BYE,
	MESSAGE_ERROR,
	MESSAGE_TYPES,
};

enum message_code {
	CODE_DONE,
	CODE_NO_MEMORY,
	CODE_NOT_ALLOWED,
	CODE_ABOVE_LIMIT,
	CODE_NO_REGION,
	CODE_TOO_MANY,
	CODE_NOT_UNDERSTOOD,
	CODES,
};

struct region_record {
	uint32_t access;
	uint64_t id;
	uint64_t addr;
	uint64_t length_bytes;
	uint64_t lease_ns;
	uint32_t rkey;
};

/* A message. Each type uses the fields of its row in the format. */
struct message {
	enum message_type type;
	uint32_t credit;
	uint32_t tag;
	uint32_t code;
	uint64_t id;
	struct region_record region;
	uint64_t length_bytes; /* of the whole message (DATA), or of the region (REQUEST) */
	uint64_t offset_bytes;
	uint32_t imm;
	uint32_t flags;
	const void *piece;
	uint32_t piece_bytes;
	uint64_t align_bytes;
	uint32_t access;
	uint32_t zero; /* the unused number of a REQUEST */
	uint64_t lease_ns;
};

/* Writes a message to bytes and returns its length. */
uint32_t message_encode(struct message *message, void *bytes);

/* Reads a message. Returns NULL, or a constant noun that says what is malformed. */
const char *message_decode(void *bytes, size_t length_bytes, struct message *message);

/* The errno of a code; EPROTO for an unknown code. */
int message_errno(uint32_t code);

struct greeting {
	uint32_t status; /* enum greeting_status */
	struct vb_endpoint endpoint;
	uint32_t message_bytes;
	uint32_t slots;
	uint64_t longest_bytes;
};

enum greeting_status { GREETING_WELCOME, GREETING_NO_ROOM, GREETING_FAILED, GREETING_NONSENSE };

void greeting_encode(const struct greeting *greeting, uint8_t bytes[GREETING_BYTES]);

/* Reads a greeting. Returns 0, EPROTO, EPROTONOSUPPORT or EBADMSG, with a sentence. */
int greeting_decode(const uint8_t bytes[GREETING_BYTES], struct greeting *greeting);

#endif /* SRC_CONNECT_RDMA_MESSAGE_H */
