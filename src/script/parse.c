/* SPDX-License-Identifier: MIT */
/* A text becomes lines. Each mistake is found here, with its line and column, before anything runs. */
#include "src/script/parse.h"

#include "src/base/measure.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* --- words --- */

char *parse_take_word(struct parser *parser)
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

void parse_append(char *list, size_t size_bytes, const char *word)
{
	const size_t used = strlen(list);

	snprintf(list + used, size_bytes - used, "%s%s", used ? ", " : "", word);
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
		*word = parse_take_word(parser);
		line->time = SCRIPT_BETWEEN;
		if (!*word || !read_time(parser, *word, &line->to_ns))
			return *word ? false : FAIL("'within' wants a time behind it");
	} else {
		return true;
	}
	*word = parse_take_word(parser);
	return *word ? true : FAIL("a statement is missing behind the time");
}

/* --- lines --- */

static bool read_text(struct parser *parser)
{
	if (parser->line->statement == SCRIPT_KNOWN)
		return parse_known(parser);
	if (parse_take_word(parser))
		return true;
	return FAIL("'%s' wants a text behind it", script_statements[parser->line->statement].name);
}

static bool refuse_statement(struct parser *parser, const char *word)
{
	char list[400] = "";

	if (*word == '<' || *word == '>')
		return FAIL("put a space behind '%c': %c %s", *word, *word, word + 1);
	for (unsigned int i = 0; i < SCRIPT_STATEMENTS; i++)
		parse_append(list, sizeof(list), script_statements[i].name);
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
	char *word = parse_take_word(parser);

	if (!read_when(parser, &word) || !find_statement(parser, word) || !parse_word(parser))
		return false;
	if (script_statements[line->statement].takes_text)
		return read_text(parser);
	if (!parse_fields(parser))
		return false;
	line->column = 1;
	return find_line_owner(parser) && read_operation(parser) && parse_check(parser);
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
