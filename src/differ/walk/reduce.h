/* SPDX-License-Identifier: MIT */
/*
 * The shortest program that still shows a difference.
 */
#ifndef SRC_DIFFER_WALK_REDUCE_H
#define SRC_DIFFER_WALK_REDUCE_H

#include "src/differ/model/program.h"

/* Whether a program still shows what is looked for. */
typedef bool vd_shows_fn(void *arg, const struct vd_program *program);

/*
 * Drops steps, then work requests of lists and their pieces, as long as shows(arg, program) holds;
 * every try is a call of it. What is left shows it, and nothing more can be dropped alone. tries
 * bounds the calls. Returns how many there were.
 */
unsigned int vd_reduce(struct vd_program *program, unsigned int tries, vd_shows_fn *shows,
		       void *arg);

#endif
