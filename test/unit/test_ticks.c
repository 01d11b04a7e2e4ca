/* SPDX-License-Identifier: MIT */
/* The real clock's count of ticks: when it counts on, how far it is off, and what makes it read the clocks again. */
#include "backends/sim/base/clock_now.h"
#include "backends/sim/clock/ticks.h"
#include "unity.h"

#define MS UINT64_C(1000000)

/* Ticks of 0.4 ns, which is 2 of 5. */
#define TICKS_OF(ns) ((ns)*5 / 2)

static struct ticks ticks;

void setUp(void)
{
	ticks = (struct ticks){.serves = true};
}

void tearDown(void)
{
}

static void learn_at(uint64_t now_ns)
{
	ticks_learn(&ticks, (struct ticks_pair){TICKS_OF(now_ns) + 12345, now_ns});
}

static bool counts_at(uint64_t at_ns, uint64_t *now_ns)
{
	return ticks_count(&ticks, TICKS_OF(at_ns) + 12345, now_ns);
}

static void expect_near(uint64_t expected_ns, uint64_t found_ns, uint64_t off_ns)
{
	TEST_ASSERT_TRUE(found_ns <= expected_ns + off_ns);
	TEST_ASSERT_TRUE(found_ns + off_ns >= expected_ns);
}

/* Learns the length of a tick by two measurements. Returns the time of the last reading. */
static uint64_t learn_length(void)
{
	const uint64_t begin_ns = 5000 * MS;

	for (uint64_t at_ns = begin_ns; at_ns <= begin_ns + 25 * MS; at_ns += MS)
		learn_at(at_ns);
	return begin_ns + 25 * MS;
}

void test_the_clock_counts_once_two_measurements_agree(void)
{
	const uint64_t begin_ns = 5000 * MS;
	uint64_t now_ns;

	learn_at(begin_ns);
	TEST_ASSERT_FALSE(counts_at(begin_ns + 1000, &now_ns));
	learn_at(begin_ns + 10 * MS);
	TEST_ASSERT_FALSE(counts_at(begin_ns + 10 * MS + 1000, &now_ns));
	learn_at(begin_ns + 20 * MS);
	TEST_ASSERT_TRUE(counts_at(begin_ns + 20 * MS + 1000, &now_ns));
	expect_near(begin_ns + 20 * MS + 1000, now_ns, 2);
}

void test_the_clock_is_read_again_after_a_while(void)
{
	const uint64_t last_ns = learn_length();
	uint64_t now_ns;

	TEST_ASSERT_TRUE(counts_at(last_ns + MS - 1000, &now_ns));
	expect_near(last_ns + MS - 1000, now_ns, 10);
	TEST_ASSERT_FALSE(counts_at(last_ns + MS + 1000, &now_ns));
}

void test_a_counter_that_goes_back_is_not_counted_on(void)
{
	const uint64_t last_ns = learn_length();
	uint64_t now_ns;

	TEST_ASSERT_FALSE(counts_at(last_ns - 1000, &now_ns));
}

/* A process that rarely asks for the time measures nothing, and forgets nothing. */
void test_a_long_pause_is_no_measurement(void)
{
	const uint64_t last_ns = learn_length();
	uint64_t now_ns;

	ticks_learn(&ticks, (struct ticks_pair){TICKS_OF(last_ns) * 7, last_ns + 2000 * MS});
	TEST_ASSERT_TRUE(ticks_count(&ticks, TICKS_OF(last_ns) * 7 + 2500, &now_ns));
	expect_near(last_ns + 2000 * MS + 1000, now_ns, 2);
}

/* The machine has slept within a measurement: the counter ran on, and CLOCK_MONOTONIC stood still. */
void test_a_measurement_that_disagrees_stops_the_count(void)
{
	const uint64_t last_ns = learn_length();
	const uint64_t slept = TICKS_OF(last_ns) + 12345 + 1000000000;
	uint64_t now_ns;

	ticks_learn(&ticks, (struct ticks_pair){slept, last_ns + 10 * MS});
	TEST_ASSERT_FALSE(ticks_count(&ticks, slept + 100, &now_ns));
	for (uint64_t i = 1; i <= 2; i++)
		ticks_learn(&ticks, (struct ticks_pair){slept + TICKS_OF(i * 10 * MS),
							last_ns + (i + 1) * 10 * MS});
	TEST_ASSERT_TRUE(ticks_count(&ticks, slept + TICKS_OF(20 * MS + 500), &now_ns));
	expect_near(last_ns + 30 * MS + 500, now_ns, 2);
}

/* Beside CLOCK_MONOTONIC of this machine, for so long that the ticks are counted where they serve. */
void test_the_time_is_that_of_clock_monotonic(void)
{
	const uint64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + 60 * MS;
	uint64_t before_ns, now_ns = 0, last_ns = 0;

	ticks_init(&ticks);
	do {
		before_ns = clock_now_ns(CLOCK_MONOTONIC);
		now_ns = ticks_now_ns(&ticks);
		TEST_ASSERT_TRUE(now_ns >= last_ns);
		TEST_ASSERT_TRUE(now_ns + 5000 >= before_ns);
		TEST_ASSERT_TRUE(now_ns <= clock_now_ns(CLOCK_MONOTONIC) + 5000);
		last_ns = now_ns;
	} while (before_ns < end_ns);
}
