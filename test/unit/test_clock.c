/* SPDX-License-Identifier: MIT */
#include "sim/base/clock.h"

#include "test/support/engine.h"
#include "unity.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMERS 8u
#define MANY   10000u

static struct sim_clock timers_clock;
static struct sim_timer timers[TIMERS];

static void fire(struct sim_timer *timer)
{
	(void)timer;
}

void setUp(void)
{
	timers_clock = (struct sim_clock){0};
	for (unsigned int i = 0; i < TIMERS; i++) {
		TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&timers_clock));
		sim_timer_init(&timers[i], fire);
	}
}

void tearDown(void)
{
	sim_clock_destroy(&timers_clock);
}

static void arm(unsigned int n, uint64_t deadline_ns)
{
	sim_timer_arm(&timers_clock, &timers[n], deadline_ns);
}

static void expect(unsigned int n)
{
	struct sim_timer *taken = sim_clock_take(&timers_clock);

	TEST_ASSERT_NOT_NULL_MESSAGE(taken, "no timer is due");
	TEST_ASSERT_EQUAL_INT((int)n, (int)(taken - timers));
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, taken->deadline_ns);
}

void test_nothing_is_due_at_first(void)
{
	timers_clock.told_ns = 1000;
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_clock_next(&timers_clock));
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
}

void test_timers_come_in_order_of_time(void)
{
	static const uint64_t deadlines_ns[TIMERS] = {50, 10, 80, 30, 70, 20, 60, 40};
	static const unsigned int order[TIMERS] = {1, 5, 3, 7, 0, 6, 4, 2};

	for (unsigned int i = 0; i < TIMERS; i++)
		arm(i, deadlines_ns[i]);
	TEST_ASSERT_EQUAL_UINT64(10, sim_clock_next(&timers_clock));
	timers_clock.told_ns = 80;
	for (unsigned int i = 0; i < TIMERS; i++)
		expect(order[i]);
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
}

void test_ties_come_in_order_of_arming(void)
{
	static const unsigned int order[TIMERS] = {3, 1, 7, 0, 5, 2, 6, 4};

	for (unsigned int i = 0; i < TIMERS; i++)
		arm(order[i], 100);
	timers_clock.told_ns = 100;
	for (unsigned int i = 0; i < TIMERS; i++)
		expect(order[i]);
}

void test_a_timer_that_was_taken_ties_anew(void)
{
	arm(0, 10);
	timers_clock.told_ns = 10;
	expect(0);
	arm(1, 20);
	arm(0, 20);
	timers_clock.told_ns = 20;
	expect(1);
	expect(0);
}

void test_not_before_its_time(void)
{
	arm(0, 100);
	timers_clock.told_ns = 99;
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
	timers_clock.told_ns = 100;
	expect(0);
}

void test_rearming_earlier_moves_it_forward(void)
{
	arm(0, 100);
	arm(1, 50);
	arm(0, 20);
	TEST_ASSERT_EQUAL_UINT64(20, sim_clock_next(&timers_clock));
	timers_clock.told_ns = 200;
	expect(0);
	expect(1);
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
}

/* The entry of the old time has no effect. */
void test_rearming_later_does_not_show_the_old_time(void)
{
	arm(0, 10);
	arm(0, 100);
	TEST_ASSERT_EQUAL_UINT64(100, sim_clock_next(&timers_clock));
	arm(1, 50);
	timers_clock.told_ns = 60;
	expect(1);
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
	timers_clock.told_ns = 100;
	expect(0);
}

void test_disarmed_timers_do_not_show(void)
{
	arm(0, 10);
	arm(1, 20);
	sim_timer_disarm(&timers[0]);
	TEST_ASSERT_EQUAL_UINT64(20, sim_clock_next(&timers_clock));
	sim_timer_disarm(&timers[1]);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_clock_next(&timers_clock));
	timers_clock.told_ns = 1000;
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
}

void test_disarmed_and_armed_again(void)
{
	arm(0, 10);
	sim_timer_disarm(&timers[0]);
	arm(0, 30);
	TEST_ASSERT_EQUAL_UINT64(30, sim_clock_next(&timers_clock));
	sim_timer_disarm(&timers[0]);
	arm(0, 5);
	TEST_ASSERT_EQUAL_UINT64(5, sim_clock_next(&timers_clock));
}

/* The owner of a timer may be freed while the timer is armed, is disarmed, or was never armed. */
static uint64_t real_ns;   /* what the owner answers */
static unsigned int asked; /* counts the questions */

static uint64_t answer(void *arg)
{
	TEST_ASSERT_EQUAL_PTR(&real_ns, arg);
	asked++;
	return real_ns;
}

