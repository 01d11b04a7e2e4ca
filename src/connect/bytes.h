/* SPDX-License-Identifier: MIT */
/*
 * Big-endian numbers and the head that every encoded format begins with: three letters and the
 * version, 1.
 */
#ifndef SRC_CONNECT_BYTES_H
#define SRC_CONNECT_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define HEAD_BYTES 4

/* The put functions return the address behind the bytes that they wrote. */
static inline uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static inline uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

uint8_t *put_head(uint8_t *at, const char letters[HEAD_BYTES]);

/* Checks the head of `what`, a noun for the sentence. Returns 0, EPROTO (other letters) or
 * EPROTONOSUPPORT (another version). */
int check_head(const char *what, const uint8_t *bytes, const char letters[HEAD_BYTES]);

#endif /* SRC_CONNECT_BYTES_H */
