/* SPDX-License-Identifier: MIT */
#include "src/differ/walk/reduce.h"

#include <stdlib.h>
#include <string.h>

struct reduction {
	struct vd_program *program; /* the smallest that shows the difference */
	struct vd_program *trial;
	uint64_t used, tries;
	vd_shows_fn *shows;
	void *arg;
};

/* Replaces the program by the trial if the trial shows the difference. */
static bool try_it(struct reduction *r)
{
	if (r->used == r->tries)
		return false;
	r->used++;
	if (!r->shows(r->arg, r->trial))
		return false;
	*r->program = *r->trial;
	return true;
}

static bool without_steps(struct reduction *r, unsigned int first, unsigned int count)
{
	struct vd_step *steps = r->trial->steps;

	*r->trial = *r->program;
	memmove(&steps[first], &steps[first + count],
		(r->trial->count - first - count) * sizeof(steps[0]));
	r->trial->count -= count;
	return try_it(r);
}

/* Tries the last steps first: a step needs only steps before it. */
static bool drop_steps(struct reduction *r)
{
	bool dropped = false;

	for (unsigned int size = (r->program->count + 1) / 2; size; size /= 2)
		for (unsigned int end = r->program->count; end >= size;) {
			unsigned int first = end - size;

			if (without_steps(r, first, size))
				dropped = true;
			end = first < r->program->count ? first : r->program->count;
		}
	return dropped;
}

static bool without_wr(struct reduction *r, unsigned int at, unsigned int wr)
{
	struct vd_step *step = &r->trial->steps[at];

	*r->trial = *r->program;
	memmove(&step->wrs[wr], &step->wrs[wr + 1],
		(step->wr_count - wr - 1) * sizeof(step->wrs[0]));
	step->wr_count--;
	return try_it(r);
}

static bool drop_wrs(struct reduction *r)
{
	bool dropped = false;

	for (unsigned int i = 0; i < r->program->count; i++)
		for (unsigned int wr = r->program->steps[i].wr_count; wr--;)
			if (r->program->steps[i].wr_count > 1 && without_wr(r, i, wr))
				dropped = true;
	return dropped;
}

static bool simplify_wr(struct reduction *r, unsigned int at, unsigned int wr)
{
	const struct vd_wr *now = &r->program->steps[at].wrs[wr];
	struct vd_wr *then = &r->trial->steps[at].wrs[wr];
	bool simpler = false;

	if (now->sge_count > 1) {
		*r->trial = *r->program;
		then->sge_count = 1;
		simpler = try_it(r);
	}
	if (now->sge_count && now->sges[0].length > 8) {
		*r->trial = *r->program;
		then->sges[0].length = 8;
		simpler = try_it(r) || simpler;
	}
	if (now->flags & ~(unsigned int)IBV_SEND_SIGNALED) {
		*r->trial = *r->program;
		then->flags &= IBV_SEND_SIGNALED;
		simpler = try_it(r) || simpler;
	}
	return simpler;
}

static bool simplify_wrs(struct reduction *r)
{
	bool simpler = false;

	for (unsigned int i = 0; i < r->program->count; i++)
		for (unsigned int wr = 0; wr < r->program->steps[i].wr_count; wr++)
			simpler = simplify_wr(r, i, wr) || simpler;
	return simpler;
}

uint64_t vd_reduce(struct vd_program *program, uint64_t tries, vd_shows_fn *shows, void *arg)
{
	struct reduction r = {.program = program,
			      .trial = malloc(sizeof(*r.trial)),
			      .tries = tries,
			      .shows = shows,
			      .arg = arg};
	bool smaller = r.trial != NULL;

	while (smaller && r.used < r.tries) {
		smaller = drop_steps(&r);
		smaller = drop_wrs(&r) || smaller;
		smaller = simplify_wrs(&r) || smaller;
	}
	free(r.trial);
	return r.used;
}
