/* SPDX-License-Identifier: MIT */
#ifndef SRC_DIFFER_PRINT_PRINT_H
#define SRC_DIFFER_PRINT_PRINT_H

#include "src/differ/compare/compare.h"

#include <stdio.h>

/* Prints a program, and what the left side answered, as a C test in the form of the conformance
 * suites. */
void vd_print_test(const struct vd_program *program, const struct vd_record *left,
		   const struct vd_difference *difference, FILE *out);

#endif
