/* SPDX-License-Identifier: MIT */
/*
 * How these examples end where a call fails: with the library's own sentence.
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

/* What is not as it must be is our mistake. */
static inline void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "this does not hold: %s\n", what);
	exit(1);
}

#endif
