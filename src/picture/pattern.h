/* SPDX-License-Identifier: MIT */
/*
 * Texts that differ in their numbers only, such as the lines of a log, take few bytes: a text is the
 * number of its pattern, and its numbers. The pattern is the text with a mark in place of each number:
 *
 *	"RC SEND_ONLY PSN 100, QP 0x10 > 0x12"	->	"RC SEND_ONLY PSN \1, QP \2 > \2", 100, 16, 18
 *
 * The text that comes back is the same, byte for byte. src/picture/page/records.js reads it.
 */
#ifndef SRC_PICTURE_PATTERN_H
#define SRC_PICTURE_PATTERN_H

#include "src/picture/bytes.h"

#include <stdio.h>

/* The marks. */
enum {
	PATTERN_DECIMAL = 1,
	PATTERN_HEX = 2,      /* "0x" and lower-case digits */
	PATTERN_FRACTION = 3, /* a digit follows in the pattern: so many digits behind the point */
};

struct patterns {
	char **texts;
	size_t count, room;
	uint32_t *slots; /* a hash table of indices plus 1 */
	size_t slot_count;
	struct bytes pattern, numbers; /* of the present text */
};

/* Adds the text to @records, as the index of its pattern and its numbers. Returns its offset. */
size_t pattern_add(struct patterns *patterns, struct bytes *records, const char *text);

void patterns_free(struct patterns *patterns);

#endif /* SRC_PICTURE_PATTERN_H */
