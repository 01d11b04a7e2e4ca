/* SPDX-License-Identifier: MIT */
/*
 * Compares the records of two sides.
 */
#ifndef SRC_DIFFER_COMPARE_COMPARE_H
#define SRC_DIFFER_COMPARE_COMPARE_H

#include "src/differ/model/record.h"

enum vd_verdict {
	VD_SAME,
	VD_DIFFERENT,
	VD_OPEN, /* different where devices may differ: see open.h */
};

/* The subject of a difference. Reducing a program keeps it. */
enum vd_about { VD_ANSWER, VD_BAD_WR, VD_VALUE, VD_COMPLETION, VD_EVENT, VD_STATE, VD_MEMORY };

struct vd_difference {
	unsigned int step;
	enum vd_about about;
	char text[400]; /* "left ...; right ..." */
};

/* Compares one step that both sides ran. difference may be NULL. */
enum vd_verdict vd_compare_step(const struct vd_program *program, unsigned int step,
				const struct vd_record *left, const struct vd_record *right,
				struct vd_difference *difference);

/* Compares the steps that both sides ran, up to the first that is not the same. */
enum vd_verdict vd_compare(const struct vd_program *program, const struct vd_record *left,
			   const struct vd_record *right, struct vd_difference *difference);

#endif
