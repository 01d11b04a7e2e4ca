/* SPDX-License-Identifier: MIT */
/* Reading a pattern of packets. */
#include "src/expect/sequence.h"

#include "src/base/count.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 8

static const char *const field_names[] = {
	[SEQUENCE_PSN] = "psn",
	[SEQUENCE_QP] = "qp",
	[SEQUENCE_BYTES] = "bytes",
	[SEQUENCE_IMM] = "imm",
	[SEQUENCE_LOST] = "lost",
	[SEQUENCE_SOLICITED] = "solicited",
	[SEQUENCE_ACK_REQUEST] = "ack_request",
};

struct reader {
	struct sequence *sequence;
	const char *text;
	int at;
	int depth; /* groups around this place */
};

static bool wrong(struct reader *reader, int at, const char *what)
{
	reader->sequence->wrong = what;
	reader->sequence->wrong_at = at;
	return false;
}

static char here(const struct reader *reader)
{
	return reader->text[reader->at];
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '*' || c == '.' || c == '-';
}

/* Copies a name that begins here. Returns false if it is too long, or empty. */
static bool take_name(struct reader *reader, char *name, size_t size_bytes)
{
	const int begin = reader->at;
	size_t length;

	while (is_name(here(reader)))
		reader->at++;
	length = (size_t)(reader->at - begin);
	if (!length)
		return wrong(reader, begin, "a packet's name is missing");
	if (length >= size_bytes)
		return wrong(reader, begin, "the name is too long");
	memcpy(name, reader->text + begin, length);
	name[length] = '\0';
	return true;
}

static bool take_number(struct reader *reader, uint64_t *number)
{
	const char *begin = reader->text + reader->at;
	char *end;

	if (!isdigit((unsigned char)*begin))
		return wrong(reader, reader->at, "a number is missing");
	*number = strtoull(begin, &end, 0);
	reader->at += (int)(end - begin);
	return true;
}

static bool take_field(struct reader *reader, struct sequence_item *item)
{
	const int begin = reader->at;
	char name[16];
	uint64_t value = 1;

	if (!take_name(reader, name, sizeof(name)))
		return false;
	if (here(reader) == '=') {
		reader->at++;
		if (!take_number(reader, &value))
			return false;
	}
	for (unsigned int i = 0; i < COUNT(field_names); i++)
		if (!strcmp(name, field_names[i])) {
			item->given |= 1u << i;
			item->values[i] = value;
			return true;
		}
	return wrong(reader, begin,
		     "a field is one of psn, qp, bytes, imm, lost, solicited, ack_request");
}

/* "[psn=5,lost]" */
static bool take_fields(struct reader *reader, struct sequence_item *item)
{
	if (here(reader) != '[')
		return true;
	do {
		reader->at++;
		if (!take_field(reader, item))
			return false;
	} while (here(reader) == ',');
	if (here(reader) != ']')
		return wrong(reader, reader->at, "']' is missing");
	reader->at++;
	return true;
}

/* "{2}", "{1,3}" and "{1,}" */
static bool take_braces(struct reader *reader, struct sequence_item *item)
{
	const int begin = reader->at++;
	uint64_t least, most;

	if (!take_number(reader, &least))
		return false;
	most = least;
	if (here(reader) == ',') {
		reader->at++;
		most = UINT_MAX;
		if (here(reader) != '}' && !take_number(reader, &most))
			return false;
	}
	if (here(reader) != '}')
		return wrong(reader, reader->at, "'}' is missing");
	reader->at++;
	if (most < least || least > 100000)
		return wrong(reader, begin, "the repetition is empty or too large");
	item->least = (unsigned int)least;
	item->most = most > UINT_MAX ? UINT_MAX : (unsigned int)most;
	return true;
}

static bool take_repetition(struct reader *reader, struct sequence_item *item)
{
	if (here(reader) == '{')
		return take_braces(reader, item);
	if (here(reader) == '+') {
		item->most = UINT_MAX;
		reader->at++;
	} else if (here(reader) == '?') {
		item->least = 0;
		reader->at++;
	}
	return true;
}

static struct sequence_item *add(struct reader *reader)
{
	struct sequence *sequence = reader->sequence;
	struct sequence_item *item = &sequence->items[sequence->count];

	if (sequence->count == SEQUENCE_ITEMS_MAX) {
		wrong(reader, reader->at, "the pattern has too many words");
		return NULL;
	}
	sequence->count++;
	*item = (struct sequence_item){.at = reader->at, .least = 1, .most = 1};
	return item;
}

/* "sim0:RC:SEND_ONLY": a device, a transport, a name. */
static bool take_word(struct reader *reader, struct sequence_item *item)
{
	char part[48];

	while (true) {
		if (!take_name(reader, part, sizeof(part)))
			return false;
		if (here(reader) != ':')
			break;
		/* The names of transports are capitals, those of devices are not. */
		if (!isupper((unsigned char)part[0])) {
			if (strlen(part) >= sizeof(item->device))
				return wrong(reader, item->at, "the device's name is too long");
			strcpy(item->device, part);
		} else {
			strcpy(item->name, part);
			strcat(item->name, ":");
		}
		reader->at++;
	}
	if (strlen(item->name) + strlen(part) >= sizeof(item->name))
		return wrong(reader, item->at, "the name is too long");
	strcat(item->name, part);
	if (!sequence_knows(item->name))
		return wrong(reader, item->at, "no packet has this name");
	return true;
}

static bool take_items(struct reader *reader);

static bool take_group(struct reader *reader, struct sequence_item *item)
{
	const int open = reader->at++;

	if (++reader->depth > DEPTH_MAX)
		return wrong(reader, open, "the groups are too deep");
	if (!take_items(reader))
		return false;
	reader->depth--;
	if (here(reader) != ')')
		return wrong(reader, open, "')' is missing");
	reader->at++;
	item->group_end = reader->sequence->count;
	return true;
}

static bool take_item(struct reader *reader)
{
	struct sequence_item *item = add(reader);
	bool good;

	if (!item)
		return false;
	if (!strncmp(reader->text + reader->at, "...", 3) &&
	    !is_name(reader->text[reader->at + 3])) {
		reader->at += 3;
		item->length = 3;
		item->least = 0;
		item->most = UINT_MAX;
		strcpy(item->name, "*");
		return true;
	}
	good = here(reader) == '(' ? take_group(reader, item)
				   : take_word(reader, item) && take_fields(reader, item);
	if (!good || !take_repetition(reader, item))
		return false;
	item->length = reader->at - item->at;
	if (!here(reader) || strchr(" \t\n)", here(reader)))
		return true;
	return wrong(reader, reader->at, "a blank is missing");
}

/* Reads up to the end, or up to the ')' of the group around. */
static bool take_items(struct reader *reader)
{
	while (true) {
		while (isspace((unsigned char)here(reader)))
			reader->at++;
		if (!here(reader) || (here(reader) == ')' && reader->depth))
			return true;
		if (!take_item(reader))
			return false;
	}
}

bool sequence_read(struct sequence *sequence, const char *text)
{
	struct reader reader = {.sequence = sequence, .text = text};

	sequence->text = text;
	sequence->count = 0;
	return take_items(&reader);
}
