/* SPDX-License-Identifier: MIT */
/*
 * Stores texts that differ only in their numbers, such as the lines of a log, in few bytes. A record is the
 * index of the text's pattern, and the text's numbers. The pattern is the text with a mark in place of each
 * number:
 *
 *	"RC SEND_ONLY PSN 100, QP 0x10 > 0x12"	->	"RC SEND_ONLY PSN \1, QP \2 > \2", 100, 16, 18
 *
 * src/picture/page/records.js makes the same text of it, byte for byte. The caller owns a struct patterns,
 * zeroed before the first call, and one thread uses it.
 */
#ifndef SRC_PICTURE_PATTERN_H
#define SRC_PICTURE_PATTERN_H

#include "src/picture/bytes.h"

#include <stdio.h>

/* The marks of numbers in a pattern. */
enum {
	PATTERN_DECIMAL = 1,
	PATTERN_HEX = 2, /* "0x" and lower-case digits */
	PATTERN_FRACTION =
		3, /* a digit follows in the pattern: the count of digits behind the point */
};

struct patterns {
	char **texts; /* the patterns */
	size_t count, room;
	uint32_t *slots; /* a hash table: indices in texts plus 1 */
	size_t slot_count;
	struct bytes pattern, numbers; /* of the text that pattern_add() is splitting */
};

/* Appends the record of a text to @records. Returns the record's offset. */
size_t pattern_add(struct patterns *patterns, struct bytes *records, const char *text);

void patterns_free(struct patterns *patterns);

#endif /* SRC_PICTURE_PATTERN_H */
