/* SPDX-License-Identifier: MIT */
/* A text becomes lines. Each mistake is found here, with its line and column, before anything runs. */
#include "src/script/script.h"

#include "src/base/count.h"
#include "src/base/measure.h"
#include "src/base/number.h"
#include "src/base/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/sim.h>

#define ONE_YEAR_NS (365ull * 86400 * 1000000000)

struct parser {
	struct script *script;
	struct script_failure *failure;
	struct script_line *line;
	const char *start; /* of the line's text, for columns */
	char *at;
};

/* --- words --- */

/* Takes the next word of the line; NULL at its end, or before a comment. */
static char *take_word(struct parser *parser)
{
	char *word = parser->at + strspn(parser->at, " \t");
	const size_t length = strcspn(word, " \t");

	parser->at = word;
	if (!*word || *word == '#')
		return NULL;
	parser->line->column = (unsigned int)(word - parser->start) + 1;
	parser->at = word + length + (word[length] != '\0');
	word[length] = '\0';
	return word;
}

static bool is_space_left(const struct script_line *line, const char *word)
{
	return strlen(word) < sizeof(line->word);
}

#define FAIL(...) script_fail(parser->failure, parser->line, __VA_ARGS__)

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

static bool find_owner(const struct script *script, const char *name, bool is_srq, uint64_t *number)
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
	return find_owner(parser->script, name, false, number) ||
	       FAIL("there is no QP '%s'; a line 'qp %s RC' makes it", name, name);
}

static bool find_srq(struct parser *parser, const char *name, uint64_t *number)
{
	return find_owner(parser->script, name, true, number) ||
	       FAIL("there is no SRQ '%s'; a line 'srq %s' makes it", name, name);
}

static bool find_window(const struct script *script, const char *name, uint64_t *number)
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
	return find_window(parser->script, name, number) ||
	       FAIL("there is no window '%s'; a line 'window %s TYPE_2' makes it", name, name);
}

