/* SPDX-License-Identifier: MIT */
#include "backends/sim/clock/ticks.h"

#include "backends/sim/base/clock_now.h"

#include <stdio.h>
#include <string.h>

/* The name of the clock that the kernel counts CLOCK_MONOTONIC by. It takes the processors' counters only if they
 * run at one rate and agree. */
#define SOURCE_FILE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* A reading of both clocks in more ticks than this was interrupted, and is repeated. */
#define READING_TICKS_MAX 2000u
#define READINGS_MAX	  4

#ifdef __x86_64__
static inline uint64_t counter(void)
{
	return __builtin_ia32_rdtsc();
}

static bool is_kernels(void)
{
	char name[8] = "";
	FILE *file = fopen(SOURCE_FILE, "re");

	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "tsc\n") == 0;
}
#else
static inline uint64_t counter(void)
{
	return 0;
}

static bool is_kernels(void)
{
	return false;
}
#endif

void ticks_init(struct ticks *ticks)
{
	*ticks = (struct ticks){.serves = is_kernels()};
}

/* Begins a measurement of the length of a tick. */
static void measure_from(struct ticks *ticks, struct ticks_pair now)
{
	ticks->measured = now;
}

/* Ends a measurement. */
static void measure_to(struct ticks *ticks, struct ticks_pair now)
{
	const uint64_t passed_ns = now.ns - ticks->measured.ns;
	const uint64_t passed = now.ticks - ticks->measured.ticks;
	const uint64_t length = passed ? (passed_ns << 32) / passed : 0;
	const uint64_t apart =
		length > ticks->length ? length - ticks->length : ticks->length - length;

	ticks->limit = 0;
	if (length && apart <= length / TICKS_AGREE)
		ticks->limit = (TICKS_NS_MAX << 32) / length;
	ticks->length = length;
	measure_from(ticks, now);
}

void ticks_learn(struct ticks *ticks, struct ticks_pair now)
{
	const uint64_t passed_ns = now.ns - ticks->measured.ns;

	ticks->now = now;
	if (passed_ns > TICKS_MEASURE_NS_MAX)
		measure_from(ticks, now);
	else if (passed_ns >= TICKS_MEASURE_NS_MIN)
		measure_to(ticks, now);
}

/* Reads both clocks as nearly at one time as the machine lets it. */
static struct ticks_pair read_both(void)
{
	struct ticks_pair now = {0};
	uint64_t before, after;

	for (int i = 0; i < READINGS_MAX; i++) {
		before = counter();
		now.ns = clock_now_ns(CLOCK_MONOTONIC);
		after = counter();
		now.ticks = before + (after - before) / 2;
		if (after - before <= READING_TICKS_MAX)
			break;
	}
	return now;
}

__attribute__((noinline, cold)) static uint64_t read_now(struct ticks *ticks)
{
	if (!ticks->serves)
		return clock_now_ns(CLOCK_MONOTONIC);
	ticks_learn(ticks, read_both());
	return ticks->now.ns;
}

uint64_t ticks_now_ns(struct ticks *ticks)
{
	uint64_t now_ns;

	if (!ticks_count(ticks, counter(), &now_ns))
		now_ns = read_now(ticks);
	/* A reading may be a little behind the time that was counted. */
	if (now_ns < ticks->told_ns)
		now_ns = ticks->told_ns;
	ticks->told_ns = now_ns;
	return now_ns;
}
