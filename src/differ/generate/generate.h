/* SPDX-License-Identifier: MIT */
#ifndef SRC_DIFFER_GENERATE_GENERATE_H
#define SRC_DIFFER_GENERATE_GENERATE_H

#include "src/differ/model/program.h"

/*
 * Makes the program of a seed, which depends on the seed and on avoid (bits of enum vd_avoid)
 * alone, never on what a device answers: the generator believes that every verb succeeds.
 */
void vd_generate(struct vd_program *program, uint64_t seed, unsigned int avoid);

#endif
