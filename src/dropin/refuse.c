/* SPDX-License-Identifier: MIT */
/* What the functions made from refused.txt call. */
#include "src/dropin/dropin.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* The real backend looks for this symbol, and does not use a library that has it. */
__attribute__((visibility("default"))) extern const char verbena_dropin[];
const char verbena_dropin[] = "Verbena's libibverbs";

int dropin_refuse(void)
{
	errno = EOPNOTSUPP;
	return EOPNOTSUPP;
}

int dropin_refuse_old(const char *symbol)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		fprintf(stderr,
			"verbena: the program calls %s of IBVERBS_1.0, whose structures are not "
			"simulated: build it against libibverbs 1.1 or later\n",
			symbol);
	return dropin_refuse();
}
