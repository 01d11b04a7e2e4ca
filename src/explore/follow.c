/* SPDX-License-Identifier: MIT */
/* A process follows a schedule. */
#include "src/explore/failures.h"
#include "src/explore/tally.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/sim.h>

#define IDLE_POLLS_MAX 10000

static struct explore_tally *tally; /* NULL: the process follows no schedule */
static bool aborts;
/* --- hangs --- */

void tally_say_stuck(const struct explore_tally *from, char *words, size_t size_bytes)
{
	static const char *const what[] = {
		[VB_STUCK_BLOCKED] = "a blocking call waits for ever: nothing is due in the world",
		[VB_STUCK_POLLING] = "the program polls for ever: nothing is due in the world",
		[VB_STUCK_LONG] = "the run does not end",
	};

	snprintf(words, size_bytes, "%s (virtual time %" PRIu64 ".%09" PRIu64 " s)",
		 what[from->stuck - 1], from->stuck_ns / 1000000000, from->stuck_ns % 1000000000);
}

static void end_stuck(void *arg, enum vb_stuck how, uint64_t now_ns)
{
	char words[256];

	tally->stuck = 1 + how;
	tally->stuck_ns = now_ns;
	if (!aborts)
		_exit(EXIT_STUCK);
	tally_say_stuck(tally, words, sizeof(words));
	fprintf(stderr, "verbena: %s\n", words);
	abort();
}

/* --- the process --- */

/* Returns true if another process that has a world is there. */
static bool other_lives(void)
{
	return tally->process && tally->process != getpid() && !kill(tally->process, 0);
}

/* Packets and calls are counted in one process: those of two have no order that repeats. */
static void note_world(void *arg)
{
	if (other_lives()) {
		tally->crowded = true;
		vb_explore_wrong(
			"two processes of the program use Verbena at the same time, and schedules "
			"count the packets of one; let one process have both ends, on two devices, "
			"or lose packets by rules (verbena run --fault drop,skip=N,count=1)");
		fprintf(stderr, "verbena: %s\n", tally->words);
		_exit(EXIT_STUCK);
	}
	tally->process = getpid();
}

void follow_keep(struct explore_tally *into)
{
	tally = into;
}

void follow_begin(const struct follow *follow)
{
	tally = follow->tally;
	aborts = follow->aborts;
	vb_sim_follow(&(struct vb_sim_course){
		.schedule = follow->schedule,
		.packets = &tally->seen[COUNTED_PACKETS],
		.idle_polls_max = IDLE_POLLS_MAX,
		.time_ns_max = follow->time_ns_max,
		.trace = follow->trace,
		.trace_bytes_max = follow->trace_limit.bytes_max,
		.trace_packets_max = follow->trace_limit.count_max,
		.stuck = end_stuck,
		.begun = note_world,
	});
	failures_begin(follow->schedule, follow->kinds);
}

void follow_end(void)
{
	failures_end(tally->seen);
	vb_sim_follow(NULL);
}

static void keep_first(void *arg, const struct vb_sim_finding *finding)
{
	struct explore_tally *into = arg;
	char text[256];

	if (finding->kind <= VB_SIM_LEFT_ASYNC_ACKS && !into->left_words[0])
		snprintf(into->left_words, sizeof(into->left_words), "%s: %s", finding->device,
			 vb_sim_finding_text(finding, text, sizeof(text)));
}

void follow_look_at_left(struct explore_tally *into)
{
	into->left = vb_sim_report(NULL, keep_first, into);
}

int vb_explore_wrong(const char *format, ...)
{
	va_list arguments;

	if (!tally || tally->words[0])
		return VB_ENDED_WRONG;
	va_start(arguments, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() is the line above. */
	vsnprintf(tally->words, sizeof(tally->words), format, arguments);
	va_end(arguments);
	return VB_ENDED_WRONG;
}
