/* SPDX-License-Identifier: MIT */
#include "src/cli/repeat.h"

#include "src/project/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#define ASK 0xffffffff /* changes nothing */

static bool has_fixed_addresses(void)
{
	return personality(ASK) & ADDR_NO_RANDOMIZE;
}

/* Returns 0 or an errno value. */
static int fix_addresses(void)
{
	return personality(ADDR_NO_RANDOMIZE | (unsigned long)personality(ASK)) < 0 ? errno : 0;
}

static void complain(const char *command, int err)
{
	fprintf(stderr,
		"verbena %s: addresses in the log and in packets differ from run to run: "
		"personality(ADDR_NO_RANDOMIZE): %s; allow it, such as by Docker's --security-opt "
		"seccomp=unconfined\n",
		command, strerror(err));
}

void repeat_run(void)
{
	const char *clock = getenv(VB_ENVIRONMENT_CLOCK);
	int err;

	if (!clock || strcmp(clock, "virtual") != 0)
		return;
	err = fix_addresses();
	if (err && (getenv(VB_ENVIRONMENT_LOG) || getenv(VB_ENVIRONMENT_TRACE)))
		complain("run", err);
}

void repeat_test(int argc, char **argv)
{
	const char *log = getenv(VB_ENVIRONMENT_LOG);
	char **again;
	int err;

	if (!log || !*log || has_fixed_addresses())
		return;
	err = fix_addresses();
	if (err) {
		complain("test", err);
		return;
	}
	again = calloc((size_t)argc + 2, sizeof(*again));
	if (!again)
		return;
	again[0] = program_invocation_name;
	memcpy(again + 1, argv, (size_t)argc * sizeof(*argv));
	/* The worlds of tests have the virtual clock. */
	setenv(VB_ENVIRONMENT_CLOCK, "virtual", 0);
	execv("/proc/self/exe", again);
	free(again);
}
