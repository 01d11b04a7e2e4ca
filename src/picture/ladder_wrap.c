/* SPDX-License-Identifier: MIT */
#include "src/picture/ladder.h"

/* Returns true for a byte that begins a character of UTF-8. */
static bool begins(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

int ladder_columns(const char *text)
{
	int columns = 0;

	for (; *text; text++)
		columns += begins(*text);
	return columns;
}

bool ladder_piece(const char **text, int columns, struct piece *piece)
{
	const char *start = *text, *at, *word_end = NULL;
	int used = 0, word_used = 0;

	while (*start == ' ')
		start++;
	if (!*start)
		return false;
	for (at = start; *at; at++) {
		if (begins(*at) && used == columns)
			break;
		used += begins(*at);
		if (at[1] == ' ' || !at[1])
			word_end = at + 1, word_used = used;
	}
	/* A word that is longer than a line is cut. */
	if (!word_end)
		word_end = at, word_used = used;
	*piece = (struct piece){start, (size_t)(word_end - start), word_used};
	*text = word_end;
	return true;
}

void ladder_clean(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		const unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
		/* The control characters U+0080 to U+009F have two bytes in UTF-8. */
		const bool is_long = byte == 0xc2 && next >= 0x80 && next < 0xa0;

		*to++ = is_long || byte < ' ' || byte == 0x7f ? '?' : *at;
		at += is_long;
	}
	*to = '\0';
}