void test_a_clock_that_is_behind_asks_once(void)
{
	timers_clock.ask = answer;
	timers_clock.ask_arg = &real_ns;
	asked = 0;
	sim_clock_tell(&timers_clock, 100);
	real_ns = 150;
	TEST_ASSERT_EQUAL_UINT64(100, sim_clock_now_ns(&timers_clock));
	TEST_ASSERT_EQUAL_UINT(0, asked);
	timers_clock.behind = true;
	TEST_ASSERT_EQUAL_UINT64(150, sim_clock_now_ns(&timers_clock));
	real_ns = 160;
	TEST_ASSERT_EQUAL_UINT64(150, sim_clock_now_ns(&timers_clock));
	TEST_ASSERT_EQUAL_UINT(1, asked);
	timers_clock.behind = true;
	TEST_ASSERT_EQUAL_UINT64(160, sim_clock_now_ns(&timers_clock));
	/* What the owner tells needs no question, and the time never goes back. */
	timers_clock.behind = true;
	sim_clock_tell(&timers_clock, 120);
	TEST_ASSERT_EQUAL_UINT64(160, sim_clock_now_ns(&timers_clock));
	TEST_ASSERT_EQUAL_UINT(2, asked);
	timers_clock.behind = true;
	real_ns = 130;
	TEST_ASSERT_EQUAL_UINT64(160, sim_clock_now_ns(&timers_clock));
}

/* Timers that fell due meanwhile fire when the owner lets them, in their order. */
void test_a_question_fires_no_timer(void)
{
	timers_clock.ask = answer;
	timers_clock.ask_arg = &real_ns;
	arm(0, 20);
	arm(1, 10);
	real_ns = 30;
	timers_clock.behind = true;
	TEST_ASSERT_EQUAL_UINT64(30, sim_clock_now_ns(&timers_clock));
	TEST_ASSERT_EQUAL_UINT64(10, sim_clock_next(&timers_clock));
	expect(1);
	expect(0);
	TEST_ASSERT_NULL(sim_clock_take(&timers_clock));
}

void test_release_takes_the_timer_out(void)
{
	arm(0, 10);
	arm(1, 20);
	arm(2, 30);
	sim_timer_disarm(&timers[1]);
	sim_clock_release(&timers_clock, &timers[0]);
	memset(&timers[0], 0xff, sizeof(timers[0]));
	sim_clock_release(&timers_clock, &timers[1]);
	memset(&timers[1], 0xff, sizeof(timers[1]));
	sim_clock_release(&timers_clock, &timers[3]);
	TEST_ASSERT_EQUAL_UINT64(30, sim_clock_next(&timers_clock));
	TEST_ASSERT_EQUAL_UINT32(1, timers_clock.count);
	TEST_ASSERT_EQUAL_UINT32(TIMERS - 3, timers_clock.reserved);
}

struct many {
	struct sim_timer timer;
	uint64_t deadline_ns; /* the deadline in the model */
	uint64_t armed;	      /* the order of arming; it decides ties if armed_once */
	bool armed_once;
};

/* The model looks at all timers. */
static struct many *earliest(struct many *all)
{
	struct many *found = NULL;

	for (unsigned int i = 0; i < MANY / 10; i++)
		if (all[i].deadline_ns != SIM_NEVER &&
		    (!found || all[i].deadline_ns < found->deadline_ns ||
		     (all[i].deadline_ns == found->deadline_ns && all[i].armed < found->armed)))
			found = &all[i];
	return found;
}

static void change_one(struct many *all, uint64_t *random_state)
{
	struct many *one = &all[engine_random(random_state) % (MANY / 10)];
	static uint64_t order;

	if (engine_random(random_state) % 4 == 0) {
		one->deadline_ns = SIM_NEVER;
		sim_timer_disarm(&one->timer);
		return;
	}
	one->armed_once = one->timer.place == 0;
	one->armed = order++;
	one->deadline_ns = timers_clock.told_ns + engine_random(random_state) % 500;
	sim_timer_arm(&timers_clock, &one->timer, one->deadline_ns);
}

/* Every timer fires at its own time; timers that were armed once fire in the order of arming. */
static void take_due(struct many *all, uint64_t now_ns)
{
	const struct many *before = NULL;
	struct sim_timer *taken;

	timers_clock.told_ns = now_ns;
	while ((taken = sim_clock_take(&timers_clock))) {
		struct many *one = (struct many *)taken;

		/* Earlier timers have fired, so these have the same time. */
		TEST_ASSERT_EQUAL_UINT64(now_ns, one->deadline_ns);
		if (before && before->armed_once && one->armed_once)
			TEST_ASSERT_TRUE(before->armed < one->armed);
		before = one;
		one->deadline_ns = SIM_NEVER;
	}
	TEST_ASSERT_TRUE(!earliest(all) || earliest(all)->deadline_ns > now_ns);
}

void test_many_timers_agree_with_a_model(void)
{
	static struct many all[MANY / 10];
	uint64_t random_state = 20240601;

	printf("clock: seed %llu\n", (unsigned long long)random_state);
	for (unsigned int i = 0; i < MANY / 10; i++) {
		sim_timer_init(&all[i].timer, fire);
		all[i].deadline_ns = SIM_NEVER;
		TEST_ASSERT_EQUAL_INT(0, sim_clock_reserve(&timers_clock));
	}
	for (unsigned int i = 0; i < MANY; i++) {
		change_one(all, &random_state);
		if (i % 16 == 15) {
			const struct many *first = earliest(all);
			uint64_t next_ns = sim_clock_next(&timers_clock);

			TEST_ASSERT_EQUAL_UINT64(first ? first->deadline_ns : SIM_NEVER, next_ns);
			if (next_ns != SIM_NEVER && engine_random(&random_state) % 2)
				take_due(all, next_ns);
		}
	}
	while (sim_clock_next(&timers_clock) != SIM_NEVER)
		take_due(all, sim_clock_next(&timers_clock));
	TEST_ASSERT_NULL(earliest(all));
}
