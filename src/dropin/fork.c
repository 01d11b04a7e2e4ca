/* SPDX-License-Identifier: MIT */
#include "src/dropin/dropin.h"

/* Nothing to keep from a child: no adapter writes to pages behind the process's back, so that copy
 * on write does no harm (IBV_FORK_UNNEEDED), and libibverbs too does nothing then. */

int dropin_dontfork_range(void *base, size_t size)
{
	return 0;
}

int dropin_dofork_range(void *base, size_t size)
{
	return 0;
}
