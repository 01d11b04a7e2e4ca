/* SPDX-License-Identifier: MIT */
/* The word behind a statement: a name, a type, a state, an operation, an event or a duration. */
#include "src/script/parse.h"

#include "src/base/count.h"
#include "src/base/measure.h"

#include <ctype.h>
#include <string.h>

static bool is_space_left(const struct script_line *line, const char *word)
{
	return strlen(word) < sizeof(line->word);
}

/* Checks a name that a line gives to a QP, an SRQ or a window: each name stands for one of them. */
static bool check_name(struct parser *parser, const char *what)
{
	const char *name = parser->line->word;
	uint64_t number;

	if (strlen(name) >= SCRIPT_NAME_MAX)
		return FAIL("the name of %s has at most %d characters", what, SCRIPT_NAME_MAX - 1);
	if (isdigit((unsigned char)*name) || strcmp(name, "bad") == 0)
		return FAIL("'%s' is no name; a name begins with a letter, and is not 'bad'", name);
	if (parse_find_owner(parser->script, name, false, &number) ||
	    parse_find_owner(parser->script, name, true, &number) ||
	    parse_find_window(parser->script, name, &number))
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
	const char *type = parse_take_word(parser);
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
	const char *type = parse_take_word(parser);

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

bool parse_word(struct parser *parser)
{
	struct script_line *line = parser->line;
	const struct script_statement_info *info = &script_statements[line->statement];
	const char *word = info->word ? parse_take_word(parser) : NULL;

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
