/* SPDX-License-Identifier: MIT */
/*
 * Between the files that print a program as a C test.
 */
#ifndef SRC_DIFFER_PRINT_PRINT_H
#define SRC_DIFFER_PRINT_PRINT_H

#include "src/differ/model/record.h"

#include <stdio.h>

struct vd_print {
	FILE *out;
	const struct vd_program *program;
	const struct vd_record *record;		    /* of the left side, whose answers are held */
	int live[VD_KINDS][VD_SLOTS_MAX];	    /* 1 where there is an object now */
	unsigned int maker[VD_KINDS][VD_SLOTS_MAX]; /* the step that made it */
};

/* Prints the call of one step and what it answers. */
void vd_print_step(struct vd_print *print, unsigned int step);

/* "at(2, 100)": the address of a place. */
#define VD_PLACE_FORMAT	     "at(%u, %u)"
#define VD_PLACE_ARGS(place) (place).region, (place).offset

#endif
