/* SPDX-License-Identifier: MIT */
/* Tests with B in another process, and the comparison with one process. */
#include "test/conformance/runner.h"
#include "test/peer/peer.h"

#include <stdlib.h>
#include <string.h>

static struct vt *running(void *arg)
{
	return *(struct vt **)arg;
}

/* Without a test, the runner looks for devices, which it gives nothing but its own memory. */
static void leave_out(void *arg, const char *reason)
{
	if (!running(arg)) {
		fprintf(stderr, "verbena test: %s\n", reason);
		exit(VT_EXIT_FAILED);
	}
	vt_skip(running(arg), "%s", reason);
}

static void died(void *arg, const char *sentence)
{
	struct vt_run *run;

	if (!running(arg)) {
		fprintf(stderr, "verbena test: %s\n", sentence);
		exit(VT_EXIT_FAILED);
	}
	run = running(arg)->run;
	run->stopped = true;
	vt_find(run->result, "B's process ended", "");
	vt_begin_failure(run->result, "%s", sentence);
	longjmp(run->end, 1);
}

bool vt_run_beside(const struct vt_options *options, void (*fn)(void *arg), void *arg,
		   struct vt **test, char *error)
{
	const struct vt_two *two = options->two;
	struct vb_sim_config config;
	struct peer_setup setup = {.leave_out = leave_out, .died = died, .arg = test};
	bool good;

	if (!two) {
		fn(arg);
		return true;
	}
	setup.backend = two->backend;
	setup.network = two->network;
	if (two->sim) {
		config = vt_world_of(options, two->sim);
		setup.sim = &config;
	}
	if (!peer_begin(&setup, error, VT_LINE_MAX))
		return false;
	peer_run(fn, arg);
	good = peer_end(error, VT_LINE_MAX);
	return good;
}

/* Adds what happened in one process to the text of the record. False: out of memory. */
static bool say_difference(struct vt_record *record, const struct vt_record *one)
{
	char *text;
	int length = asprintf(&text, "%stwo processes: the test %s; in one it %s%s%s", record->text,
			      record->outcome == VT_PASSED ? "passes" : "fails",
			      one->outcome == VT_PASSED	   ? "passes"
			      : one->outcome == VT_SKIPPED ? "is skipped: "
							   : "fails: ",
			      one->outcome == VT_PASSED ? "" : one->text,
			      one->outcome == VT_FAILED ? "" : "\n");

	if (length < 0)
		return false;
	free(record->text);
	record->text = text;
	record->outcome = VT_FAILED;
	record->differs = true;
	return true;
}

bool vt_compare_one(const struct vt_options *options, const struct vt_place *place,
		    struct vt_record *record, struct vt_result *shared)
{
	struct vt_options alone = *options;
	struct vt_record one = {.suite = record->suite, .test = record->test};
	bool good = true;

	if (!options->two->one || record->outcome == VT_SKIPPED)
		return true;
	alone.two = NULL;
	alone.sim = options->two->one;
	alone.trace_dir = NULL;
	good = vt_run_one(&alone, place, &one, shared);
	if (good && one.outcome != record->outcome)
		good = say_difference(record, &one);
	free(one.text);
	free(one.output);
	return good;
}
