/* SPDX-License-Identifier: MIT */
/* Tests with B in another process: its beginning, its end, and what it ends. */
#include "test/conformance/runner.h"
#include "test/peer/peer.h"

#include <stdlib.h>

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
