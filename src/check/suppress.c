/* SPDX-License-Identifier: MIT */
#include "src/check/suppress.h"

#include "src/base/failure.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	struct line *next;
	enum vb_rule rule; /* VB_RULE_NONE: each rule */
	char pattern[];
};

static struct line *lines;

static const struct {
	enum vb_rule rule;
	const char *word;
} words[] = {
	{VB_RULE_NONE, "*"},
#define VB_RULE(number, name, word, about, remedy) {VB_RULE_##name, word},
#include <verbena/rules.def>
};

static bool find_rule(const char *word, size_t length, enum vb_rule *rule)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].word) != length || memcmp(words[i].word, word, length) != 0)
			continue;
		*rule = words[i].rule;
		return true;
	}
	return false;
}

/* Returns 0, EINVAL or ENOMEM. */
static int add(const char *text)
{
	const size_t word_length = strcspn(text, ":");
	const char *pattern = text + word_length + 1;
	struct line *line;
	enum vb_rule rule;

	if (!text[word_length] || !*pattern || !find_rule(text, word_length, &rule))
		return EINVAL;
	line = malloc(sizeof(*line) + strlen(pattern) + 1);
	if (!line)
		return ENOMEM;
	line->next = lines;
	line->rule = rule;
	strcpy(line->pattern, pattern);
	lines = line;
	return 0;
}

static int read_lines(FILE *file, const char *path)
{
	unsigned int number = 0;
	char *text = NULL;
	size_t size_bytes = 0;
	ssize_t length;
	int err = 0;

	while (!err && (length = getline(&text, &size_bytes, file)) >= 0) {
		number++;
		while (length && strchr(" \t\r\n", text[length - 1]))
			text[--length] = '\0';
		if (length && text[0] != '#')
			err = add(text);
	}
	free(text);
	if (err == EINVAL)
		return fail(err,
			    "check: %s:%u: the line is no suppression; write RULE:PATTERN, such as "
			    "cq-too-small:*main()*",
			    path, number);
	return err ? fail(err, "check: no memory for the lines of %s", path) : 0;
}

int suppress_read(const char *path)
{
	FILE *file = fopen(path, "re");
	int err = errno;

	if (!file)
		return fail(err, "check: %s: %s; name a file of suppressions", path,
			    strerrordesc_np(err));
	err = read_lines(file, path);
	fclose(file);
	if (err)
		suppress_forget();
	return err;
}

void suppress_forget(void)
{
	while (lines) {
		struct line *line = lines;

		lines = line->next;
		free(line);
	}
}

bool suppress_matches(enum vb_rule rule, const char *text)
{
	for (const struct line *line = lines; line; line = line->next)
		if ((!line->rule || line->rule == rule) && !fnmatch(line->pattern, text, 0))
			return true;
	return false;
}
