/* SPDX-License-Identifier: MIT */
/*
 * How often a walk has reached each answer, work request, status and event, and the least counts
 * that it has to reach.
 */
#ifndef SRC_DIFFER_WALK_COVERAGE_H
#define SRC_DIFFER_WALK_COVERAGE_H

#include "src/differ/model/record.h"

#include <stdio.h>

/* The minima are checked from this number of steps on. */
#define VD_MINIMA_STEPS 10000

enum vd_counted {
	VD_ANSWERS,  /* by verb and errno */
	VD_WRS,	     /* posted, by opcode and the QP's type */
	VD_STATUSES, /* of completions */
	VD_EVENTS,   /* by type; also VD_EVENT_COMPLETION */
	VD_COUNTED
};

#define VD_WHATS_MAX 36
#define VD_BYS_MAX   140

struct vd_coverage {
	unsigned long steps; /* steps that called a verb */
	unsigned long programs;
	unsigned long counts[VD_COUNTED][VD_WHATS_MAX][VD_BYS_MAX];
};

/* Counts what one side answered in the first `steps` steps of the program. */
void vd_cover(struct vd_coverage *coverage, const struct vd_program *program,
	      const struct vd_record *record, unsigned int steps);

void vd_print_coverage(const struct vd_coverage *coverage, FILE *out);

/*
 * Returns the number of minima that are missed, and prints a line to out for each; 0 for a walk of
 * fewer than VD_MINIMA_STEPS steps. is_spec adds the minima that only a device with the profile
 * spec can reach.
 */
unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out);

#endif
