/* SPDX-License-Identifier: MIT */
#include "sim/wire/timing.h"

#include <assert.h>

#define TIMER_CODES 32u

uint64_t sim_rnr_timer_ns(unsigned int code)
{
	/* Code 0 is the longest timer and continues the sequence behind code 31. */
	const unsigned int place = code ? code : TIMER_CODES;

	assert(code < TIMER_CODES);
	if (place == 1)
		return 10000;
	/* In units of 10 us: 2, 3, 4, 6, 8, 12, 16, 24, ... */
	return UINT64_C(10000) * (2 + place % 2) << (place / 2 - 1);
}

uint64_t sim_ack_timeout_ns(unsigned int code)
{
	assert(code < TIMER_CODES);
	return code ? UINT64_C(4096) << code : 0;
}
