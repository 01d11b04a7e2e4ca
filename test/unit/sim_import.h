/* SPDX-License-Identifier: MIT */
/* The pair of sim_pair.h, and a context that shares the file of end a, for tests of imported
 * objects. */
#ifndef TEST_UNIT_SIM_IMPORT_H
#define TEST_UNIT_SIM_IMPORT_H

#include "test/unit/sim_pair.h"

#include <unistd.h>

static struct ibv_context *importing; /* NULL: import_device() was not called */

static inline void close_pair_and_import(void)
{
	if (importing)
		B.close_device(importing);
	importing = NULL;
	close_pair();
}

static inline void import_device(void)
{
	importing = B.import_device(dup(a.context->cmd_fd));
	TEST_ASSERT_NOT_NULL(importing);
}

#endif
