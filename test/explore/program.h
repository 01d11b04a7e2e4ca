/* SPDX-License-Identifier: MIT */
/* The command line of the explored tests. */
#ifndef TEST_EXPLORE_PROGRAM_H
#define TEST_EXPLORE_PROGRAM_H

#include <verbena/explore.h>

struct explored {
	const char *name;
	vb_explore_test_fn *test;
	void *arg;
};

/* Explores the tests that the arguments name, or all; the last one has no name. Returns the exit status. */
int explore_program(int argc, char **argv, const struct explored *tests);

#endif /* TEST_EXPLORE_PROGRAM_H */
