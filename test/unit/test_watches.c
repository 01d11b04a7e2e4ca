/* SPDX-License-Identifier: MIT */
/* How many sleeps begin without a watch after watches that were in vain, and after one that paid. */
#include "backends/sim/base/bell.h"
#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/watches.h"
#include "unity.h"

static struct watches watches;

void setUp(void)
{
	watches = (struct watches){0};
}

void tearDown(void)
{
}

/* Counts the sleeps without a watch up to the next watch. */
static uint32_t sleeps_before_watch(void)
{
	uint32_t count = 0;

	while (!watches_begin(&watches))
		count++;
	return count;
}

void test_each_sleep_begins_with_a_watch_while_watches_pay(void)
{
	for (unsigned int i = 0; i < 10; i++) {
		TEST_ASSERT_TRUE(watches_begin(&watches));
		watches_end(&watches, true);
	}
}

/* A watch that a timer interrupts has neither paid nor been in vain. */
void test_a_watch_that_has_not_ended_changes_nothing(void)
{
	TEST_ASSERT_TRUE(watches_begin(&watches));
	TEST_ASSERT_TRUE(watches_begin(&watches));
}

void test_watches_in_vain_become_rare(void)
{
	static const uint32_t expected[] = {0,	 1,   3,   7,	 15,   31,  63,
					    127, 255, 511, 1023, 1023, 1023};

	for (unsigned int i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		TEST_ASSERT_EQUAL_UINT32(expected[i], sleeps_before_watch());
		watches_end(&watches, false);
	}
}

void test_a_watch_that_pays_halves_the_pause(void)
{
	static const uint32_t expected[] = {15, 7, 3, 1, 0, 0};

	for (unsigned int i = 0; i < 4; i++)
		watches_end(&watches, false);
	for (unsigned int i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		TEST_ASSERT_EQUAL_UINT32(expected[i], sleeps_before_watch());
		watches_end(&watches, true);
	}
}

/* The thread had no processor when the bell rang. */
void test_a_bell_that_is_seen_to_ring_too_late_has_not_rung(void)
{
	const uint64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	struct bell bell = {.rings = 0};

	bell_ring(&bell);
	TEST_ASSERT_FALSE(bell_watch(&bell, 0, now_ns));
	TEST_ASSERT_TRUE(bell_watch(&bell, 0, now_ns + UINT64_C(60000000000)));
	TEST_ASSERT_FALSE(bell_watch(&bell, 1, now_ns + 1000000));
	TEST_ASSERT_TRUE(clock_now_ns(CLOCK_MONOTONIC) >= now_ns + 1000000);
}
