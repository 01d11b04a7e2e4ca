/* SPDX-License-Identifier: MIT */
/*
 * Random programs on two devices, until they differ.
 */
#ifndef SRC_DIFFER_WALK_WALK_H
#define SRC_DIFFER_WALK_WALK_H

#include "src/differ/walk/coverage.h"
#include "src/differ/machine/site.h"

#include <stdio.h>

struct vd_walk {
	/* of the caller */
	struct vd_site left, right;
	uint64_t seed;	     /* of the first program; the next has the next */
	unsigned long steps; /* the walk ends with the program that reaches them */
	unsigned int avoid;  /* enum vd_avoid */
	unsigned int tries;  /* to reduce a difference */
	bool keep_going;     /* after a difference, which is not reduced */
	bool verbose;	     /* a line for each program */
	bool print;	     /* programs as C tests; the right side is not run */
	FILE *out;
	/* what came of it */
	struct vd_coverage coverage;
	unsigned long differences;
	unsigned long unrepeated; /* that did not come again when the program did */
	unsigned long open;	  /* programs left early, where the sides may part */
	/* its own */
	struct vd_program program;
	struct vd_record records[2];
};

/*
 * Walks. A difference that comes again ends it: it is reduced and printed as a C test. Returns 0, or
 * the errno of opening a device, whose sentence is printed.
 */
int vd_walk(struct vd_walk *walk);

/* Prints a program, and what the left side answered, as a C test in the form of the conformance
 * suites. */
void vd_print_test(const struct vd_program *program, const struct vd_record *left,
		   const struct vd_difference *difference, FILE *out);

#endif
