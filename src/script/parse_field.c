/* SPDX-License-Identifier: MIT */
/* The fields of a line: NAME=VALUE. */
#include "src/script/parse.h"

#include "src/base/count.h"
#include "src/base/number.h"

#include <ctype.h>
#include <string.h>

/* --- values --- */

static bool read_number(struct parser *parser, const char *name, const char *text, uint64_t max,
			uint64_t *number)
{
	switch (vb_number_read(text, 0, max, number)) {
	case VB_NUMBER_GOOD:
		return true;
	case VB_NUMBER_OUT_OF_RANGE:
		return FAIL("%s=%s is above %llu", name, text, (unsigned long long)max);
	default:
		return FAIL("%s=%s is no number; write digits, or 0x and hexadecimal digits", name,
			    text);
	}
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static bool read_digits(struct parser *parser, const char *text, struct script_value *value)
{
	const size_t length = strlen(text);

	if (length % 2 || length / 2 > sizeof(value->digits) || !length ||
	    strspn(text, "0123456789abcdefABCDEF") != length)
		return FAIL("data=x%s is not 1 to %d bytes of two hexadecimal digits each", text,
			    SCRIPT_DATA_MAX);
	for (size_t i = 0; i < length; i += 2)
		value->digits[i / 2] = (uint8_t)(digit(text[i]) << 4 | digit(text[i + 1]));
	value->digit_bytes = (uint8_t)(length / 2);
	return true;
}

static bool read_access(struct parser *parser, char *text, uint64_t *access)
{
	static const struct {
		const char *name;
		unsigned int flag;
	} rights[] = {{"none", 0},
		      {"write", IBV_ACCESS_REMOTE_WRITE},
		      {"read", IBV_ACCESS_REMOTE_READ},
		      {"atomic", IBV_ACCESS_REMOTE_ATOMIC}};
	char *word;

	*access = 0;
	while ((word = strsep(&text, "+"))) {
		size_t i = 0;

		while (i < COUNT(rights) && strcmp(rights[i].name, word) != 0)
			i++;
		if (i == COUNT(rights))
			return FAIL("access has no right '%s'; write none, or write, read and "
				    "atomic with '+' between",
				    word);
		*access |= rights[i].flag;
	}
	return true;
}

static bool read_name(struct parser *parser, const char *field, const char *text, int found,
		      const char *like, uint64_t *number)
{
	if (found < 0)
		return FAIL("%s=%s is unknown; write a name such as %s", field, text, like);
	*number = (uint64_t)found;
	return true;
}

bool parse_find_owner(const struct script *script, const char *name, bool is_srq, uint64_t *number)
{
	for (unsigned int i = 0; i < script->qp_count; i++) {
		if (script->qps[i].is_srq != is_srq || strcmp(script->qps[i].name, name) != 0)
			continue;
		*number = i;
		return true;
	}
	return false;
}

static bool find_qp(struct parser *parser, const char *name, uint64_t *number)
{
	return parse_find_owner(parser->script, name, false, number) ||
	       FAIL("there is no QP '%s'; a line 'qp %s RC' makes it", name, name);
}

static bool find_srq(struct parser *parser, const char *name, uint64_t *number)
{
	return parse_find_owner(parser->script, name, true, number) ||
	       FAIL("there is no SRQ '%s'; a line 'srq %s' makes it", name, name);
}

bool parse_find_window(const struct script *script, const char *name, uint64_t *number)
{
	for (unsigned int i = 0; i < script->window_count; i++) {
		if (strcmp(script->windows[i], name) != 0)
			continue;
		*number = i;
		return true;
	}
	return false;
}

static bool read_window(struct parser *parser, const char *name, uint64_t *number)
{
	return parse_find_window(parser->script, name, number) ||
	       FAIL("there is no window '%s'; a line 'window %s TYPE_2' makes it", name, name);
}

static bool read_key(struct parser *parser, const char *name, const char *text,
		     struct script_value *value)
{
	value->bad = strcmp(text, "bad") == 0;
	value->is_name = parse_find_window(parser->script, text, &value->number);
	if (value->bad || value->is_name)
		return true;
	if (isdigit((unsigned char)*text))
		return read_number(parser, name, text, UINT32_MAX, &value->number);
	return FAIL("%s=%s is no key; write a number, the name of a window of the script, or bad",
		    name, text);
}

static bool read_srqn(struct parser *parser, const char *name, const char *text,
		      struct script_value *value)
{
	value->is_name = !isdigit((unsigned char)*text);
	return value->is_name ? find_srq(parser, text, &value->number)
			      : read_number(parser, name, text, SCRIPT_PSN_MASK, &value->number);
}

static bool read_flags(struct parser *parser, char *text, uint64_t *flags)
{
	char *word;

	*flags = 0;
	while ((word = strsep(&text, "+"))) {
		const int flag = script_find_flag(word);

		if (flag < 0)
			return FAIL("a completion has no flag '%s'; write none, or GRH, WITH_IMM, "
				    "WITH_INV and IP_CSUM_OK with '+' between",
				    word);
		*flags |= (uint64_t)flag;
	}
	return true;
}

static bool read_psn(struct parser *parser, const char *name, const char *text,
		     struct script_value *value)
{
	bool below = *text == '-';

	value->absolute = *text == '@';
	if (!read_number(parser, name, text + (value->absolute || below), SCRIPT_PSN_MASK,
			 &value->number))
		return false;
	if (below)
		value->number = -value->number & SCRIPT_PSN_MASK;
	return true;
}

static bool read_value(struct parser *parser, const struct script_field_info *info, char *text,
		       struct script_value *value)
{
	switch (info->kind) {
	case SCRIPT_KIND_NUMBER:
	case SCRIPT_KIND_FLAG:
		return read_number(parser, info->name, text, info->max, &value->number);
	case SCRIPT_KIND_PSN:
		return read_psn(parser, info->name, text, value);
	case SCRIPT_KIND_KEY:
		return read_key(parser, info->name, text, value);
	case SCRIPT_KIND_DATA:
		return *text == 'x'
			       ? read_digits(parser, text + 1, value)
			       : read_number(parser, info->name, text, info->max, &value->number);
	case SCRIPT_KIND_QP:
		return find_qp(parser, text, &value->number);
	case SCRIPT_KIND_SRQ:
		return find_srq(parser, text, &value->number);
	case SCRIPT_KIND_SRQN:
		return read_srqn(parser, info->name, text, value);
	case SCRIPT_KIND_WINDOW:
		return read_window(parser, text, &value->number);
	case SCRIPT_KIND_FLAGS:
		return read_flags(parser, text, &value->number);
	case SCRIPT_KIND_STATE:
		return read_name(parser, info->name, text, script_find_state(text), "RTS",
				 &value->number);
	case SCRIPT_KIND_STATUS:
		return read_name(parser, info->name, text, script_find_status(text),
				 "REM_ACCESS_ERR", &value->number);
	case SCRIPT_KIND_WC:
		return read_name(parser, info->name, text, script_find_wc(text), "RECV",
				 &value->number);
	case SCRIPT_KIND_ACCESS:
		return read_access(parser, text, &value->number);
	case SCRIPT_KIND_ICRC:
		value->bad = strcmp(text, "bad") == 0;
		return value->bad || FAIL("icrc=%s: only icrc=bad has a meaning", text);
	}
	return false;
}

/* --- fields --- */

static enum script_field find_field(const char *name, enum script_statement statement)
{
	for (unsigned int i = 0; i < SCRIPT_FIELDS; i++)
		if (strcmp(script_fields[i].name, name) == 0 &&
		    script_fields[i].statements & 1u << statement)
			return i;
	return SCRIPT_FIELDS;
}

static bool read_bytes(struct parser *parser, int field, const char *name, const char *text,
		       struct script_value *value)
{
	if (*text != 'x' || !read_digits(parser, text + 1, value))
		return FAIL("%s=%s is not x and 1 to %d bytes of two hexadecimal digits each", name,
			    text, SCRIPT_DATA_MAX);
	return value->digit_bytes <= script_message_bytes(field) ||
	       FAIL("%s has %u bytes", name, script_message_bytes(field));
}

/* Reads a field of a message of the connection manager. */
static bool read_message_field(struct parser *parser, const char *name, const char *text)
{
	struct script_line *line = parser->line;
	struct script_message_value *given = &line->message_fields[line->message_field_count];
	const int field = script_message_field(line->message, name);

	if (field < 0)
		return FAIL("%s has no field '%s'; docs/cm-messages.md lists the fields",
			    line->word, name);
	for (unsigned int i = 0; i < line->message_field_count; i++)
		if (line->message_fields[i].field == field)
			return FAIL("%s is given twice", name);
	if (line->message_field_count++ == SCRIPT_MESSAGE_FIELDS_MAX)
		return FAIL("a line names at most %d fields of a message",
			    SCRIPT_MESSAGE_FIELDS_MAX);
	if (!text)
		return FAIL("%s has no value", name);
	given->field = field;
	given->value.any = strcmp(text, "*") == 0;
	if (given->value.any)
		return line->statement == SCRIPT_OUT ||
		       FAIL("%s=* is for what the device does, in '>'", name);
	if (script_message_bytes(field))
		return read_bytes(parser, field, name, text, &given->value);
	return read_number(parser, name, text, script_message_max(field), &given->value.number);
}

static bool refuse_field(struct parser *parser, const char *word)
{
	const enum script_statement statement = parser->line->statement;
	const char *name = script_statements[statement].name;
	char list[400] = "";

	for (unsigned int i = 0; i < SCRIPT_FIELDS; i++)
		if (script_fields[i].statements & 1u << statement)
			parse_append(list, sizeof(list), script_fields[i].name);
	return *list ? FAIL("'%s' has no field '%s'; it has %s", name, word, list)
		     : FAIL("'%s' has no field '%s'; it has none", name, word);
}

static bool read_field(struct parser *parser, char *word)
{
	struct script_line *line = parser->line;
	char *text = strchr(word, '=');
	const struct script_field_info *info;
	struct script_value *value;
	enum script_field field;

	if (text)
		*text++ = '\0';
	if (line->message)
		return read_message_field(parser, word, text);
	field = find_field(word, line->statement);
	if (field == SCRIPT_FIELDS)
		return refuse_field(parser, word);
	info = &script_fields[field];
	value = &line->values[field];
	if (value->given)
		return FAIL("%s is given twice", word);
	value->given = true;
	if (!text) {
		value->number = 1;
		return info->kind == SCRIPT_KIND_FLAG || FAIL("%s has no value", word);
	}
	value->any = strcmp(text, "*") == 0;
	if (value->any && line->statement != SCRIPT_OUT && line->statement != SCRIPT_COMPLETION)
		return FAIL("%s=* is for what the device does, in '>' and 'completion'", word);
	return value->any || read_value(parser, info, text, value);
}

static bool read_errno(struct parser *parser)
{
	const struct script_statement_info *info = &script_statements[parser->line->statement];
	const char *name;

	if (!info->is_call)
		return FAIL("'%s' is no call that returns an errno value; leave out '='",
			    info->name);
	name = parse_take_word(parser);
	parser->line->wanted_errno = name ? script_find_errno(name) : -1;
	if (parser->line->wanted_errno < 0)
		return FAIL("'=' wants the name of an errno value behind it, such as EINVAL");
	return true;
}

bool parse_fields(struct parser *parser)
{
	char *word;

	while ((word = parse_take_word(parser))) {
		if (strcmp(word, "...") == 0)
			parser->line->rest_any = true;
		else if (strcmp(word, "=") == 0) {
			if (!read_errno(parser))
				return false;
		} else if (!read_field(parser, word))
			return false;
	}
	return true;
}
