/* SPDX-License-Identifier: MIT */
/*
 * A program that another process explores: the variables VERBENA_SCHEDULE and VERBENA_TALLY say what it
 * follows, and where it counts. vb_explore() sets them with runs_program, and `verbena explore` does.
 */
#include "src/explore/keep.h"
#include "src/explore/tally.h"

#include "src/base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/error.h>

#define VARIABLE_KINDS "VERBENA_EXPLORE_KINDS"
#define VARIABLE_TIME  "VERBENA_EXPLORE_TIME_NS"

#define EXIT_WRONG_VARIABLE 2

static struct explore_tally *mapped;
static pid_t follower;

/* --- the process that explores --- */

static void set_number(const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	setenv(name, text, 1);
}

void follow_by_programs(const struct follow *follow, int tally_fd)
{
	char text[VB_SCHEDULE_TEXT];

	*follow->tally = (struct explore_tally){.version = TALLY_VERSION};
	follow_keep(follow->tally);
	setenv(VARIABLE_SCHEDULE, vb_schedule_print(follow->schedule, text), 1);
	set_number(VARIABLE_TALLY, (uint64_t)tally_fd);
	set_number(VARIABLE_KINDS, follow->kinds);
	set_number(VARIABLE_TIME, follow->time_ns_max);
}

/* --- the program --- */

static uint64_t read_variable(const char *name)
{
	const char *text = getenv(name);
	uint64_t number;

	if (text && vb_number_read(text, 0, UINT64_MAX, &number) == VB_NUMBER_GOOD)
		return number;
	return 0;
}

/* A program that has no tally calls vb_explore() itself, or follows nothing. */
static bool map_tally(void)
{
	void *at;

	if (!getenv(VARIABLE_TALLY))
		return false;
	at = mmap(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED,
		  (int)read_variable(VARIABLE_TALLY), 0);
	if (at == MAP_FAILED)
		return false;
	mapped = at;
	return mapped->version == TALLY_VERSION;
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv(VARIABLE_SCHEDULE);
	struct vb_schedule schedule;

	if (!text || !map_tally())
		return;
	if (vb_schedule_parse(text, &schedule)) {
		fprintf(stderr, "verbena: " VARIABLE_SCHEDULE ": %s\n", vb_last_error());
		exit(EXIT_WRONG_VARIABLE);
	}
	follower = getpid();
	follow_begin(&(struct follow){
		.schedule = &schedule,
		.tally = mapped,
		.kinds = (unsigned int)read_variable(VARIABLE_KINDS),
		.time_ns_max = read_variable(VARIABLE_TIME),
		.trace = getenv("VERBENA_TRACE"),
		.trace_limit = keep_limits().trace,
	});
}

/* The destructor of backends/sim/world/process.c, which ends the world, has a lower priority. */
__attribute__((destructor)) static void finish(void)
{
	if (follower != getpid())
		return;
	follow_end();
	follow_look_at_left(mapped);
	if (mapped->process == follower)
		mapped->process = 0;
}
