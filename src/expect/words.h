/* SPDX-License-Identifier: MIT */
/* A pattern of words: names, and "field=value". */
#ifndef SRC_EXPECT_WORDS_H
#define SRC_EXPECT_WORDS_H

#include "src/expect/report.h"

#include <stdarg.h>

#define EXPECT_PATTERN_BYTES 512

/* A field of the pattern. */
struct expect_want {
	const char *field;
	bool given; /* true: it is compared */
	bool any;   /* the pattern says "field=*" */
	uint64_t value;
};

/* What a pattern of some kind of thing may say. */
struct expect_grammar {
	struct expect_want *wants;
	unsigned int count;
	/* Takes a word without '='. Returns false if the word is no name. */
	bool (*name)(const char *word, struct expect_want *wants);
	const char *names; /* for the failure: what a word without '=' may be */
};

/* Writes the pattern. Returns false after a failure: it is too long. */
bool expect_write(struct expect_place place, char text[EXPECT_PATTERN_BYTES], const char *format,
		  va_list arguments);

/* Fills in the wants. Returns false after a failure that names the wrong word. */
bool expect_read(struct expect_place place, const char *pattern,
		 const struct expect_grammar *grammar);

/* Returns the field's entry. The field exists. */
struct expect_want *expect_want(struct expect_want *wants, const char *field);

/* Returns true if two names are equal; a may also have a prefix, such as "IBV_WC_". */
bool expect_is_name(const char *word, const char *prefix, const char *name);

/* Adds ", FIELD is VALUE, not VALUE" to the message if the field differs. Returns true then. */
bool expect_say_difference(const struct expect_want *want, bool has, uint64_t got, bool hex);

#endif
