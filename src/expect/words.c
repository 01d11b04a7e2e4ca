/* SPDX-License-Identifier: MIT */
#include "src/expect/words.h"

#include "src/base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool expect_write(struct expect_place place, char text[EXPECT_PATTERN_BYTES], const char *format,
		  va_list arguments)
{
	int length = vsnprintf(text, EXPECT_PATTERN_BYTES, format, arguments);

	if (length >= 0 && length < EXPECT_PATTERN_BYTES)
		return true;
	return expect_fail_with(
		place, "the pattern has %d characters, and may have %d; split it into several",
		length, EXPECT_PATTERN_BYTES - 1);
}

bool expect_is_name(const char *word, const char *prefix, const char *name)
{
	const size_t length = strlen(prefix);

	if (!strncmp(word, prefix, length))
		word += length;
	if (!strncmp(name, prefix, length))
		name += length;
	return !strcmp(word, name);
}

struct expect_want *expect_want(struct expect_want *wants, const char *field)
{
	while (strcmp(wants->field, field) != 0)
		wants++;
	return wants;
}

static void say_fields(const struct expect_grammar *grammar)
{
	expect_say("; a word is %s, or FIELD=NUMBER with a field of", grammar->names);
	for (unsigned int i = 0; i < grammar->count; i++)
		expect_say("%s %s", i ? "," : "", grammar->wants[i].field);
}

/* Returns NULL, or what is wrong with the word. */
static const char *read_field(char *word, char *equals, const struct expect_grammar *grammar)
{
	struct expect_want *want = NULL;

	*equals = '\0';
	for (unsigned int i = 0; i < grammar->count && !want; i++)
		if (!strcmp(word, grammar->wants[i].field))
			want = &grammar->wants[i];
	*equals = '=';
	if (!want)
		return "is of no field";
	want->any = !strcmp(equals + 1, "*");
	want->given = !want->any;
	if (want->given &&
	    vb_number_read(equals + 1, 0, UINT64_MAX, &want->value) != VB_NUMBER_GOOD &&
	    !grammar->name(equals + 1, grammar->wants))
		return "has no number behind '='";
	return NULL;
}

static const char *read_word(char *word, const struct expect_grammar *grammar)
{
	char *equals = strchr(word, '=');

	if (equals)
		return read_field(word, equals, grammar);
	return grammar->name(word, grammar->wants) ? NULL : "is no name";
}

bool expect_read(struct expect_place place, const char *pattern,
		 const struct expect_grammar *grammar)
{
	char text[EXPECT_PATTERN_BYTES], *rest = text, *word;
	const char *wrong;

	snprintf(text, sizeof(text), "%s", pattern);
	while ((word = strsep(&rest, " \t\n"))) {
		wrong = word[0] && strcmp(word, "*") != 0 ? read_word(word, grammar) : NULL;
		if (!wrong)
			continue;
		expect_begin_message();
		expect_say("the pattern \"%s\" is wrong: \"%s\" %s", pattern, word, wrong);
		say_fields(grammar);
		return expect_fail(place);
	}
	return true;
}

bool expect_say_difference(const struct expect_want *want, bool has, uint64_t got, bool hex)
{
	if (!want->given || (has && want->value == got))
		return false;
	if (!has)
		expect_say("; it has no %s", want->field);
	else if (hex)
		expect_say("; %s is 0x%" PRIx64 ", not 0x%" PRIx64, want->field, got, want->value);
	else
		expect_say("; %s is %" PRIu64 ", not %" PRIu64, want->field, got, want->value);
	return true;
}
