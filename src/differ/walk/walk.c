/* SPDX-License-Identifier: MIT */
#include "src/differ/walk/walk.h"

#include "src/differ/compare/compare.h"
#include "src/differ/generate/generate.h"
#include "src/differ/machine/run.h"
#include "src/differ/print/print.h"
#include "src/differ/walk/reduce.h"

#include <errno.h>
#include <string.h>
#include <verbena/error.h>

/* A program that differed runs again at most so often, until it differs again. */
#define RUNS_AGAIN 2

/* The difference that a program must keep while it is reduced. */
struct search {
	struct vd_walk *walk;
	struct vd_difference found;
	enum vd_verb verb; /* of the step where they differ */
};

static int run_side(struct vd_site *site, const struct vd_program *program,
		    const struct vd_record *expected, struct vd_record *record)
{
	int error = vd_run(site, program, expected, record);

	if (error)
		vd_site_report(site, error);
	return error;
}

/* Runs both sides. Returns 0, or the errno of a device that cannot be opened; then there is no
 * verdict. */
static int run_both(struct vd_walk *walk, const struct vd_program *program,
		    struct vd_difference *difference, enum vd_verdict *verdict)
{
	int error = run_side(&walk->left, program, NULL, &walk->records[0]);

	if (!error)
		error = run_side(&walk->right, program, &walk->records[0], &walk->records[1]);
	if (!error)
		*verdict = vd_compare(program, &walk->records[0], &walk->records[1], difference);
	return error;
}

/* True if the program shows the same kind of difference at the same verb: any other is another
 * finding. */
static bool shows(void *arg, const struct vd_program *program)
{
	struct search *search = arg;
	struct vd_difference difference;
	enum vd_verdict verdict;

	return !run_both(search->walk, program, &difference, &verdict) && verdict == VD_DIFFERENT &&
	       difference.about == search->found.about &&
	       program->steps[difference.step].verb == search->verb;
}

/* On a real clock a busy machine may cause a difference, which does not appear again. */
static bool comes_again(struct search *search)
{
	for (unsigned int i = 0; i < RUNS_AGAIN; i++)
		if (shows(search, &search->walk->program))
			return true;
	return false;
}

static void reduce(struct search *search)
{
	struct vd_walk *walk = search->walk;
	struct vd_difference difference = search->found;
	enum vd_verdict verdict = VD_SAME;
	unsigned int before = walk->program.count;
	uint64_t used;

	walk->program.count = search->found.step + 1;
	used = vd_reduce(&walk->program, walk->tries, shows, search);
	run_both(walk, &walk->program, &difference, &verdict);
	fprintf(walk->out, "%s from %u steps to %u in %llu tries: step %u, %s\n\n",
		verdict == VD_DIFFERENT ? "reduced" : "does not repeat when reduced", before,
		walk->program.count, (unsigned long long)used, difference.step, difference.text);
	vd_print_test(&walk->program, &walk->records[0], &difference, walk->out);
}

static int print_program(struct vd_walk *walk)
{
	struct vd_difference none = {.text = "nothing is compared"};
	int error = run_side(&walk->left, &walk->program, NULL, &walk->records[0]);

	if (error)
		return error;
	vd_cover(&walk->coverage, &walk->program, &walk->records[0], walk->records[0].step_count);
	vd_print_test(&walk->program, &walk->records[0], &none, walk->out);
	return 0;
}

static void judge(struct vd_walk *walk, uint64_t seed, const struct vd_difference *difference)
{
	struct search search = {.walk = walk,
				.found = *difference,
				.verb = walk->program.steps[difference->step].verb};
	bool again = comes_again(&search);

	if (again)
		walk->differences++;
	else
		walk->unrepeated++;
	fprintf(walk->out, "seed %llu differs at step %u, %s%s\n", (unsigned long long)seed,
		difference->step, difference->text, again ? "" : "; but not again");
	fflush(walk->out);
	if (again && !walk->keep_going)
		reduce(&search);
}

/* Returns how many steps both sides answered alike: a step after a difference is not compared. */
static unsigned int compared_steps(const struct vd_walk *walk, enum vd_verdict verdict,
				   const struct vd_difference *difference)
{
	const unsigned int left = walk->records[0].step_count, right = walk->records[1].step_count;

	if (verdict != VD_SAME)
		return difference->step;
	return left < right ? left : right;
}

static int walk_program(struct vd_walk *walk, uint64_t seed)
{
	struct vd_difference difference;
	enum vd_verdict verdict;
	int error;

	vd_generate(&walk->program, seed, walk->avoid);
	if (walk->verbose) {
		fprintf(walk->out, "seed %llu: %u steps\n", (unsigned long long)seed,
			walk->program.count);
		fflush(walk->out);
	}
	if (walk->print)
		return print_program(walk);
	error = run_both(walk, &walk->program, &difference, &verdict);
	if (error)
		return error;
	vd_cover(&walk->coverage, &walk->program, &walk->records[0],
		 compared_steps(walk, verdict, &difference));
	walk->open += verdict == VD_OPEN;
	if (verdict == VD_OPEN && walk->verbose)
		fprintf(walk->out, "seed %llu is left at step %u, %s\n", (unsigned long long)seed,
			difference.step, difference.text);
	if (verdict == VD_DIFFERENT)
		judge(walk, seed, &difference);
	return 0;
}

int vd_walk(struct vd_walk *walk)
{
	uint64_t seed = walk->seed;
	int error = 0;

	while (!error && walk->coverage.steps < walk->steps &&
	       (!walk->differences || walk->keep_going))
		error = walk_program(walk, seed++);
	return error;
}