static bool read_key(struct parser *parser, const char *name, const char *text,
		     struct script_value *value)
{
	value->bad = strcmp(text, "bad") == 0;
	value->is_name = find_window(parser->script, text, &value->number);
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

/* Appends a word to a list with commas. */
static void append(char *list, size_t size_bytes, const char *word)
{
	const size_t used = strlen(list);

	snprintf(list + used, size_bytes - used, "%s%s", used ? ", " : "", word);
}

static bool refuse_field(struct parser *parser, const char *word)
{
	const enum script_statement statement = parser->line->statement;
	const char *name = script_statements[statement].name;
	char list[400] = "";

	for (unsigned int i = 0; i < SCRIPT_FIELDS; i++)
		if (script_fields[i].statements & 1u << statement)
			append(list, sizeof(list), script_fields[i].name);
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
	name = take_word(parser);
	parser->line->wanted_errno = name ? script_find_errno(name) : -1;
	if (parser->line->wanted_errno < 0)
		return FAIL("'=' wants the name of an errno value behind it, such as EINVAL");
	return true;
}

static bool read_fields(struct parser *parser)
{
	char *word;

	while ((word = take_word(parser))) {
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

/* --- what a line must have --- */

/* Returns the headers of an opcode: the codec knows them. */
static unsigned int headers_of(uint8_t opcode)
{
	uint8_t frame[VB_FRAME_BYTES_MAX];
	const struct vb_packet packet = {.opcode = opcode};
	const size_t length_bytes = vb_packet_encode(&packet, "", frame);
	struct vb_packet has;

	vb_packet_decode(frame, length_bytes, false, &has);
	return has.has;
}

/* The fields without a default, and the header of each. */
static const struct {
	enum script_field field;
	unsigned int has;
	uint8_t operation; /* only this one; 0: all that have the header */
} required[] = {
	{SCRIPT_PSN, UINT32_MAX, 0},
	{SCRIPT_MSN, VB_PACKET_HAS_AETH, 0},
	{SCRIPT_ADDR, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC, 0},
	{SCRIPT_DMA, VB_PACKET_HAS_RETH, 0},
	{SCRIPT_IMM, VB_PACKET_HAS_IMM, 0},
	{SCRIPT_KEY, VB_PACKET_HAS_INVALIDATE, 0},
	{SCRIPT_ADD, VB_PACKET_HAS_ATOMIC, 0x14},
	{SCRIPT_COMPARE, VB_PACKET_HAS_ATOMIC, 0x13},
	{SCRIPT_SWAP, VB_PACKET_HAS_ATOMIC, 0x13},
	{SCRIPT_ORIGINAL, VB_PACKET_HAS_ORIGINAL, 0},
	{SCRIPT_QKEY, VB_PACKET_HAS_DETH, 0},
	{SCRIPT_SRQN, VB_PACKET_HAS_XRC, 0},
};

/* The fields of headers that not all packets have. */
static const struct {
	enum script_field field;
	unsigned int has;
} of_headers[] = {
	{SCRIPT_MSN, VB_PACKET_HAS_AETH},
	{SCRIPT_SYNDROME, VB_PACKET_HAS_AETH},
	{SCRIPT_ADDR, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC},
	{SCRIPT_RKEY, VB_PACKET_HAS_RETH | VB_PACKET_HAS_ATOMIC},
	{SCRIPT_DMA, VB_PACKET_HAS_RETH},
	{SCRIPT_IMM, VB_PACKET_HAS_IMM},
	{SCRIPT_KEY, VB_PACKET_HAS_INVALIDATE},
	{SCRIPT_ADD, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_COMPARE, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_SWAP, VB_PACKET_HAS_ATOMIC},
	{SCRIPT_ORIGINAL, VB_PACKET_HAS_ORIGINAL},
	{SCRIPT_QKEY, VB_PACKET_HAS_DETH},
	{SCRIPT_SOURCE_QPN, VB_PACKET_HAS_DETH},
	{SCRIPT_GROUP, VB_PACKET_HAS_DETH},
	{SCRIPT_SRQN, VB_PACKET_HAS_XRC},
};

/* A field of a header that the packet does not have would be compared with nothing. */
static bool check_headers(struct parser *parser)
{
	const struct script_line *line = parser->line;

	for (size_t i = 0; i < COUNT(of_headers); i++)
		if (line->values[of_headers[i].field].given && !(line->has & of_headers[i].has))
			return FAIL("%s has no field %s", line->operation.name,
				    script_fields[of_headers[i].field].name);
	if (line->values[SCRIPT_TIMER].given && (line->operation.syndrome & 0xe0) != 0x20)
		return FAIL("%s has no field timer; only RNR_NAK has it", line->operation.name);
	return true;
}

/* A send has fields that only some types of QPs, and only some operations use. */
static bool check_send(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const enum ibv_qp_type type = parser->script->qps[line->qp].type;
	const bool binds = line->word_value == IBV_WR_BIND_MW;

	if (binds && !line->values[SCRIPT_WINDOW_NAME].given)
		return FAIL("BIND_MW has a window; give window=NAME");
	if (!binds && (line->values[SCRIPT_WINDOW_NAME].given || line->values[SCRIPT_OF].given ||
		       line->values[SCRIPT_ACCESS].given))
		return FAIL("window=, of= and access= are for BIND_MW");
	if (line->values[SCRIPT_GROUP].given && type != IBV_QPT_UD)
		return FAIL("group= is for a QP of type UD");
	if (line->values[SCRIPT_SRQN].given && type != IBV_QPT_XRC_SEND)
		return FAIL("srqn= is for a QP of type XRC_SEND");
	return true;
}

static bool check_packet(struct parser *parser)
{
	struct script_line *line = parser->line;

	if (!line->message)
		line->has = headers_of(line->operation.opcode);
	if (line->rest_any && line->statement == SCRIPT_IN)
		return FAIL("'...' is for packets of the device; give each field of this one");
	if (!line->message && !check_headers(parser))
		return false;
	for (size_t i = 0; i < COUNT(required) && !line->rest_any && !line->message; i++) {
		const char *name = script_fields[required[i].field].name;

		if (!(line->has & required[i].has) || line->values[required[i].field].given ||
		    (required[i].operation &&
		     required[i].operation != (line->operation.opcode & 0x1f)))
			continue;
		return FAIL("%s has the field %s; give %s=N%s", line->operation.name, name, name,
			    line->statement == SCRIPT_IN ? ""
							 : ", or '...' at the end of the line");
	}
	return true;
}

static bool check_completion(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const struct script_value *status = &line->values[SCRIPT_STATUS];
	const bool is_good = !status->given || (!status->any && status->number == IBV_WC_SUCCESS);

	if (!line->values[SCRIPT_ID].given && !line->rest_any)
		return FAIL("a completion has an id; give id=N");
	if (strcmp(line->word, "recv") == 0 && is_good && !line->values[SCRIPT_BYTE_LEN].given &&
	    !line->rest_any)
		return FAIL("a receive that succeeds has a byte_len; give byte_len=N, or '...' at "
			    "the end of the line");
	return true;
}

static bool check_memory(struct parser *parser)
{
	const struct script_value *values = parser->line->values;

	if (!values[SCRIPT_NUMBER].given && !values[SCRIPT_DATA].given)
		return FAIL("give data=PLACE, data=xDIGITS or number=N");
	if (values[SCRIPT_DATA].given && !values[SCRIPT_DATA].digit_bytes &&
	    !values[SCRIPT_LENGTH].given && parser->line->statement == SCRIPT_MEMORY)
		return FAIL("data=PLACE needs length=N");
	return true;
}

/* Only a binding may name more bytes than a packet or an SGE can have. */
static bool check_length(struct parser *parser)
{
	const struct script_line *line = parser->line;
	const bool binds = line->statement == SCRIPT_BIND ||
			   (line->statement == SCRIPT_SEND && line->word_value == IBV_WR_BIND_MW);

	return binds || line->values[SCRIPT_LENGTH].number <= UINT32_MAX ||
	       FAIL("length=%llu is above 4294967295",
		    (unsigned long long)line->values[SCRIPT_LENGTH].number);
}

static bool check_line(struct parser *parser)
{
	const struct script_line *line = parser->line;

	if (!check_length(parser))
		return false;

	switch (line->statement) {
	case SCRIPT_OUT:
	case SCRIPT_IN:
		return check_packet(parser);
	case SCRIPT_COMPLETION:
		return check_completion(parser);
	case SCRIPT_STORE:
	case SCRIPT_MEMORY:
		return check_memory(parser);
	case SCRIPT_BIND:
		return line->values[SCRIPT_WINDOW_NAME].given ||
		       FAIL("a binding has a window; give window=NAME");
	case SCRIPT_SEND:
		return check_send(parser);
	case SCRIPT_ATTACH:
	case SCRIPT_DETACH:
		return line->values[SCRIPT_GROUP].given || FAIL("give the group: group=N");
	case SCRIPT_QP:
		return !line->values[SCRIPT_MTU].given ||
		       vb_bytes_to_mtu((unsigned int)line->values[SCRIPT_MTU].number) ||
		       FAIL("mtu is 256, 512, 1024, 2048 or 4096");
	default:
		return true;
	}
}

/* --- the word behind the statement --- */

/* Checks a name that a line gives to a QP, an SRQ or a window: each name stands for one of them. */
static bool check_name(struct parser *parser, const char *what)
{
	const char *name = parser->line->word;
	uint64_t number;

	if (strlen(name) >= SCRIPT_NAME_MAX)
		return FAIL("the name of %s has at most %d characters", what, SCRIPT_NAME_MAX - 1);
	if (isdigit((unsigned char)*name) || strcmp(name, "bad") == 0)
		return FAIL("'%s' is no name; a name begins with a letter, and is not 'bad'", name);
	if (find_owner(parser->script, name, false, &number) ||
	    find_owner(parser->script, name, true, &number) ||
	    find_window(parser->script, name, &number))
		return FAIL("the script already has a '%s'; give another name", name);
	return true;
}

/* Adds a QP or an SRQ to the script. */
static bool add_owner(struct parser *parser, bool is_srq, enum ibv_qp_type type)
{
	struct script *script = parser->script;
	struct script_owner *owner = &script->qps[script->qp_count];

	if (script->qp_count == SCRIPT_QPS_MAX)
		return FAIL("a script has at most %d QPs and SRQs", SCRIPT_QPS_MAX);
	if (!check_name(parser, is_srq ? "an SRQ" : "a QP"))
		return false;
	*owner = (struct script_owner){.type = type, .is_srq = is_srq};
	strcpy(owner->name, parser->line->word);
	parser->line->qp = script->qp_count++;
	return true;
}

static bool add_qp(struct parser *parser)
{
	static const struct {
		const char *name;
		enum ibv_qp_type type;
	} types[] = {{"RC", IBV_QPT_RC},
		     {"UC", IBV_QPT_UC},
		     {"UD", IBV_QPT_UD},
		     {"XRC_SEND", IBV_QPT_XRC_SEND},
		     {"XRC_RECV", IBV_QPT_XRC_RECV}};
	const char *type = take_word(parser);
	size_t i = 0;

	while (type && i < COUNT(types) && strcmp(types[i].name, type) != 0)
		i++;
	if (!type || i == COUNT(types))
		return FAIL("a QP's type is RC, UC, UD, XRC_SEND or XRC_RECV: qp NAME TYPE");
	return add_owner(parser, false, types[i].type);
}

static bool add_window(struct parser *parser)
{
	struct script *script = parser->script;
	const char *type = take_word(parser);

	parser->line->word_value = type ? script_find_window_type(type) : -1;
	if (parser->line->word_value < 0)
		return FAIL("a window's type is TYPE_1 or TYPE_2: window NAME TYPE");
	if (script->window_count == SCRIPT_WINDOWS_MAX)
		return FAIL("a script has at most %d windows", SCRIPT_WINDOWS_MAX);
	if (!check_name(parser, "a window"))
		return false;
	strcpy(script->windows[script->window_count++], parser->line->word);
	return true;
}

static bool take_value(struct parser *parser, int value, const char *what, const char *like)
{
	parser->line->word_value = value;
	return value >= 0 || FAIL("there is no %s '%s'; one is %s", what, parser->line->word, like);
}

static bool take_duration(struct parser *parser)
{
	if (vb_measure_read(parser->line->word, &vb_measure_times, &parser->line->duration_ns) ==
		    VB_MEASURED &&
	    parser->line->duration_ns < ONE_YEAR_NS)
		return true;
	return FAIL("'%s' is no duration; write %s", parser->line->word, vb_measure_times.allowed);
}

/* Takes the word of the statement. The QP of a packet decides what an operation means, so that is read
 * when the fields are known. */
static bool read_word(struct parser *parser)
{
	struct script_line *line = parser->line;
	const struct script_statement_info *info = &script_statements[line->statement];
	const char *word = info->word ? take_word(parser) : NULL;

	if (!info->word)
		return true;
	if (!word)
		return FAIL("behind '%s' stands %s", info->name, info->word);
	if (!is_space_left(line, word))
		return FAIL("the word is too long");
	strcpy(line->word, word);
	switch (line->statement) {
	case SCRIPT_QP:
		return add_qp(parser);
	case SCRIPT_SRQ:
		return add_owner(parser, true, IBV_QPT_DRIVER);
	case SCRIPT_WINDOW:
		return add_window(parser);
	case SCRIPT_MODIFY:
	case SCRIPT_STATE:
		return take_value(parser, script_find_state(word), "state", "RTS");
	case SCRIPT_SEND:
		return take_value(parser, script_find_wr(word), "operation", "RDMA_WRITE");
	case SCRIPT_EVENT:
		return take_value(parser, script_find_event(word), "event", "QP_ACCESS_ERR");
	case SCRIPT_MANAGER_EVENT:
		return take_value(parser, script_find_manager_event(word), "event",
				  "CONNECT_REQUEST");
	case SCRIPT_OUT:
	case SCRIPT_IN:
		line->message = script_message_find(word);
		return true;
	case SCRIPT_COMPLETION:
		return strcmp(word, "send") == 0 || strcmp(word, "recv") == 0 ||
		       FAIL("a completion is one of 'send' or 'recv'");
	case SCRIPT_SILENCE:
		return take_duration(parser);
	case SCRIPT_IGNORE:
		return strcmp(word, "completions") == 0 ||
		       FAIL("only 'ignore completions' has a meaning");
	case SCRIPT_ONLY:
		return strcmp(word, "sim") == 0 || strcmp(word, "ethernet") == 0 ||
		       FAIL("a script is for 'only sim' or 'only ethernet'");
	default:
		return true;
	}
}

/* --- texts --- */

static const char *quirk_name(unsigned int index)
{
	return vb_sim_quirk_name(index, NULL);
}

/* Checks "QUIRK[,QUIRK...]". */
static bool check_quirks(struct parser *parser, char *list)
{
	const char *quirk;

	while ((quirk = strsep(&list, ",")))
		if (vb_words_find(quirk_name, quirk) < 0)
			return FAIL("there is no quirk '%s'; docs/semantics.md lists them, and '-' "
				    "and a sentence stand for none",
				    quirk);
	return true;
}

/* Checks the places of a line 'known', and why the script fails there. */
static bool check_known(struct parser *parser)
{
	char places[SCRIPT_TEXT_MAX], *list = places, *why, *place;

	strcpy(places, parser->line->word);
	while ((place = strsep(&list, ","))) {
		place[strcspn(place, "/")] = '\0';
		if (vb_words_find(vb_sim_profile_name, place) < 0)
			return FAIL("there is no profile '%s'", place);
	}
	why = take_word(parser);
	if (!why || (strcmp(why, "-") == 0 && !take_word(parser)))
		return FAIL("give the quirks by which the script fails, or '-' and a sentence");
	return strcmp(why, "-") == 0 || check_quirks(parser, why);
}

static bool read_text(struct parser *parser)
{
	if (parser->line->statement == SCRIPT_KNOWN)
		return check_known(parser);
	if (take_word(parser))
		return true;
	return FAIL("'%s' wants a text behind it", script_statements[parser->line->statement].name);
}

/* --- times --- */

static bool read_time(struct parser *parser, const char *text, uint64_t *time_ns)
{
	if (vb_measure_read(text, &vb_measure_times, time_ns) == VB_MEASURED &&
	    *time_ns < ONE_YEAR_NS)
		return true;
	return FAIL("'%s' is no time; write %s", text, vb_measure_times.allowed);
}

/* Reads "+T", "+T..T" or "within T" before a statement. Sets *word to the statement. */
static bool read_when(struct parser *parser, char **word)
{
	struct script_line *line = parser->line;
	char *between;

	if (**word == '+') {
		between = strstr(*word, "..");
		if (between)
			*between = '\0';
		line->time = between ? SCRIPT_BETWEEN : SCRIPT_AFTER;
		if (!read_time(parser, *word + 1, &line->from_ns))
			return false;
		line->to_ns = line->from_ns;
		if (between && !read_time(parser, between + 2, &line->to_ns))
			return false;
	} else if (strcmp(*word, "within") == 0) {
		*word = take_word(parser);
		line->time = SCRIPT_BETWEEN;
		if (!*word || !read_time(parser, *word, &line->to_ns))
			return *word ? false : FAIL("'within' wants a time behind it");
	} else {
		return true;
	}
	*word = take_word(parser);
	return *word ? true : FAIL("a statement is missing behind the time");
}

/* --- lines --- */

static bool refuse_statement(struct parser *parser, const char *word)
{
	char list[400] = "";

	if (*word == '<' || *word == '>')
		return FAIL("put a space behind '%c': %c %s", *word, *word, word + 1);
	for (unsigned int i = 0; i < SCRIPT_STATEMENTS; i++)
		append(list, sizeof(list), script_statements[i].name);
	return FAIL("there is no statement '%s'; there are %s", word, list);
}

static bool find_statement(struct parser *parser, const char *word)
{
	struct script_line *line = parser->line;
	unsigned int i = 0;

	while (i < SCRIPT_STATEMENTS && strcmp(script_statements[i].name, word) != 0)
		i++;
	if (i == SCRIPT_STATEMENTS)
		return refuse_statement(parser, word);
	line->statement = i;
	if (line->time != SCRIPT_NOW && !script_statements[i].takes_time)
		return FAIL("'%s' takes no time before it", word);
	if (line->time == SCRIPT_BETWEEN && i != SCRIPT_OUT && i != SCRIPT_COMPLETION &&
	    i != SCRIPT_EVENT && i != SCRIPT_MANAGER_EVENT)
		return FAIL("a range of time is for what the device does; '%s' has one time", word);
	return true;
}

static bool read_operation(struct parser *parser)
{
	struct script_line *line = parser->line;
	const enum ibv_qp_type type = parser->script->qps[line->qp].type;

	if (line->message || (line->statement != SCRIPT_OUT && line->statement != SCRIPT_IN))
		return true;
	if (script_operation_find(line->word, type, &line->operation))
		return true;
	for (char *c = line->word; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	if (script_operation_find(line->word, type, &line->operation))
		return FAIL("write the name of a packet in capitals: %s", line->word);
	return FAIL("%s has no packet '%s'; docs/scripts.md lists the packets",
		    vb_qp_type_str(type), line->word);
}

/* Returns true for the lines that are about a QP or an SRQ. */
static bool needs_owner(const struct script_line *line)
{
	switch (line->statement) {
	case SCRIPT_LISTEN:
	case SCRIPT_ESTABLISH:
	case SCRIPT_REJECT:
	case SCRIPT_DISCONNECT:
	case SCRIPT_MANAGER_EVENT:
	case SCRIPT_SILENCE:
		return false;
	default:
		return line->statement > SCRIPT_QP && !line->message;
	}
}

/* Finds the QP or the SRQ that a line is about: the one that it names, or the first QP. */
static bool find_line_owner(struct parser *parser)
{
	const struct script *script = parser->script;
	struct script_line *line = parser->line;
	const struct script_value *qp = &line->values[SCRIPT_QP_NAME],
				  *srq = &line->values[SCRIPT_SRQ_NAME];

	line->has_owner = needs_owner(line);
	if (!line->has_owner)
		return true;
	if (qp->given && srq->given)
		return FAIL("a line is about a QP or about an SRQ; leave out qp= or srq=");
	if (qp->given || srq->given) {
		line->qp = (unsigned int)(qp->given ? qp->number : srq->number);
		return true;
	}
	while (line->qp < script->qp_count && script->qps[line->qp].is_srq)
		line->qp++;
	return line->qp < script->qp_count ||
	       FAIL("there is no QP yet; a line 'qp NAME RC' makes one");
}

static bool read_line(struct parser *parser)
{
	struct script_line *line = parser->line;
	char *word = take_word(parser);

	if (!read_when(parser, &word) || !find_statement(parser, word) || !read_word(parser))
		return false;
	if (script_statements[line->statement].takes_text)
		return read_text(parser);
	if (!read_fields(parser))
		return false;
	line->column = 1;
	return find_line_owner(parser) && read_operation(parser) && check_line(parser);
}

static bool add_line(struct script *script)
{
	const unsigned int count = script->line_count;
	struct script_line *more;

	/* The room doubles whenever the count is a power of two. */
	if ((count & (count - 1)) == 0) {
		more = realloc(script->lines, (count ? 2 * count : 1) * sizeof(*more));
		if (!more)
			return false;
		script->lines = more;
	}
	memset(&script->lines[script->line_count++], 0, sizeof(*script->lines));
	return true;
}

bool script_parse(const char *path, char *text, struct script *script,
		  struct script_failure *failure)
{
	struct parser parser = {.script = script, .failure = failure};
	unsigned int number = 0;
	char *line;

	*script = (struct script){.path = path};
	while ((line = strsep(&text, "\n"))) {
		const char *first = line + strspn(line, " \t");

		number++;
		if (!*first || *first == '#')
			continue;
		if (!add_line(script))
			return script_fail(failure, NULL, "no memory is left");
		parser.line = &script->lines[script->line_count - 1];
		parser.line->number = number;
		strncpy(parser.line->text, line, sizeof(parser.line->text) - 1);
		parser.start = parser.at = line;
		if (!read_line(&parser))
			return false;
		script->connects |=
			parser.line->message || (parser.line->statement >= SCRIPT_LISTEN &&
						 parser.line->statement <= SCRIPT_MANAGER_EVENT);
	}
	for (unsigned int i = 0; i < script->line_count; i++)
		if (script->lines[i].statement == SCRIPT_SOURCE)
			return true;
	return script_fail(failure, NULL,
			   "the script names no source; a line 'source TEXT' says where the "
			   "demand stands, or 'source unsourced'");
}

void script_free(struct script *script)
{
	free(script->lines);
	script->lines = NULL;
}

/* --- known failures --- */

/* Returns true if "a,b/real,c" names the place. */
static bool names_place(const char *list, const char *place, bool real)
{
	const size_t length = strlen(place);

	while (list) {
		const char *end = list + length;

		if (strncmp(list, place, length) == 0 &&
		    (!*end || *end == ',' || strncmp(end, real ? "/real" : "/sim", 4) == 0))
			return true;
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	return false;
}

const struct script_line *script_known(const struct script *script, const char *place, bool real)
{
	for (unsigned int i = 0; place && i < script->line_count; i++)
		if (script->lines[i].statement == SCRIPT_KNOWN &&
		    names_place(script->lines[i].word, place, real))
			return &script->lines[i];
	return NULL;
}
