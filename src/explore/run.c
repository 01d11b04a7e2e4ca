/* SPDX-License-Identifier: MIT */
/* One run of the test. */
#include "src/explore/run.h"

#include "src/explore/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/log.h>
#include <verbena/sim.h>

#define NS_OF_S 1000000000

static uint64_t time_ns_max(const struct vb_explore *explore)
{
	return explore->virtual_s_max * NS_OF_S;
}

static bool has_failures(const struct vb_schedule *schedule)
{
	return schedule->count && schedule->decisions[schedule->count - 1].kind > VB_DECIDE_CORRUPT;
}

bool run_failed(const struct vb_explore *explore, const struct vb_schedule *schedule, uint32_t end)
{
	if (end == VB_ENDED_REPORTED)
		return !explore->reports_allowed && !has_failures(schedule);
	return end != VB_ENDED_WELL;
}

/* What vb_explore() has found out counts more than what the test says. */
static uint32_t judge(const struct vb_explore *explore, const struct explore_tally *tally, int said)
{
	if (tally->crowded)
		return VB_ENDED_WRONG;
	if (tally->stuck)
		return VB_ENDED_HANGING;
	if (said != VB_ENDED_WELL && said != VB_ENDED_REPORTED)
		return VB_ENDED_WRONG;
	if (tally->left && !explore->leaks_allowed)
		return VB_ENDED_LEAKED;
	return (uint32_t)said;
}

/* The program that the test starts counts what it leaves. */
static int run_program(const struct vb_explore *explore, const struct follow *follow,
		       const struct run *run)
{
	follow_by_programs(follow, run->tally_fd);
	keep_by_programs();
	if (run->log)
		setenv("VERBENA_LOG", run->log, 1);
	if (run->trace)
		setenv("VERBENA_TRACE", run->trace, 1);
	return explore->test(explore->arg);
}

static int run_function(const struct vb_explore *explore, const struct follow *follow,
			const char *log)
{
	int said;

	*follow->tally = (struct explore_tally){.version = TALLY_VERSION};
	vb_sim_reset();
	if (log) {
		keep_limit_log();
		if (vb_log_open(log))
			fprintf(stderr, "verbena: %s; the run continues without a log\n",
				vb_last_error());
	}
	follow_begin(follow);
	said = explore->test(explore->arg);
	follow_end();
	follow_look_at_left(follow->tally);
	vb_sim_reset();
	if (log) {
		vb_log_close();
		keep_release_log();
	}
	return said;
}

uint32_t run_test(const struct vb_explore *explore, const struct run *run)
{
	const struct follow follow = {
		.schedule = run->schedule,
		.tally = run->tally,
		.kinds = explore->kinds,
		.time_ns_max = time_ns_max(explore),
		.trace = run->trace,
		.trace_limit = keep_limits().trace,
		.aborts = run->aborts,
	};
	const int said = explore->runs_program ? run_program(explore, &follow, run)
					       : run_function(explore, &follow, run->log);

	return judge(explore, run->tally, said);
}

void run_say(const struct explore_tally *tally, uint32_t end, int signal_number, char *words,
	     size_t size_bytes)
{
	switch (end) {
	case VB_ENDED_HANGING:
		tally_say_stuck(tally, words, size_bytes);
		break;
	case VB_ENDED_LEAKED:
		snprintf(words, size_bytes, "%s", tally->left_words);
		break;
	case VB_ENDED_KILLED:
		snprintf(words, size_bytes, "killed by signal %d, %s", signal_number,
			 strsignal(signal_number));
		break;
	default:
		snprintf(words, size_bytes, "%s",
			 tally->words[0] ? tally->words : vb_explore_end_name(end));
	}
}

const char *vb_explore_end_name(unsigned int end)
{
	switch (end) {
	case VB_ENDED_WELL:
		return "the test has ended well";
	case VB_ENDED_REPORTED:
		return "the test has seen a reported failure";
	case VB_ENDED_LEAKED:
		return "the test has left objects";
	case VB_ENDED_HANGING:
		return "the test hangs";
	case VB_ENDED_KILLED:
		return "the test was killed by a signal";
	case VB_ENDED_EXITED:
		return "the test has ended its process";
	case VB_ENDED_STOPPED:
		return "the test has not ended within the time-out";
	default:
		return "the test has failed";
	}
}
