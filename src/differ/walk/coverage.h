/* SPDX-License-Identifier: MIT */
/*
 * What a walk has reached, and the least that it has to reach.
 */
#ifndef SRC_DIFFER_WALK_COVERAGE_H
#define SRC_DIFFER_WALK_COVERAGE_H

#include "src/differ/model/record.h"

#include <stdio.h>

#define VD_ERRNOS_MAX	140
#define VD_OPCODES_MAX	16
#define VD_STATUSES_MAX 24
#define VD_EVENTS_KNOWN 24

/* From this many steps on the minima hold. */
#define VD_MINIMA_STEPS 10000

struct vd_coverage {
	unsigned long steps; /* that called something */
	unsigned long programs;
	unsigned long answers[VD_VERBS][VD_ERRNOS_MAX];
	unsigned long wrs[VD_OPCODES_MAX][IBV_QPT_UD + 1]; /* posted, by type of the QP */
	unsigned long statuses[VD_STATUSES_MAX];
	unsigned long events[VD_EVENTS_KNOWN];
	unsigned long completion_events;
};

/* Counts what one side answered. */
void vd_cover(struct vd_coverage *coverage, const struct vd_program *program,
	      const struct vd_record *record);

void vd_print_coverage(const struct vd_coverage *coverage, FILE *out);

/*
 * How many minima are missed, each with a line to out. is_spec: also what only a device that does as
 * the specification says can reach. Fewer than VD_MINIMA_STEPS steps miss nothing.
 */
unsigned int vd_check_minima(const struct vd_coverage *coverage, bool is_spec, FILE *out);

/* "SEND", "RDMA_WRITE", ...; never NULL. */
const char *vd_opcode_name(unsigned int opcode);

#endif
