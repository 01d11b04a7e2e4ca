/* SPDX-License-Identifier: MIT */
/*
 * The bytes of docs/agent-messages.md.
 */
#ifndef SRC_CONNECT_RDMA_MESSAGE_H
#define SRC_CONNECT_RDMA_MESSAGE_H

#include <verbena/rdma.h>

#define GREETING_BYTES	  64
#define CONFIRM_BYTES	  4
#define HEADER_BYTES	  16
#define DATA_HEAD_BYTES	  24 /* of the body, before the piece */
#define MESSAGE_MIN_BYTES 128
#define MESSAGE_MAX_BYTES (1u << 20)
#define SLOTS_MAX	  1024

/* One-sided operations of a connection that the device has at once. */
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

/* One message; each type uses the fields of its row in the format. */
struct message {
	enum message_type type;
	uint32_t credit;
	uint32_t tag;
	uint32_t code;
	uint64_t id;
	struct region_record region;
	uint64_t length_bytes; /* DATA: total; REQUEST */
	uint64_t offset_bytes;
	uint32_t imm;
	uint32_t flags;
	const void *piece;
	uint32_t piece_bytes;
	uint64_t align_bytes;
	uint32_t access;
	uint32_t zero; /* not used */
	uint64_t lease_ns;
};

/* Writes a message, whose length it returns. There is room for it. */
uint32_t message_encode(const struct message *message, void *bytes);

/* Reads one. NULL, or what is malformed: a constant. */
const char *message_decode(const void *bytes, size_t length_bytes, struct message *message);

/* What the code means as errno; EPROTO for none. */
int message_errno(uint32_t code);

struct greeting {
	uint32_t status; /* 0: welcome */
	struct vb_endpoint endpoint;
	uint32_t message_bytes;
	uint32_t slots;
	uint64_t longest_bytes;
};

enum greeting_status { GREETING_WELCOME, GREETING_NO_ROOM, GREETING_FAILED, GREETING_NONSENSE };

void greeting_encode(const struct greeting *greeting, uint8_t bytes[GREETING_BYTES]);

/* 0, EPROTO, EPROTONOSUPPORT or EBADMSG, told. */
int greeting_decode(const uint8_t bytes[GREETING_BYTES], struct greeting *greeting);

void confirm_encode(uint8_t bytes[CONFIRM_BYTES]);
int confirm_check(const uint8_t bytes[CONFIRM_BYTES]);

#endif /* SRC_CONNECT_RDMA_MESSAGE_H */
