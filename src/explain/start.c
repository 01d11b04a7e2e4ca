/* SPDX-License-Identifier: MIT */
/* What the environment asks for: VERBENA_EXPLAIN and VERBENA_REPORT. */
#include "src/explain/explain.h"
#include "src/explain/report.h"
#include "src/layer/watch.h"

#include <errno.h>
#include <stdlib.h>

static bool explaining;

/* errno is 0 when main() begins, as without Verbena. */
__attribute__((constructor)) static void begin(void)
{
	const int err = errno;
	struct sink sink;

	if (sink_init(&sink, getenv("VERBENA_EXPLAIN")))
		explaining = !explain_start(&sink);
	if (sink_init(&sink, getenv("VERBENA_REPORT")))
		report_start(&sink);
	errno = err;
}

/* The destructor of backends/sim/world/process.c, which ends the world, has a lower priority. */
__attribute__((destructor)) static void finish(void)
{
	if (explaining && !layer_left_inside())
		explain_end();
	report_at_exit();
}
