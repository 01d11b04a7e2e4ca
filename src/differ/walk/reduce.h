/* SPDX-License-Identifier: MIT */
/*
 * The shortest program that still shows a difference.
 */
#ifndef SRC_DIFFER_WALK_REDUCE_H
#define SRC_DIFFER_WALK_REDUCE_H

#include "src/differ/model/program.h"

/* Returns true if a program still shows the difference. */
typedef bool vd_shows_fn(void *arg, const struct vd_program *program);

/*
 * Drops steps, then work requests of lists and pieces of them, as long as shows(arg, program) is
 * true. No single piece of the result can be dropped, unless shows() was called tries times before.
 * Returns the number of calls.
 */
uint64_t vd_reduce(struct vd_program *program, uint64_t tries, vd_shows_fn *shows, void *arg);

#endif
