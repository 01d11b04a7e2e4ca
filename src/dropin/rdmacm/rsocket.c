/* SPDX-License-Identifier: MIT */
/* What the functions made from src/dropin/rdmacm/refused.txt call: those of rsocket(7). */
#include "src/dropin/dropin.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

/* As of libibverbs.so.1: the real backend does not use a library that has this symbol. */
__attribute__((visibility("default"))) extern const char verbena_dropin[];
const char verbena_dropin[] = "Verbena's librdmacm";

void dropin_refuse_rsocket(const char *symbol)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&told))
		fprintf(stderr,
			"verbena: the program calls %s, and the simulator has no rsockets: use the "
			"sockets of the system, or verbs\n",
			symbol);
	errno = ENOSYS;
}
