/* SPDX-License-Identifier: MIT */
#include "test/explore/excluded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/explore.h>

#define CAUSES_MAX  32
#define KINDS_BYTES 128

/* The file while it is read. */
struct reader {
	const char *path;
	unsigned int line;
	size_t cause_count;
	char causes[CAUSES_MAX][32];
};

static bool complain(const struct reader *reader, const char *what, const char *which)
{
	fprintf(stderr, "%s:%u: %s '%s'\n", reader->path, reader->line, what, which);
	return false;
}

static bool has_cause(const struct reader *reader, const char *cause)
{
	for (size_t i = 0; i < reader->cause_count; i++)
		if (!strcmp(reader->causes[i], cause))
			return true;
	return false;
}

static bool take_cause(struct reader *reader, const char *cause)
{
	if (reader->cause_count == CAUSES_MAX || has_cause(reader, cause))
		return complain(reader, "there are too many causes, or two", cause);
	snprintf(reader->causes[reader->cause_count++], sizeof(reader->causes[0]), "%s", cause);
	return true;
}

/* Returns 0 for a word that is no kind. */
static unsigned int kind_of(const char *word)
{
	for (unsigned int kind = 0; kind <= VB_DECIDE_CORRUPT; kind++)
		if (!strcmp(word, vb_decision_name(kind)))
			return 1u << kind;
	return !strcmp(word, "all") ? EXCLUDED_ALL : 0;
}

static bool take_kinds(const struct reader *reader, char *words, unsigned int *kinds)
{
	const char *word;

	*kinds = 0;
	while ((word = strsep(&words, ","))) {
		if (!kind_of(word))
			return complain(reader, "no kind of decision is called", word);
		*kinds |= kind_of(word);
	}
	return true;
}

static bool take_test(struct exclusions *into, const struct reader *reader,
		      const struct excluded *test)
{
	struct excluded *tests;

	if (exclusions_find(into, test->name))
		return complain(reader, "a second line of", test->name);
	tests = realloc(into->tests, (into->count + 1) * sizeof(*tests));
	if (!tests)
		return complain(reader, "there is no memory for", test->name);
	tests[into->count++] = *test;
	into->tests = tests;
	return true;
}

/* "cause WORD SENTENCE", or "SUITE.TEST CAUSE KIND[,KIND...]". */
static bool take_line(struct exclusions *into, struct reader *reader, const char *text)
{
	struct excluded test = {.line = reader->line};
	char cause[32], kinds[KINDS_BYTES];

	if (sscanf(text, "%95s %31s %127s", test.name, cause, kinds) != 3)
		return complain(reader,
				"a line is TEST CAUSE KINDS or cause WORD SENTENCE, and not", text);
	if (!strcmp(test.name, "cause"))
		return take_cause(reader, cause);
	if (!has_cause(reader, cause))
		return complain(reader, "no line above describes the cause", cause);
	return take_kinds(reader, kinds, &test.kinds) && take_test(into, reader, &test);
}

bool exclusions_read(struct exclusions *exclusions, const char *path)
{
	struct reader reader = {.path = path};
	FILE *in = fopen(path, "re");
	char *text = NULL;
	size_t size_bytes = 0;
	bool good = in;

	*exclusions = (struct exclusions){.count = 0};
	if (!in)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	while (good && getline(&text, &size_bytes, in) > 0) {
		reader.line++;
		text[strcspn(text, "\n")] = '\0';
		if (*text && *text != '#')
			good = take_line(exclusions, &reader, text);
	}
	free(text);
	if (in)
		fclose(in);
	return good;
}

void exclusions_free(struct exclusions *exclusions)
{
	free(exclusions->tests);
}

const struct excluded *exclusions_find(const struct exclusions *exclusions, const char *name)
{
	for (size_t i = 0; i < exclusions->count; i++)
		if (!strcmp(exclusions->tests[i].name, name))
			return &exclusions->tests[i];
	return NULL;
}
