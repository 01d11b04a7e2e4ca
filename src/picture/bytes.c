/* SPDX-License-Identifier: MIT */
#include "src/picture/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *bytes_sure(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "verbena trace: out of memory; choose fewer events, or --last\n");
	exit(1);
}

uint8_t *bytes_more(struct bytes *bytes, size_t size_bytes)
{
	if (!bytes->at || bytes->room - bytes->used < size_bytes) {
		bytes->room = 2 * bytes->room + size_bytes + 64;
		bytes->at = bytes_sure(realloc(bytes->at, bytes->room));
	}
	bytes->used += size_bytes;
	return bytes->at + bytes->used - size_bytes;
}

void bytes_add(struct bytes *bytes, const void *from, size_t size_bytes)
{
	if (size_bytes)
		memcpy(bytes_more(bytes, size_bytes), from, size_bytes);
}

void bytes_add_number(struct bytes *bytes, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*bytes_more(bytes, 1) = (uint8_t)(number | 0x80);
	*bytes_more(bytes, 1) = (uint8_t)number;
}

void bytes_free(struct bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct bytes){0};
}
