/* SPDX-License-Identifier: MIT */
/*
 * A line of the log under construction: JSON text in memory that the caller owns. What does not fit
 * is left out, and the line is then marked as cut.
 */
#ifndef SRC_LOG_LINE_H
#define SRC_LOG_LINE_H

#include "src/base/bits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first number that JSON readers may round: they keep numbers as double. */
#define LINE_NUMBER_LIMIT (UINT64_C(1) << 53)

/* A text of the program is cut after so many bytes. */
#define LINE_TEXT_BYTES_MAX 1024

struct line {
	char *at; /* where the next character goes */
	char *end;
	bool cut; /* set once a text did not fit */
};

static inline void line_bytes(struct line *line, const char *bytes, size_t length_bytes)
{
	if (length_bytes > (size_t)(line->end - line->at)) {
		line->cut = true;
		return;
	}
	memcpy(line->at, bytes, length_bytes);
	line->at += length_bytes;
}

/* Adds JSON text as it stands. */
static inline void line_plain(struct line *line, const char *text)
{
	line_bytes(line, text, strlen(text));
}

/* Adds a comma, unless the present object or array is empty, and "name":. The name is plain ASCII. */
void line_key(struct line *line, const char *name);

/* Adds a comma, unless the present object or array is empty. */
void line_comma(struct line *line);

/* These add a value. */
void line_decimal(struct line *line, uint64_t number); /* from LINE_NUMBER_LIMIT as line_hex() */
void line_signed(struct line *line, int64_t number);
void line_hex(struct line *line, uint64_t number); /* a string: "0x2a" */
void line_bool(struct line *line, bool value);
void line_word(struct line *line, const char *word); /* a string of plain ASCII */
void line_text(struct line *line, const char *text); /* any string; what is not UTF-8 as U+FFFD */
void line_gid(struct line *line, const uint8_t gid[16]);
void line_bits(struct line *line, const struct bit_name *names, uint64_t bits); /* an array */

/* A string: the name, or the value as line_hex() if the name is that of an unknown value. */
void line_name(struct line *line, const char *name, uint64_t value);

#endif /* SRC_LOG_LINE_H */
