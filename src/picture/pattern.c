/* SPDX-License-Identifier: MIT */
#include "src/picture/pattern.h"

#include "src/base/fnv.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEX_DIGITS_MAX 16
#define DECIMAL_DIGITS_MAX \
	15 /* before and behind the point: JavaScript's numbers are exact up to 2^53 */
#define FRACTION_MAX 9
#define SLOTS_MIN    1024

static const char hex_digits[] = "0123456789abcdef", digits[] = "0123456789";

/* --- numbers in a text --- */

/* Returns true for a character of a word. A number neither begins behind such a character nor ends before
 * one. */
static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* Returns true if a number may begin at @at. Parts of addresses, such as "10.0.0.1" and "fe80::1", do not count
 * as numbers; after '":' a value of JSON begins. */
static bool may_begin(const char *text, const char *at)
{
	if (at == text)
		return true;
	if (at[-1] == ':')
		return at - text > 1 && at[-2] == '"';
	return !is_word(at[-1]) && at[-1] != '.';
}

/* Returns true if a number may end before @at. */
static bool may_end(const char *at)
{
	return !is_word(*at) && !((*at == '.' || *at == ':') && (is_word(at[1]) || at[1] == ':'));
}

/* Reads a number such as "0x11". Returns its length in bytes; 0: there is none that can be written back. */
static size_t take_hex(const char *at, uint64_t *number)
{
	size_t count;

	if (at[0] != '0' || at[1] != 'x')
		return 0;
	count = strspn(at + 2, hex_digits);
	if (!count || count > HEX_DIGITS_MAX || (count > 1 && at[2] == '0') ||
	    !may_end(at + 2 + count))
		return 0;
	*number = strtoull(at, NULL, 16);
	return 2 + count;
}

/* Reads a number such as "12" or "1.25", and sets *behind to the count of digits behind the point. Returns its
 * length in bytes; 0: there is none that can be written back. */
static size_t take_decimal(const char *at, uint64_t *number, size_t *behind)
{
	const size_t count = strspn(at, digits);
	char joined[DECIMAL_DIGITS_MAX + 1] = "";

	*behind = at[count] == '.' ? strspn(at + count + 1, digits) : 0;
	if (!count || (count > 1 && at[0] == '0') || count + *behind > DECIMAL_DIGITS_MAX ||
	    *behind > FRACTION_MAX || !may_end(at + count + (*behind ? 1 + *behind : 0)))
		return 0;
	memcpy(joined, at, count);
	memcpy(joined + count, at + count + 1, *behind);
	*number = strtoull(joined, NULL, 10);
	return count + (*behind ? 1 + *behind : 0);
}

/* --- patterns --- */

static void put_mark(struct patterns *patterns, uint8_t mark)
{
	*bytes_more(&patterns->pattern, 1) = mark;
}

/* Adds the number at @at of the text to the pattern and the numbers. Returns its length in bytes; 0: there is
 * none. */
static size_t take_number(struct patterns *patterns, const char *text, const char *at)
{
	uint64_t number = 0;
	size_t behind = 0, length;

	if (*at < '0' || *at > '9' || !may_begin(text, at))
		return 0;
	length = take_hex(at, &number);
	if (length) {
		put_mark(patterns, PATTERN_HEX);
	} else {
		length = take_decimal(at, &number, &behind);
		if (!length)
			return 0;
		put_mark(patterns, behind ? PATTERN_FRACTION : PATTERN_DECIMAL);
		if (behind)
			put_mark(patterns, (uint8_t)('0' + behind));
	}
	bytes_add_number(&patterns->numbers, number);
	return length;
}

/* Splits a text into its pattern and its numbers. */
static void split(struct patterns *patterns, const char *text)
{
	patterns->pattern.used = patterns->numbers.used = 0;
	for (const char *at = text; *at;) {
		const size_t length = take_number(patterns, text, at);

		if (!length)
			put_mark(patterns, (uint8_t)*at);
		at += length ? length : 1;
	}
	put_mark(patterns, 0);
}

/* Returns the slot of a pattern, or the free slot where it belongs. */
static uint32_t *slot_of(const struct patterns *patterns, const char *text)
{
	const uint64_t hash = fnv_add_text(FNV_BASIS, text);
	size_t slot = (size_t)(hash ^ hash >> 32) % patterns->slot_count;

	while (patterns->slots[slot] &&
	       strcmp(patterns->texts[patterns->slots[slot] - 1], text) != 0)
		slot = (slot + 1) % patterns->slot_count;
	return &patterns->slots[slot];
}

static void grow(struct patterns *patterns)
{
	patterns->room = patterns->room ? 2 * patterns->room : SLOTS_MIN / 2;
	patterns->slot_count = 2 * patterns->room;
	patterns->texts =
		bytes_sure(realloc(patterns->texts, patterns->room * sizeof(*patterns->texts)));
	free(patterns->slots);
	patterns->slots = bytes_sure(calloc(patterns->slot_count, sizeof(*patterns->slots)));
	for (size_t i = 0; i < patterns->count; i++)
		*slot_of(patterns, patterns->texts[i]) = (uint32_t)i + 1;
}

size_t pattern_add(struct patterns *patterns, struct bytes *records, const char *text)
{
	const size_t offset = records->used;
	uint32_t *slot;

	split(patterns, text);
	if (patterns->count == patterns->room)
		grow(patterns);
	slot = slot_of(patterns, (const char *)patterns->pattern.at);
	if (!*slot) {
		patterns->texts[patterns->count++] =
			bytes_sure(strdup((const char *)patterns->pattern.at));
		*slot = (uint32_t)patterns->count;
	}
	bytes_add_number(records, *slot - 1);
	bytes_add(records, patterns->numbers.at, patterns->numbers.used);
	return offset;
}

void patterns_free(struct patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		free(patterns->texts[i]);
	free(patterns->texts);
	free(patterns->slots);
	bytes_free(&patterns->pattern);
	bytes_free(&patterns->numbers);
	*patterns = (struct patterns){0};
}
