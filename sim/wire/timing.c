/* SPDX-License-Identifier: MIT */
#include "sim/wire/timing.h"

#include <assert.h>

/* ibv_modify_qp(3) lists them in milliseconds; here in units of 10 us. */
static const uint16_t rnr_timer_10us[32] = {
	0 /* 65536: see below */,
	1,
	2,
	3,
	4,
	6,
	8,
	12,
	16,
	24,
	32,
	48,
	64,
	96,
	128,
	192,
	256,
	384,
	512,
	768,
	1024,
	1536,
	2048,
	3072,
	4096,
	6144,
	8192,
	12288,
	16384,
	24576,
	32768,
	49152,
};

uint64_t sim_rnr_timer_ns(unsigned int code)
{
	assert(code < 32);
	/* Code 0 is the longest, 655.36 ms. */
	return (code ? rnr_timer_10us[code] : 65536u) * UINT64_C(10000);
}

uint64_t sim_ack_timeout_ns(unsigned int code)
{
	assert(code < 32);
	return code ? UINT64_C(4096) << code : 0;
}
