/* SPDX-License-Identifier: MIT */
/*
 * The examples end at the first call that fails, with the library's sentence.
 */
#ifndef EXAMPLES_SAY_H
#define EXAMPLES_SAY_H

#include <stdio.h>
#include <stdlib.h>
#include <verbena/error.h>

static inline void must(int err)
{
	if (!err)
		return;
	fprintf(stderr, "%s\n", vb_last_error());
	exit(1);
}

static inline void *need(void *object)
{
	must(!object);
	return object;
}

/* A false condition is a mistake of the example. */
static inline void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "check failed: %s\n", what);
	exit(1);
}

#endif
