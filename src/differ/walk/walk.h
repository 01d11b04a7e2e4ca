/* SPDX-License-Identifier: MIT */
/*
 * Runs random programs on two devices until the devices differ.
 */
#ifndef SRC_DIFFER_WALK_WALK_H
#define SRC_DIFFER_WALK_WALK_H

#include "src/differ/machine/site.h"
#include "src/differ/model/record.h"
#include "src/differ/walk/coverage.h"

#include <stdio.h>

struct vd_walk {
	/* set by the caller */
	struct vd_site left, right;
	uint64_t seed;	    /* of the first program; each next program has the next seed */
	uint64_t steps;	    /* the walk ends with the program that reaches this number */
	unsigned int avoid; /* enum vd_avoid */
	uint64_t tries;	    /* the most programs to run to reduce a difference */
	bool keep_going;    /* reduce no difference and continue with the next program */
	bool verbose;	    /* print a line for each program */
	bool print;	    /* print programs as C tests and run the left side only */
	FILE *out;
	/* the result */
	struct vd_coverage coverage;
	unsigned long differences;
	unsigned long
		unrepeated; /* differences that did not appear again when the program ran again */
	unsigned long open; /* programs that ended early, where the sides may differ */
	/* private */
	struct vd_program program;
	struct vd_record records[2];
};

/*
 * Walks. A difference that appears again when its program runs again ends the walk: its program is
 * reduced and printed as a C test. Returns 0, or the errno of a device that cannot be opened, after
 * a message.
 */
int vd_walk(struct vd_walk *walk);

#endif
