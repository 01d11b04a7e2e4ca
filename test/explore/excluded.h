/* SPDX-License-Identifier: MIT */
/*
 * The list of conformance tests whose verdict a single fault may change: test/data/unexplored.txt says which kinds
 * of decisions do, and why.
 */
#ifndef TEST_EXPLORE_EXCLUDED_H
#define TEST_EXPLORE_EXCLUDED_H

#include <stdbool.h>
#include <stddef.h>

#define EXCLUDED_ALL (~0u) /* the test is not run at all */

struct excluded {
	char name[96];	    /* SUITE.TEST */
	unsigned int kinds; /* bits of enum vb_decision_kind, or EXCLUDED_ALL */
	unsigned int line;
};

struct exclusions {
	size_t count;
	struct excluded *tests;
};

/* Returns false after a message. The caller frees the list in both cases. */
bool exclusions_read(struct exclusions *exclusions, const char *path);
void exclusions_free(struct exclusions *exclusions);

/* Returns NULL if the test is not in the list. */
const struct excluded *exclusions_find(const struct exclusions *exclusions, const char *name);

#endif /* TEST_EXPLORE_EXCLUDED_H */
