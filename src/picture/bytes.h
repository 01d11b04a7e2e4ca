/* SPDX-License-Identifier: MIT */
/* Bytes that grow. Without memory the program ends with a message. */
#ifndef SRC_PICTURE_BYTES_H
#define SRC_PICTURE_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *at;
	size_t used, room;
};

/* Returns the memory, or ends the program with a message if it is NULL. */
void *bytes_sure(void *memory);

/* Makes room for @size_bytes more, and returns where they begin; they count as used. */
uint8_t *bytes_more(struct bytes *bytes, size_t size_bytes);

void bytes_add(struct bytes *bytes, const void *from, size_t size_bytes);

/* Adds a number in groups of 7 bits, the lowest first; the highest bit of a byte says that another
 * follows. */
void bytes_add_number(struct bytes *bytes, uint64_t number);

void bytes_free(struct bytes *bytes);

#endif /* SRC_PICTURE_BYTES_H */
