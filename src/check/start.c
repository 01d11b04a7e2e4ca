/* SPDX-License-Identifier: MIT */
/* Starts the sanitizer if VERBENA_CHECK asks for it: verbena-run(1), --check. */
#include "src/check/enable.h"
#include "src/check/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <verbena/check.h>
#include <verbena/error.h>

#define EXIT_WRONG_VARIABLE 2

/* errno is 0 when main() begins, as without Verbena. */
__attribute__((constructor)) static void begin(void)
{
	const int err = errno;
	struct check_settings settings;
	const char *value = getenv("VERBENA_CHECK");

	if (!check_settings_wanted(value))
		return;
	if (!check_settings_read(&settings, value)) {
		fprintf(stderr, "verbena: %s\n", settings.error);
		exit(EXIT_WRONG_VARIABLE);
	}
	if (!vb_check_enable(&settings.options)) {
		errno = err;
		return;
	}
	fprintf(stderr, "verbena: %s\n", vb_last_error());
	exit(EXIT_WRONG_VARIABLE);
}

/* exit(3) calls this before it flushes the streams, so this flushes them. */
static void exit_with(int status, void *arg)
{
	fflush(NULL);
	_exit((int)(intptr_t)arg);
}

/* The handler runs when the destructors of all libraries have run: the world has ended by then. */
__attribute__((destructor)) static void finish(void)
{
	const int status = check_finish();

	if (status)
		on_exit(exit_with, (void *)(intptr_t)status);
}
