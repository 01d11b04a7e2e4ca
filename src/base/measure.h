/* SPDX-License-Identifier: MIT */
/* Times and rates as people write them: a number and a unit. */
#ifndef SRC_BASE_MEASURE_H
#define SRC_BASE_MEASURE_H

#include <stdint.h>

/* What is measured: its units, the smallest first, and the form of a value for messages. */
struct vb_measure {
	const char *allowed;
	struct {
		const char *name;
		uint64_t factor;
	} units[5];
};

extern const struct vb_measure vb_measure_times; /* in nanoseconds */
extern const struct vb_measure vb_measure_rates; /* in bits a second */

enum vb_measured {
	VB_MEASURED,
	VB_NOT_MEASURED,
	VB_NOT_WHOLE, /* finer than the smallest unit */
	VB_TOO_BIG,
};

/* Converts "number[.fraction][ ]unit" to the smallest unit, which a number without unit has. */
enum vb_measured vb_measure_read(const char *text, const struct vb_measure *by, uint64_t *result);

#endif /* SRC_BASE_MEASURE_H */
