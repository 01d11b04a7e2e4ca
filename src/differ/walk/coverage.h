/* SPDX-License-Identifier: MIT */
/*
 * How often a walk has reached each answer, work request, status and event, and the least counts
 * that it has to reach.
 */
#ifndef SRC_DIFFER_WALK_COVERAGE_H
#define SRC_DIFFER_WALK_COVERAGE_H

#include "src/differ/model/record.h"

#include <stdio.h>

#define VD_ERRNOS_MAX	140
#define VD_OPCODES_MAX	(IBV_WR_SEND_WITH_INV + 1)
#define VD_STATUSES_MAX 24
#define VD_EVENTS_KNOWN 24

/* The minima are checked from this number of steps on. */
#define VD_MINIMA_STEPS 10000

struct vd_coverage {
	unsigned long steps; /* steps that called a verb */
	unsigned long programs;
	unsigned long answers[VD_VERBS][VD_ERRNOS_MAX];
	unsigned long wrs[VD_OPCODES_MAX][IBV_QPT_UD + 1]; /* posted, by the QP's type */
	unsigned long statuses[VD_STATUSES_MAX];
	unsigned long events[VD_EVENTS_KNOWN];
	unsigned long completion_events;
};

/* Counts what one side answered. */
void vd_cover(struct vd_coverage *coverage, const struct vd_program *program,
	      const struct vd_record *record);

void vd_print_coverage(const struct vd_coverage *coverage, FILE *out);

/*
 * Returns the number of minima that are missed, and prints a line to out for each; 0 for a walk of
 * fewer than VD_MINIMA_STEPS steps. is_spec adds the minima that only a device with the profile
 * spec can reach.
 */
unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out);

#endif
