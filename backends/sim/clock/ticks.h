/* SPDX-License-Identifier: MIT */
/*
 * A reading of CLOCK_MONOTONIC takes longer than most of what a poll does. The processor's counter of ticks takes less
 * than half as long. So a real clock reads CLOCK_MONOTONIC together with the counter once in TICKS_NS_MAX, and counts
 * on from there by the ticks that have passed. How long a tick is, it measures; until it knows, and where the counter
 * does not serve, each reading is one of CLOCK_MONOTONIC.
 *
 * Nothing here locks.
 */
#ifndef BACKENDS_SIM_CLOCK_TICKS_H
#define BACKENDS_SIM_CLOCK_TICKS_H

#include <stdbool.h>
#include <stdint.h>

/* The clock counts on for so long after a reading of CLOCK_MONOTONIC. */
#define TICKS_NS_MAX UINT64_C(1000000)

/* The length of a tick is measured over a time between these two, and taken once two measurements in a row agree to
 * one part in TICKS_AGREE. Thus a sleep of the machine, in which only one of the two clocks stands still, is none. */
#define TICKS_MEASURE_NS_MIN UINT64_C(10000000)
#define TICKS_MEASURE_NS_MAX UINT64_C(1000000000)
#define TICKS_AGREE	     1000

/* A reading of both clocks. */
struct ticks_pair {
	uint64_t ticks, ns;
};

struct ticks {
	bool serves;	       /* the counter runs at one rate, and is the same on all processors */
	struct ticks_pair now; /* the last reading */
	uint64_t limit;	       /* so many ticks behind it, the clocks are read again; 0: always */
	struct ticks_pair measured; /* the reading from which the length of a tick is measured */
	uint64_t length;  /* of a tick, in ns / 2^32, as it was measured last; 0: not yet */
	uint64_t told_ns; /* what ticks_now_ns() has returned last */
};

/* Looks whether the counter serves: the kernel uses it, too. */
void ticks_init(struct ticks *ticks);

/* Returns the time of CLOCK_MONOTONIC, which never goes back. */
uint64_t ticks_now_ns(struct ticks *ticks);

/* --- the parts of ticks_now_ns() --- */

/* Counts on to a number of ticks. Returns false if the clocks have to be read. */
static inline bool ticks_count(const struct ticks *ticks, uint64_t now_ticks, uint64_t *now_ns)
{
	const uint64_t passed = now_ticks - ticks->now.ticks;

	/* A counter that has gone back is far beyond the limit. */
	*now_ns = ticks->now.ns + (passed * ticks->length >> 32);
	return passed < ticks->limit;
}

/* The clocks have been read. */
void ticks_learn(struct ticks *ticks, struct ticks_pair now);

#endif
