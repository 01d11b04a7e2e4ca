/* SPDX-License-Identifier: MIT */
/*
 * Timeouts, deadlines and the operating system's clock. VB_FOREVER as a timeout, a deadline or a
 * rest means that there is no limit.
 */
#ifndef SRC_CONNECT_DEADLINE_H
#define SRC_CONNECT_DEADLINE_H

#include <stdint.h>
#include <time.h>
#include <verbena/connect.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* The deadline of a wait that begins at now_ns. */
static inline uint64_t deadline_after(uint64_t now_ns, uint64_t timeout_ns)
{
	return now_ns + timeout_ns < now_ns ? VB_FOREVER : now_ns + timeout_ns;
}

/* The time from now_ns to the deadline; 0 if the deadline has passed. */
static inline uint64_t left_until(uint64_t now_ns, uint64_t deadline_ns)
{
	if (deadline_ns == VB_FOREVER)
		return VB_FOREVER;
	return now_ns < deadline_ns ? deadline_ns - now_ns : 0;
}

#endif /* SRC_CONNECT_DEADLINE_H */
