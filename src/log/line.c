/* SPDX-License-Identifier: MIT */
#include "src/log/line.h"

#define DECIMAL_DIGITS_MAX 20
#define HEX_DIGITS_MAX	   16
#define ESCAPE_BYTES	   6

static const char digits[] = "0123456789abcdef";

/* --- numbers --- */

static void add_decimal(struct line *line, uint64_t number)
{
	char text[DECIMAL_DIGITS_MAX];
	char *at = text + sizeof(text);

	do
		*--at = digits[number % 10];
	while (number /= 10);
	line_bytes(line, at, (size_t)(text + sizeof(text) - at));
}

static void add_hex(struct line *line, uint64_t number)
{
	char text[HEX_DIGITS_MAX];
	char *at = text + sizeof(text);

	do
		*--at = digits[number & 15];
	while (number >>= 4);
	line_bytes(line, at, (size_t)(text + sizeof(text) - at));
}

void line_hex(struct line *line, uint64_t number)
{
	line_plain(line, "\"0x");
	add_hex(line, number);
	line_plain(line, "\"");
}

void line_decimal(struct line *line, uint64_t number)
{
	if (number < LINE_NUMBER_LIMIT)
		add_decimal(line, number);
	else
		line_hex(line, number);
}

void line_signed(struct line *line, int64_t number)
{
	if (number < 0 && number > -(int64_t)LINE_NUMBER_LIMIT) {
		line_plain(line, "-");
		number = -number;
	}
	line_decimal(line, (uint64_t)number);
}

void line_bool(struct line *line, bool value)
{
	line_plain(line, value ? "true" : "false");
}

/* --- structure --- */

void line_comma(struct line *line)
{
	/* A line that is cut at its first byte has no byte before. */
	if (!line->cut && line->at[-1] != '{' && line->at[-1] != '[')
		line_plain(line, ",");
}

void line_key(struct line *line, const char *name)
{
	line_comma(line);
	line_plain(line, "\"");
	line_plain(line, name);
	line_plain(line, "\":");
}

/* --- strings --- */

void line_word(struct line *line, const char *word)
{
	line_plain(line, "\"");
	line_plain(line, word);
	line_plain(line, "\"");
}

void line_name(struct line *line, const char *name, uint64_t value)
{
	if (strcmp(name, "unknown") == 0)
		line_hex(line, value);
	else
		line_word(line, name);
}

static bool continues(const uint8_t *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((text[i] & 0xc0) != 0x80)
			return false;
	return true;
}

/* Returns the length of the UTF-8 sequence that text begins with; 0 if it is none: RFC 3629. */
static size_t utf8_bytes(const uint8_t *text)
{
	const uint8_t first = text[0], second = first >= 0xc2 ? text[1] : 0;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	if (first < 0xe0)
		return continues(text + 1, 1) ? 2 : 0;
	/* Overlong forms, surrogates, and numbers above U+10FFFF. */
	if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
	    (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
		return 0;
	if (first < 0xf0)
		return continues(text + 1, 2) ? 3 : 0;
	return continues(text + 1, 3) ? 4 : 0;
}

static void add_escape(struct line *line, uint8_t c)
{
	char escape[ESCAPE_BYTES + 1] = "\\u0000";

	escape[4] = digits[c >> 4];
	escape[5] = digits[c & 15];
	line_bytes(line, escape, ESCAPE_BYTES);
}

/* Adds one character of a string, and returns how many bytes it had. */
static size_t add_character(struct line *line, const char *text)
{
	const uint8_t c = (uint8_t)*text;
	const size_t length = utf8_bytes((const uint8_t *)text);

	if (!length) {
		line_plain(line, "\\ufffd");
		return 1;
	}
	if (c == '"' || c == '\\')
		line_plain(line, "\\");
	if (c < ' ' || c == 0x7f)
		add_escape(line, c);
	else
		line_bytes(line, text, length);
	return length;
}

/* Returns how many bytes of the text stand for themselves in a JSON string, up to a limit. */
static size_t plain_bytes(const char *text, size_t limit)
{
	size_t length = 0;

	while (length < limit && text[length] >= ' ' && text[length] < 0x7f &&
	       text[length] != '"' && text[length] != '\\')
		length++;
	return length;
}

void line_text(struct line *line, const char *text)
{
	const char *end = text + LINE_TEXT_BYTES_MAX;

	line_plain(line, "\"");
	while (text < end) {
		const size_t length = plain_bytes(text, (size_t)(end - text));

		line_bytes(line, text, length);
		text += length;
		if (!*text || text == end)
			break;
		text += add_character(line, text);
	}
	line_plain(line, "\"");
}

void line_bits(struct line *line, const struct bit_name *names, uint64_t bits)
{
	line_plain(line, "[");
	for (; names->name; names++) {
		if (!(bits & names->bit))
			continue;
		bits &= ~names->bit;
		line_comma(line);
		line_word(line, names->name);
	}
	if (bits) {
		line_comma(line);
		line_hex(line, bits);
	}
	line_plain(line, "]");
}

/* --- GIDs --- */

static void add_ipv4(struct line *line, const uint8_t address[4])
{
	for (unsigned int i = 0; i < 4; i++) {
		if (i)
			line_plain(line, ".");
		add_decimal(line, address[i]);
	}
}

/* Finds the longest run of two or more groups that are 0. Returns its length. */
static unsigned int zero_run(const uint16_t groups[8], unsigned int *first)
{
	unsigned int longest = 1;

	for (unsigned int i = 0; i < 8; i++) {
		unsigned int length = 0;

		while (i + length < 8 && !groups[i + length])
			length++;
		if (length > longest) {
			longest = length;
			*first = i;
		}
	}
	return longest > 1 ? longest : 0;
}

/* The form of RFC 5952, which inet_ntop(3) writes too, but slowly. */
void line_gid(struct line *line, const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	unsigned int first = 8, zeros;
	uint16_t groups[8];

	if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
		line_plain(line, "\"::ffff:");
		add_ipv4(line, gid + sizeof(mapped));
		line_plain(line, "\"");
		return;
	}
	for (unsigned int i = 0; i < 8; i++)
		groups[i] = (uint16_t)(gid[2 * i] << 8 | gid[2 * i + 1]);
	zeros = zero_run(groups, &first);
	line_plain(line, "\"");
	for (unsigned int i = 0; i < 8; i++) {
		if (zeros && i == first) {
			line_plain(line, "::");
			i += zeros - 1;
			continue;
		}
		if (i && !(zeros && i == first + zeros))
			line_plain(line, ":");
		add_hex(line, groups[i]);
	}
	line_plain(line, "\"");
}
