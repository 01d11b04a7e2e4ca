/* SPDX-License-Identifier: MIT */
/*
 * The environment variable VERBENA_IDLE_LAYER=1 adds a layer that does nothing: the tests run with it,
 * and scripts/bench measures what a layer costs.
 */
#include "src/layer/layer.h"

#include <stdlib.h>
#include <string.h>

static int pass(struct layer_call *call)
{
	return 0;
}

static void passed(const struct layer_call *call)
{
}

static struct layer idle = {.name = "idle", .before = pass, .after = passed};

__attribute__((constructor)) static void begin(void)
{
	const char *wanted = getenv("VERBENA_IDLE_LAYER");

	if (wanted && strcmp(wanted, "1") == 0)
		layer_add(&idle);
}
