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

static bool find_qp(struct parser *parser, const char *name, uint64_t *number)
{
	for (unsigned int i = 0; i < parser->script->qp_count; i++) {
		if (strcmp(parser->script->qps[i].name, name) != 0)
			continue;
		*number = i;
		return true;
	}
	return FAIL("there is no QP '%s'; a line 'qp %s RC' makes it", name, name);
}

static bool read_key(struct parser *parser, const char *name, const char *text,
		     struct script_value *value)
{
	value->bad = strcmp(text, "bad") == 0;
	return value->bad || read_number(parser, name, text, UINT32_MAX, &value->number);
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

static bool read_field(struct parser *parser, char *word)
{
	struct script_line *line = parser->line;
	char *text = strchr(word, '=');
	const struct script_field_info *info;
	struct script_value *value;
	enum script_field field;

	if (text)
		*text++ = '\0';
	field = find_field(word, line->statement);
	if (field == SCRIPT_FIELDS)
		return FAIL("'%s' has no field '%s'; docs/scripts.md lists the fields",
			    script_statements[line->statement].name, word);
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
	const char *name = take_word(parser);

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
};

static bool check_packet(struct parser *parser)
{
	struct script_line *line = parser->line;

	line->has = headers_of(line->operation.opcode);
	if (line->rest_any && line->statement == SCRIPT_IN)
		return FAIL("'...' is for packets of the device; give each field of this one");
	for (size_t i = 0; i < COUNT(required) && !line->rest_any; i++) {
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

static bool check_line(struct parser *parser)
{
	const struct script_line *line = parser->line;

	switch (line->statement) {
	case SCRIPT_OUT:
	case SCRIPT_IN:
		return check_packet(parser);
	case SCRIPT_COMPLETION:
		return check_completion(parser);
	case SCRIPT_STORE:
	case SCRIPT_MEMORY:
		return check_memory(parser);
	case SCRIPT_QP:
		return !line->values[SCRIPT_MTU].given ||
		       vb_bytes_to_mtu((unsigned int)line->values[SCRIPT_MTU].number) ||
		       FAIL("mtu is 256, 512, 1024, 2048 or 4096");
	default:
		return true;
	}
}

/* --- the word behind the statement --- */

static bool add_qp(struct parser *parser)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct script *script = parser->script;
	const char *type = take_word(parser);
	size_t i = 0;

	if (script->qp_count == SCRIPT_QPS_MAX)
		return FAIL("a script has at most %d QPs", SCRIPT_QPS_MAX);
	while (type && i < COUNT(types) && strcmp(vb_qp_type_str(types[i]), type) != 0)
		i++;
	if (!type || i == COUNT(types))
		return FAIL("a QP's type is RC, UC or UD: qp NAME TYPE");
	if (strlen(parser->line->word) >= SCRIPT_NAME_MAX)
		return FAIL("the name of a QP has at most %d characters", SCRIPT_NAME_MAX - 1);
	strcpy(script->qps[script->qp_count].name, parser->line->word);
	script->qps[script->qp_count].type = types[i];
	parser->line->qp = script->qp_count++;
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
	const char *word = info->takes_word ? take_word(parser) : NULL;

	if (!info->takes_word)
		return true;
	if (!word)
		return FAIL("'%s' wants a word behind it", info->name);
	if (!is_space_left(line, word))
		return FAIL("the word is too long");
	strcpy(line->word, word);
	switch (line->statement) {
	case SCRIPT_QP:
		return add_qp(parser);
	case SCRIPT_MODIFY:
	case SCRIPT_STATE:
		return take_value(parser, script_find_state(word), "state", "RTS");
	case SCRIPT_SEND:
		return take_value(parser, script_find_wr(word), "operation", "RDMA_WRITE");
	case SCRIPT_EVENT:
		return take_value(parser, script_find_event(word), "event", "QP_ACCESS_ERR");
	case SCRIPT_COMPLETION:
		return strcmp(word, "send") == 0 || strcmp(word, "recv") == 0 ||
		       FAIL("a completion is one of 'send' or 'recv'");
	case SCRIPT_SILENCE:
		return take_duration(parser);
	case SCRIPT_IGNORE:
		return strcmp(word, "completions") == 0 ||
		       FAIL("only 'ignore completions' has a meaning");
	case SCRIPT_ONLY:
		return strcmp(word, "sim") == 0 || FAIL("only 'only sim' has a meaning");
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

static bool find_statement(struct parser *parser, const char *word)
{
	struct script_line *line = parser->line;
	unsigned int i = 0;

	while (i < SCRIPT_STATEMENTS && strcmp(script_statements[i].name, word) != 0)
		i++;
	if (i == SCRIPT_STATEMENTS)
		return FAIL("there is no statement '%s'; docs/scripts.md lists them", word);
	line->statement = i;
	if (line->time != SCRIPT_NOW && !script_statements[i].takes_time)
		return FAIL("'%s' takes no time before it", word);
	if (line->time == SCRIPT_BETWEEN && i != SCRIPT_OUT && i != SCRIPT_COMPLETION &&
	    i != SCRIPT_EVENT)
		return FAIL("a range of time is for what the device does; '%s' has one time", word);
	return true;
}

static bool read_operation(struct parser *parser)
{
	struct script_line *line = parser->line;
	const enum ibv_qp_type type = parser->script->qps[line->qp].type;

	if (line->statement != SCRIPT_OUT && line->statement != SCRIPT_IN)
		return true;
	if (script_operation_find(line->word, type, &line->operation))
		return true;
	return FAIL("%s has no packet '%s'; docs/scripts.md lists the packets",
		    vb_qp_type_str(type), line->word);
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
	if (line->values[SCRIPT_QP_NAME].given)
		line->qp = (unsigned int)line->values[SCRIPT_QP_NAME].number;
	line->column = 1;
	if (line->statement > SCRIPT_QP && line->statement != SCRIPT_SILENCE &&
	    !parser->script->qp_count)
		return FAIL("there is no QP yet; a line 'qp NAME RC' makes one");
	return read_operation(parser) && check_line(parser);
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
