/* SPDX-License-Identifier: MIT */
/* Prints the seed of the run, even if the run does not end. */
#ifndef TEST_UNIT_SEED_H
#define TEST_UNIT_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t running_seed;

/* The text of on_alarm(): a signal handler may write text, but not format it. */
static char endless[64];
static size_t endless_bytes;

static inline void run_seed(uint64_t seed)
{
	running_seed = seed;
	endless_bytes = 0; /* an alarm must not find half a text */
	snprintf(endless, sizeof(endless), "seed %llu does not end\n", (unsigned long long)seed);
	endless_bytes = strlen(endless);
}

/* Returns the seed of the variable SEED, or a random one, and prints it. */
static inline uint64_t choose_seed(void)
{
	const char *given = getenv("SEED");
	uint64_t seed = 0;

	if (given)
		seed = strtoull(given, NULL, 0);
	else
		(void)!getrandom(&seed, sizeof(seed), 0);
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	run_seed(seed);
	return seed;
}

static inline void on_alarm(int number)
{
	(void)number;
	_exit(write(2, endless, endless_bytes) < 0 ? 2 : 1);
}

#endif
