/* SPDX-License-Identifier: MIT */
/* The time of the machine's clocks. */
#ifndef BACKENDS_SIM_BASE_CLOCK_NOW_H
#define BACKENDS_SIM_BASE_CLOCK_NOW_H

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock, such as CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
