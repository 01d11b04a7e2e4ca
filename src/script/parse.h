/* SPDX-License-Identifier: MIT */
/*
 * Between the files that make lines of a script's text. The functions that return a bool return false for a
 * mistake; parser->failure then says which, with its line and column.
 *
 *	parse.c		lines: their times and statements
 *	parse_word.c	the word behind a statement
 *	parse_field.c	the fields: NAME=VALUE
 *	parse_check.c	what a line must have, once it is read
 *	known.c		lines 'known'
 */
#ifndef SRC_SCRIPT_PARSE_H
#define SRC_SCRIPT_PARSE_H

#include "src/script/script.h"

#define ONE_YEAR_NS (365ull * 86400 * 1000000000)

struct parser {
	struct script *script;
	struct script_failure *failure;
	struct script_line *line;
	const char *start; /* of the line's text, for columns */
	char *at;	   /* the rest of the line's text; words taken end with a NUL */
};

#define FAIL(...) script_fail(parser->failure, parser->line, __VA_ARGS__)

/* Takes the next word of the line; NULL at its end, or before a comment. */
char *parse_take_word(struct parser *parser);

/* Appends a word to a list with commas. */
void parse_append(char *list, size_t size_bytes, const char *word);

/* Takes the word of the statement. The QP of a packet decides what an operation means, so that is read
 * when the fields are known. */
bool parse_word(struct parser *parser);

/* Takes the fields, to the end of the line. */
bool parse_fields(struct parser *parser);

/* Find a QP or SRQ, or a window, by its name. Return false if there is none. */
bool parse_find_owner(const struct script *script, const char *name, bool is_srq, uint64_t *number);
bool parse_find_window(const struct script *script, const char *name, uint64_t *number);

/* Checks a line whose word and fields are read. */
bool parse_check(struct parser *parser);

/* Checks the places of a line 'known', and why the script fails there. */
bool parse_known(struct parser *parser);

#endif /* SRC_SCRIPT_PARSE_H */
