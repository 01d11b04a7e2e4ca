/* SPDX-License-Identifier: MIT */
/*
 * Where two devices may differ although both conform to the specification: verbena-differ(1) lists
 * it. A difference there ends the comparison of a program without a verdict.
 */
#ifndef SRC_DIFFER_COMPARE_OPEN_H
#define SRC_DIFFER_COMPARE_OPEN_H

#include "src/differ/compare/compare.h"

/* One step of a program, the records of both sides, and where they differ. */
struct vd_sides {
	const struct vd_program *program;
	unsigned int step;
	const struct vd_record *left, *right;
	struct vd_difference *difference;
	/* The first completions, or events, that are not the same; NULL: the side has none. */
	const struct vd_completion *completions[2];
	const struct vd_event *events[2];
};

/* The work queue of a completion. */
static inline int vd_queue_of(const struct vd_completion *completion)
{
	return completion->qp * 2 + vd_wr_id_receives(completion->wr_id);
}

/* True if both sides may be right although they differ. */
bool vd_is_open(const struct vd_sides *sides);

#endif
