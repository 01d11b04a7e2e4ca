/* SPDX-License-Identifier: MIT */
/* Private to the files that print a program: print.c calls step.c. */
#ifndef SRC_DIFFER_PRINT_STEP_H
#define SRC_DIFFER_PRINT_STEP_H

#include "src/differ/model/record.h"

#include <stdio.h>

struct vd_print {
	FILE *out;
	const struct vd_program *program;
	const struct vd_record *record;	   /* the left side's answers, which the test expects */
	bool live[VD_KINDS][VD_SLOTS_MAX]; /* the slot has an object now */
	unsigned int maker[VD_KINDS][VD_SLOTS_MAX]; /* the step that made the object */
};

/* Prints the call of a step and the check of its answer. */
void vd_print_step(struct vd_print *print, unsigned int step);

#endif
