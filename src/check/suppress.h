/* SPDX-License-Identifier: MIT */
/*
 * The file of suppressions: a line is RULE:PATTERN, and suppresses the findings of the rule ("*": of each
 * rule) with a place or a description that the pattern of fnmatch(3) matches. "#" begins a comment.
 */
#ifndef SRC_CHECK_SUPPRESS_H
#define SRC_CHECK_SUPPRESS_H

#include <stdbool.h>
#include <verbena/check.h>

/* Returns 0, or an errno with a sentence for vb_last_error(): EINVAL for a wrong line. */
int suppress_read(const char *path);

/* Forgets the lines. */
void suppress_forget(void);

/* Returns true if a line suppresses the findings of the rule whose place or description is the text. */
bool suppress_matches(enum vb_rule rule, const char *text);

#endif /* SRC_CHECK_SUPPRESS_H */
