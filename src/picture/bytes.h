/* SPDX-License-Identifier: MIT */
/*
 * A buffer of bytes that grows. It is for the program `verbena` only, and for one thread: without memory
 * the program ends with a message and status 1. Sizes are in bytes.
 */
#ifndef SRC_PICTURE_BYTES_H
#define SRC_PICTURE_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *at;
	size_t used, room; /* bytes with a value; bytes allocated */
};

/* Returns the memory, or ends the program with a message if it is NULL. */
void *bytes_sure(void *memory);

/* Appends @size_bytes bytes for the caller to fill in. The address is valid up to the next append. */
uint8_t *bytes_more(struct bytes *bytes, size_t size_bytes);

/* Appends a copy of @size_bytes bytes. */
void bytes_add(struct bytes *bytes, const void *from, size_t size_bytes);

/* Appends a number as LEB128: groups of 7 bits, the lowest first. The highest bit of a byte is set if
 * another byte follows. */
void bytes_add_number(struct bytes *bytes, uint64_t number);

void bytes_free(struct bytes *bytes);

#endif /* SRC_PICTURE_BYTES_H */
