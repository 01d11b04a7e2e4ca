/* SPDX-License-Identifier: MIT */
/* What the environment asks for: VERBENA_FAIL. See verbena-run(1), --fail. */
#include "src/project/environment.h"
#include "src/project/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <verbena/error.h>

#define EXIT_WRONG_VARIABLE 2

__attribute__((constructor)) static void begin(void)
{
	const char *value = getenv(VB_ENVIRONMENT_FAIL);
	struct vb_failures failures = {0};
	struct vb_project_error error;

	if (!value || !*value)
		return;
	if (failure_read(&failures, value, &error)) {
		if (!failure_apply(&failures))
			return;
		snprintf(error.text, sizeof(error.text), "%s", vb_last_error());
	}
	fprintf(stderr, "verbena: " VB_ENVIRONMENT_FAIL ": %s\n", error.text);
	exit(EXIT_WRONG_VARIABLE);
}
